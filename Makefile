# Every target sets up what it needs: a machine with Python and make is enough.
#
#   make demo                          the main job, end to end
#   make test                          the tests
#   make bench ARGS="--suite norm"      the benchmarks of one suite; docs/benchmarks.md
#   make demo NO_VENV=1 PYTHON=python3 with an interpreter that has torch and triton already

PYTHON ?= python3
VENV ?= .venv

ifdef NO_VENV
RUN := $(PYTHON)
READY :=
else
RUN := $(VENV)/bin/python
READY := $(VENV)/.installed
endif

# Tests run on all cores where pytest-xdist is there.
WORKERS = $(shell $(RUN) -c "import xdist; print('-n auto')" 2>/dev/null)
ARGS ?=

.PHONY: demo test test-slow test-random test-gpu lint format bench replay clean

demo: $(READY)
	$(RUN) -m bench.demo $(ARGS)

test: $(READY)
	$(RUN) -m pytest $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(READY)
	$(RUN) -m pytest $(WORKERS) -m "slow and not gpu" $(ARGS)

# Random definitions against torch, and wrong calls; TRITONFUSER_GRAPHS_FROM=400 tries others.
test-random: $(READY)
	$(RUN) -m pytest $(WORKERS) -m slow tests/e2e/graphs/test_random_graphs.py \
		tests/e2e/graphs/test_random_scalars.py tests/e2e/misuse/test_misuse.py -v $(ARGS)

test-gpu: $(READY)
	$(RUN) -m pytest -m gpu $(ARGS)

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# What differs between the kernels of a revision and those of the working tree.
BASE ?= HEAD
replay: $(READY)
	$(RUN) -m bench.replay --base $(BASE) $(ARGS)

bench: $(READY)
	$(RUN) -m bench $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@
