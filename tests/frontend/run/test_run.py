"""run and run_kernel: modes, options, params, deprecated names."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
import torch

import tritonfuser
from tests.frontend.run.definitions import simple
from tritonfuser import (
    FusionDefinition,
    ParamsError,
    PointwiseParams,
    SchedulingError,
)
from tritonfuser.cache import executor


@pytest.fixture
def x():
    return torch.randn(3, 5)


# --- what is not recorded ----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "run_kernel", "heuristics", "validate"])
def test_nothing_to_run(way):
    with pytest.raises(NotImplementedError) as error:
        getattr(FusionDefinition(), way)([])
    assert (
        "Fusion does not exist! Use `with FusionDefinition() as fd: ...` to define a fusion."
        in str(error.value)
    )
    with FusionDefinition() as fd:
        fd.define_tensor([2])
    with pytest.raises(NotImplementedError, match="Fusion is empty!"):
        getattr(fd, way)([torch.ones(2)])


def test_running_inside_the_block():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.iota(3))
        with pytest.raises(RuntimeError, match="still being recorded"):
            fd.run([])
    assert torch.equal(fd.run([])[0], torch.arange(3))


def test_a_subclass_defines_itself_when_first_run(x):
    class Negate(FusionDefinition):
        def definition(self):
            self.add_output(self.ops.neg(self.define_tensor([-1, -1], contiguity=True)))

    fd = Negate()
    assert torch.equal(fd.run([x])[0], -x)
    assert torch.equal(fd.run([2 * x])[0], -2 * x)
    assert repr(fd).count("fd.ops.neg") == 1


# --- modes, options, params --------------------------------------------------------------------


def test_the_two_ways_exclude_each_other(x):
    fd = simple()
    assert not hasattr(fd, "fec")
    fd.run([x, 1.0])
    assert fd.fec.is_compiled([x, 2.0])
    with pytest.raises(AssertionError) as error:
        fd.run_kernel([x, 1.0])
    text = "FusionExecutorCache already exists! Use execute() to execute the fusion."
    assert text in str(error.value)

    fd = simple()
    assert not hasattr(fd, "ke")
    fd.run_kernel([x, 1.0])
    assert fd.ke.is_compiled()
    with pytest.raises(AssertionError) as error:
        fd.run([x, 1.0])
    text = "KernelExecutor already exists! Use manual_execute() to execute the fusion."
    assert text in str(error.value)


def test_looking_inside_chooses_no_way(x):
    fd = simple()
    (params,) = fd.heuristics([x, 1.0])
    (kernel,) = fd.kernels([x, 1.0])
    (segment,) = fd.segments([x, 1.0]).segments
    (report,) = fd.compile_for("sm_90", [x, 1.0])
    assert segment.params == params
    assert "@triton.jit" in kernel.text
    assert report.spill_bytes == 0
    assert not hasattr(fd, "fec")
    assert torch.equal(fd.run_kernel([x, 1.0], params)[0], (x + 1.0).relu())


def test_params_given_are_used(x):
    for way in ("run", "run_kernel"):
        fd = simple()
        (params,) = fd.heuristics([x, 1.0])
        assert isinstance(params, PointwiseParams)
        changed = dataclasses.replace(params, block_x=4, num_warps=1)
        given = {"run": [changed], "run_kernel": changed}[way]
        out = getattr(fd, way)([x, 1.0], params=given)
        assert torch.equal(out[0], (x + 1.0).relu())


@pytest.mark.parametrize("way", ["run", "run_kernel"])
def test_params_that_do_not_fit_are_refused_with_the_reason(x, way):
    fd = simple()
    (params,) = fd.heuristics([x, 1.0])
    with pytest.raises(ParamsError, match="params for"):
        getattr(fd, way)([x, 1.0], params=[params, params])
    assert torch.equal(getattr(fd, way)([x, 1.0])[0], (x + 1.0).relu())


def test_run_kernel_follows_its_inputs(x):
    fd = simple()
    for given in (x, x[:2], torch.randn(7, 2), x):
        assert torch.equal(fd.run_kernel([given.contiguous(), 1.0])[0], (given + 1.0).relu())


def test_run_kernel_refuses_what_takes_two_kernels():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        rows = fd.ops.cumsum(x, 1)
        fd.add_output(fd.ops.cumsum(rows, 0))
    x = torch.ones(4, 3)
    with pytest.raises(SchedulingError, match="KernelExecutor does not support the Fusion") as e:
        fd.run_kernel([x])
    assert "run(inputs)" in str(e.value)
    assert torch.equal(fd.run([x])[0], x.cumsum(1).cumsum(0))


def test_options_are_checked_by_name(x):
    fd = simple()
    known = {"_enable_options": ["fuse_matmul"], "_disable_options": ["matmul_expr_eval"]}
    assert torch.equal(fd.run([x, 0.0], **known)[0], x.relu())
    for option in ("_enable_options", "_disable_options"):
        with pytest.raises(RuntimeError, match="unrecognized option 'no_such_option'"):
            fd.run([x, 0.0], **{option: ["no_such_option"]})


def test_device_says_where_a_definition_without_tensors_runs(x):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.iota(3))
    assert fd.run([], device="cpu")[0].device.type == "cpu"
    assert fd.run([], device=torch.device("cpu"))[0].device.type == "cpu"
    fd = simple()
    assert torch.equal(fd.run([x, 0.0], device="cpu")[0], x.relu())
    with pytest.raises(RuntimeError, match="device='cuda:1' was asked for, but inputs are on cpu"):
        fd.run([x, 0.0], device=1)


def test_attributes_may_be_set_from_outside(x):
    fd = simple()
    fd._selected_device = None
    fd.anything = 3
    assert torch.equal(fd.run([x, 0.0], device=fd._selected_device)[0], x.relu())


@pytest.mark.parametrize("op", ["matmul", "linear"])
def test_autocast_leaves_the_dtypes_of_a_definition(op, x):
    """torch would multiply in bf16."""
    square = x[:, :3].contiguous()
    with FusionDefinition() as fd:
        given = fd.from_pytorch(square)
        fd.add_output(getattr(fd.ops, op)(given, given))
    before = fd.run([square])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(fd.run([square])[0], before[0])
        assert torch.equal(fd.plan([square])([square])[0], before[0])
        fd.validate([square])


def test_a_repeated_run_goes_straight_to_the_cache(x, monkeypatch):
    fd = simple()
    fd.run([x, 0.0])
    monkeypatch.setattr(FusionDefinition, "_run", None)
    monkeypatch.setattr(executor.FusionExecutorCache, "plan", None)
    assert torch.equal(fd.run([x, 0.0])[0], x.relu())


def test_threads_share_one_cache(x):
    fd = simple()
    caches, start = [], threading.Barrier(8)

    def work():
        start.wait()
        assert torch.equal(fd.run([x, 0.0])[0], x.relu())
        caches.append(fd._executor_cache())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(caches) == 8
    assert len({id(cache) for cache in caches}) == 1


# --- nvFuser's names ---------------------------------------------------------------------------

SCRIPT = """
    import warnings
    import torch
    from tritonfuser import FusionDefinition
    warnings.simplefilter("always")

    def defined():
        with FusionDefinition() as fd:
            fd.add_output(fd.ops.neg(fd.define_tensor([-1], contiguity=True)))
        return fd

    x = torch.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        fd = defined()
        (a,) = fd.{first}([x])  # here
        (b,) = fd.{first}([x])
        (c,) = defined().{second}([x])
    assert all(torch.equal(out, -x) for out in (a, b, c))
    (warning,) = caught
    assert warning.category is DeprecationWarning
    lines = open(__file__).read().splitlines()
    assert warning.filename == __file__ and lines[warning.lineno - 1].endswith("# here")
    assert "Deprecated alias" in FusionDefinition.execute.__doc__
    assert "Deprecated alias" in FusionDefinition.manual_execute.__doc__
    assert FusionDefinition.execute.__name__ == "execute"
    print(warning.message)
"""


@pytest.mark.parametrize("first", ["execute", "manual_execute"])
def test_deprecated_names_warn_once_a_process_at_the_callers_line(first, tmp_path):
    second = {"execute": "manual_execute", "manual_execute": "execute"}[first]
    script = tmp_path / "script.py"
    text = textwrap.dedent(SCRIPT).replace("{first}", first).replace("{second}", second)
    script.write_text(text)
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(tritonfuser.__file__).parent.parent)},
    )
    assert result.returncode == 0, result.stderr
    assert f"FusionDefinition.{first} is nvFuser's name for FusionDefinition.run" in result.stdout


def test_docstrings_tell_the_two_ways_apart():
    for method in (FusionDefinition.run, FusionDefinition.run_kernel):
        for word in ("segmentation", "specialisation", "cache", "scheduling"):
            assert word in method.__doc__
