"""The environment variables: one typed table, read once; every module asks here.

The variables are read at the first use and kept. ``refresh()`` reads them again, for programs
and tests that change them later.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from math import inf, nan
from typing import Any

from .errors import OptionError

STAGES = {
    "python_definition": "the definition, as a Python program, at the first run",
    "concretize": "the ops at the sizes of the inputs",
    "simplify": "the ops that are lowered: composites written out, duplicates and dead code gone",
    "segment": "which ops are in which kernel, and why it was cut there",
    "params": "the params of each kernel",
    "kernel": "the text of each generated kernel",
    "plan": "the function that a run calls: allocations, launches, views",
    "ptx": "the assembly of each compiled kernel",
}
"""What ``TRITONFUSER_DUMP`` can print, in the order of the pipeline."""

TOPICS = {
    "cache": "each compilation for a run: what it was made for, and why nothing there would do",
    "segment": "the segments of each lowering, with the reason of every cut",
    "compile": "each kernel that Triton compiled, and its seconds",
}
"""What ``TRITONFUSER_LOG`` can tell about, a line on stderr each time."""

CHECKS = {
    "bounds": "that every index is one of its dim; a wrong one fails the next synchronisation",
    "storage": "that each tensor lies in its storage, which a resize may have made smaller; "
    "an error says which does not, before anything runs",
}
"""What ``TRITONFUSER_CHECK`` can have checked of each run on a GPU."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _known_words(text: str, known: Iterable[str]) -> frozenset[str]:
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


def _folder(text: str) -> str:
    """The same folder wherever the program goes later."""
    return os.path.abspath(os.path.expanduser(text))


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not 0 <= value < inf:
        raise ValueError(f"{text!r} is no number of 0 or more")
    return value


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table: an environment variable.

    Attributes
    ----------
    name : str
        The field of ``Settings``.
    env : str
        The variable.
    parse : callable
        Its text -> the value; ValueError where it has no meaning.
    default : object
        The value while it is unset.
    doc : str
        What it does.
    codegen : bool
        Whether it can change generated code or its binary.
    words : mapping
        The words that it takes, separated by commas, and what each means. Empty for a flag.
    """

    name: str
    env: str
    parse: Callable[[str], object]
    default: object
    doc: str
    codegen: bool
    words: Mapping[str, str]


def _env(
    name: str,
    parse: Callable[[str], object],
    default: object,
    doc: str,
    *,
    codegen: bool = False,
    words: Mapping[str, str] | None = None,
) -> Any:
    return field(
        default=default,
        metadata={
            "env": name,
            "parse": parse,
            "default": default,
            "doc": doc,
            "codegen": codegen,
            "words": words or {},
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment, parsed. A variable that is unset or empty has its default."""

    dump: frozenset[str] = _env(
        "TRITONFUSER_DUMP",
        _stages,
        frozenset(),
        f"stages to print on stdout: {', '.join(STAGES)}",
        words=STAGES,
    )
    nvfuser_dump: frozenset[str] = _env(
        "PYTORCH_NVFUSER_DUMP",
        _nvfuser_stages,
        frozenset(),
        "nvFuser's own variable: python_definition, as its first frontend printed it",
    )
    log: frozenset[str] = _env(
        "TRITONFUSER_LOG",
        _topics,
        frozenset(),
        f"topics to log on stderr: {', '.join(TOPICS)}",
        words=TOPICS,
    )
    check: frozenset[str] = _env(
        "TRITONFUSER_CHECK",
        _checks,
        frozenset(),
        f"what is checked of each run on a GPU: {', '.join(CHECKS)}",
        codegen=True,
        words=CHECKS,
    )
    cpu_as_cuda: bool = _env(
        "NVF_CPU_AS_CUDA", _flag, False, "1: nvfuser_direct takes CPU tensors for CUDA ones"
    )
    dynamic_sizes: bool = _env(
        "TRITONFUSER_DYNAMIC_SIZES",
        _flag,
        True,
        "0: kernels are compiled anew for each size, none takes sizes as arguments",
    )
    hot_sizes: float = _env(
        "TRITONFUSER_HOT_SIZES",
        _factor,
        1.0,
        "a size that runs often is compiled for itself when that would have saved so many times "
        "what compiling takes; sums may be added in another order from then on. 0: never",
    )
    fma: bool = _env(
        "TRITONFUSER_FMA",
        _flag,
        True,
        "0: a product and a sum are never contracted into one rounding",
        codegen=True,
    )
    tuned: bool = _env(
        "TRITONFUSER_TUNED",
        _flag,
        True,
        "0: runs do not use schedules that fd.autotune stored",
    )
    autotune: float = _env(
        "TRITONFUSER_AUTOTUNE",
        _factor,
        0.0,
        "seconds for which a definition's first run on a GPU with inputs of new sizes tries other "
        "schedules; what is best is stored for later processes. 0: none",
    )
    calibrated: bool = _env(
        "TRITONFUSER_CALIBRATED",
        _flag,
        False,
        "1: speeds of GPUs are what python -m tritonfuser calibrate measured, not built in",
        codegen=True,
    )
    cache_dir: str = _env(
        "TRITONFUSER_CACHE_DIR",
        _folder,
        "",
        "where tuned schedules, calibrations and serialized definitions are stored; by default in "
        "the user's directory for caches",
    )


def table() -> tuple[Option, ...]:
    """All options, a row each."""
    return tuple(Option(name=row.name, **row.metadata) for row in fields(Settings))


def misspelled(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that are no option and read much like one: each with the option that is like it."""
    known = [row.env for row in table()]
    others = (name for name in environ if name.startswith("TRITONFUSER_") and name not in known)
    near = {name: get_close_matches(name, known, n=1, cutoff=0.85) for name in others}
    return {name: found[0] for name, found in near.items() if found}


def read(environ: Mapping[str, str]) -> Settings:
    """The settings that ``environ`` asks for.

    Raises
    ------
    OptionError
        A variable has a value that is not understood.
    """
    values: dict[str, Any] = {}
    for row in table():
        text = environ.get(row.env, "")
        if not text.strip():
            continue
        try:
            values[row.name] = row.parse(text)
        except ValueError as error:
            raise OptionError(f"{row.env}: {error}", hint=f"Its meaning: {row.doc}.") from None
    return Settings(**values)


_settings: Settings | None = None


def current() -> Settings:
    """The settings; read from the environment at the first call."""
    return refresh() if _settings is None else _settings


def refresh() -> Settings:
    """Read the environment again. A name that is likely misspelled is warned of."""
    global _settings
    _settings = read(os.environ)
    for name, meant in misspelled(os.environ).items():
        warnings.warn(f"{name} is set and is no option; did you mean {meant}?", stacklevel=2)
    return _settings


def dump_stages() -> frozenset[str]:
    """The stages to print."""
    settings = current()
    return settings.dump | settings.nvfuser_dump if settings.nvfuser_dump else settings.dump


def dump(stage: str, what: object) -> None:
    """Print what a stage gave if it is on; all but the definition itself under a heading."""
    if stage not in STAGES:
        raise OptionError(f"{stage!r} is no stage", hint=f"Stages: {', '.join(STAGES)}.")
    if stage in dump_stages() and sys.stdout is not None:
        heading = "" if stage == "python_definition" else f"# ---- {stage} ----\n"
        sys.stdout.write(f"{heading}{what}\n")
        sys.stdout.flush()


def log(topic: str, text: str) -> None:
    """Print a line on stderr if the topic is on."""
    if topic not in TOPICS:
        raise OptionError(f"{topic!r} is no topic", hint=f"Topics: {', '.join(TOPICS)}.")
    if topic in current().log and sys.stderr is not None:
        sys.stderr.write(f"tritonfuser {topic}: {text}\n")


def codegen_options() -> tuple[tuple[str, object], ...]:
    """Name and value of every option that can change generated code: a part of cache keys."""
    settings = current()
    return tuple((row.name, getattr(settings, row.name)) for row in table() if row.codegen)
