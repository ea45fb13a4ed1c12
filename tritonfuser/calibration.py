"""Measured rates of a GPU, read from JSON files where an option asks for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path
from typing import Any

from . import disk
from .errors import OptionError

VERSION = 1
"""Of the files."""

OPTION = "TRITONFUSER_CALIBRATED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Facts of a GPU that were measured; each has the name of a ``DeviceProperties`` field.

    Attributes
    ----------
    bandwidth_bytes_per_s : float
        Bytes a second that a copy reads and writes together.
    clock_hz : float
        Clock of the multiprocessors while all of them multiply and add.
    launch_s : float
        Seconds from one small kernel of a stream to the next.
    memory_latency_s : float
        Seconds from a load to its value, where memory has it and nothing else is loaded.
    product_flops_per_s : float
        Floating-point operations a second of a large product of BFloat16.
    """

    bandwidth_bytes_per_s: float
    clock_hz: float
    launch_s: float
    memory_latency_s: float
    product_flops_per_s: float


def path_of(name: str, arch: str) -> Path:
    """The file of GPUs of a name and an architecture."""
    digest = hashlib.sha256(repr((name, arch)).encode()).hexdigest()[:40]
    return disk.cache_folder() / "devices" / f"{digest}.json"


def save(name: str, arch: str, found: Calibration) -> Path:
    """Write what was found in the place of what is there.

    Raises
    ------
    OSError
        It cannot be written.
    """
    path = path_of(name, arch)
    facts = asdict(found)
    disk.replace_json(path, {"version": VERSION, "name": name, "arch": arch, "facts": facts})
    return path


def load(name: str, arch: str) -> Calibration:
    """What was found of GPUs of a name.

    Raises
    ------
    OptionError
        There is no such file, or it is none that ``save`` wrote.
    """
    path = path_of(name, arch)
    try:
        return _read(json.loads(path.read_text()), name, arch)
    except FileNotFoundError:
        why = f"{name} has not been calibrated, there is no {path}"
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"{path} cannot be read: {type(error).__name__}: {error}"
    raise OptionError(
        f"{OPTION}: {why}",
        hint=f"Run python -m tritonfuser calibrate, or unset {OPTION}.",
    )


def _read(data: Mapping[str, Any], name: str, arch: str) -> Calibration:
    found = data["version"], data["name"], data["arch"]
    if found != (VERSION, name, arch):
        raise ValueError(f"expected version {VERSION} of {name} {arch}, got {found}")
    facts = data["facts"]
    for field in fields(Calibration):
        value = facts[field.name]
        if type(value) is not float or not isfinite(value) or value <= 0:
            raise ValueError(f"facts.{field.name}: expected a positive number, got {value!r}")
    return Calibration(**facts)
