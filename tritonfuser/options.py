"""The environment variables: one typed table, read once; every module asks here.

The variables are read at the first use and kept. ``refresh()`` reads them again, for programs
and tests that change them later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .errors import OptionError

STAGES = (
    "python_definition",
    "concretize",
    "simplify",
    "segment",
    "params",
    "kernel",
    "plan",
    "ptx",
)
"""What ``TRITONFUSER_DUMP`` can print, in the order of the pipeline."""

TOPICS = ("cache", "compile", "segment", "autotune")
"""What ``TRITONFUSER_LOG`` can tell about."""

CHECKS = ("bounds",)
"""What ``TRITONFUSER_CHECK`` can have kernels check while they run."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _known_words(text: str, known: tuple[str, ...]) -> frozenset[str]:
    words = _words(text)
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))} not among {', '.join(known)}")
    return frozenset(words)


def _stages(text: str) -> frozenset[str]:
    return _known_words(text, STAGES)


def _nvfuser_stages(text: str) -> frozenset[str]:
    return frozenset(_words(text)) & {"python_definition"}


def _topics(text: str) -> frozenset[str]:
    return _known_words(text, TOPICS)


def _checks(text: str) -> frozenset[str]:
    return _known_words(text, CHECKS)


def _flag(text: str) -> bool:
    value = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
    if text.strip().lower() not in value:
        raise ValueError(f"{text!r} is neither 1 nor 0")
    return value[text.strip().lower()]


def _directory(text: str) -> Path:
    return Path(os.path.expanduser(text.strip()))


def _env(
    name: str, parse: Callable[[str], object], default: object, doc: str, *, codegen: bool = False
) -> Any:
    """A row of the table; ``codegen`` marks what can change generated code or its binary."""
    return field(
        default=default,
        metadata={"env": name, "parse": parse, "doc": doc, "codegen": codegen},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment, parsed. A variable that is unset or empty has its default."""

    dump: frozenset[str] = _env(
        "TRITONFUSER_DUMP", _stages, frozenset(), f"stages to print: {', '.join(STAGES)}"
    )
    nvfuser_dump: frozenset[str] = _env(
        "PYTORCH_NVFUSER_DUMP",
        _nvfuser_stages,
        frozenset(),
        "nvFuser's own variable; only python_definition is heeded",
    )
    log: frozenset[str] = _env(
        "TRITONFUSER_LOG", _topics, frozenset(), f"topics to log: {', '.join(TOPICS)}"
    )
    check: frozenset[str] = _env(
        "TRITONFUSER_CHECK",
        _checks,
        frozenset(),
        "what kernels on a GPU check while they run: bounds, that every index is one of its dim; "
        "a wrong one is an error at the next synchronisation",
        codegen=True,
    )
    cpu_as_cuda: bool = _env(
        "NVF_CPU_AS_CUDA", _flag, False, "1: nvfuser_direct takes CPU tensors for CUDA ones"
    )
    cache_dir: Path = _env(  # noqa: RUF009
        "TRITONFUSER_CACHE_DIR",
        _directory,
        Path(os.path.expanduser("~/.cache/tritonfuser")),
        "where compiled plans and tuned params are kept between processes",
    )
    dynamic_sizes: bool = _env(
        "TRITONFUSER_DYNAMIC_SIZES",
        _flag,
        True,
        "0: kernels are compiled anew for each size, none takes sizes as arguments",
    )
    fma: bool = _env(
        "TRITONFUSER_FMA",
        _flag,
        True,
        "0: a product and a sum are never contracted into one rounding",
        codegen=True,
    )


def read(environ: Mapping[str, str]) -> Settings:
    """The settings that ``environ`` asks for.

    Raises
    ------
    OptionError
        A variable has a value that is not understood.
    """
    values: dict[str, Any] = {}
    for row in fields(Settings):
        text = environ.get(row.metadata["env"], "")
        if not text.strip():
            continue
        try:
            values[row.name] = row.metadata["parse"](text)
        except ValueError as error:
            raise OptionError(
                f"{row.metadata['env']}: {error}", hint=f"Its meaning: {row.metadata['doc']}."
            ) from None
    return Settings(**values)


_settings: Settings | None = None


def current() -> Settings:
    """The settings; read from the environment at the first call."""
    return refresh() if _settings is None else _settings


def refresh() -> Settings:
    """Read the environment again."""
    global _settings
    _settings = read(os.environ)
    return _settings


def dump_stages() -> frozenset[str]:
    """The stages to print."""
    settings = current()
    return settings.dump | settings.nvfuser_dump if settings.nvfuser_dump else settings.dump


def dump(stage: str, what: object) -> None:
    """Print what a stage gave if it is on; all but the definition itself under a heading."""
    if stage not in STAGES:
        raise OptionError(f"{stage!r} is no stage", hint=f"Stages: {', '.join(STAGES)}.")
    if stage in dump_stages():
        heading = "" if stage == "python_definition" else f"# ---- {stage} ----\n"
        sys.stdout.write(f"{heading}{what}\n")
        sys.stdout.flush()


def log(topic: str, text: str) -> None:
    """Print a line on stderr if the topic is on."""
    if topic in current().log:
        sys.stderr.write(f"tritonfuser {topic}: {text}\n")


def codegen_options() -> tuple[tuple[str, object], ...]:
    """Name and value of every option that can change generated code: a part of cache keys."""
    settings = current()
    return tuple(
        (row.name, getattr(settings, row.name))
        for row in fields(Settings)
        if row.metadata["codegen"]
    )
