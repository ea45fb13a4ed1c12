"""The key of a stored schedule: one tuple of all that its time depends on."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import triton

from ...device import DeviceProperties
from ...ir import Fusion
from ...lowering.passes.concretize import InputSignature
from ...lowering.passes.numbering import in_order
from ...options import codegen_options

_PACKAGE = Path(__file__).parents[2]
_GENERATOR = ("symbolic", "ops", "heuristics", "lowering")
"""The rooms that make kernels of a definition."""


class StoreKey(NamedTuple):
    """The key of a stored schedule.

    Attributes
    ----------
    device, arch : str
        The GPU.
    definition : str
        SHA-256 of the definition, without the lines that recorded it; the same of its print.
    signature : str
        Sizes, strides, dtypes and alignment of the inputs.
    options : str
        The options that change kernels.
    package, triton : str
        Versions.
    generator : str
        SHA-256 of the sources that make kernels.
    """

    device: str
    arch: str
    definition: str
    signature: str
    options: str
    package: str
    triton: str
    generator: str

    @property
    def name(self) -> str:
        """A file name that is another one for another key."""
        return hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:40]


def store_key(fusion: Fusion, signature: InputSignature, device: DeviceProperties) -> StoreKey:
    """The key of the schedules of a definition for inputs like these on a device."""
    return StoreKey(
        device.name,
        device.arch,
        in_order(fusion).fingerprint,
        repr(signature),
        repr(tuple((name, _plain(value)) for name, value in codegen_options())),
        **versions(),
    )


def versions() -> dict[str, str]:
    """The parts of a key that say which code is here: ``package``, ``triton``, ``generator``."""
    return {
        "package": _version(),
        "triton": str(triton.__version__),
        "generator": _generator_digest(),
    }


def _plain(value: object) -> object:
    """A value whose repr is the same in every process: a set has no order, so it is sorted."""
    return sorted(value) if isinstance(value, frozenset) else value


@cache
def _version() -> str:
    try:
        return metadata.version("tritonfuser")
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return ""


@cache
def _generator_digest() -> str:
    digest = hashlib.sha256()
    for room in _GENERATOR:
        for path in sorted((_PACKAGE / room).rglob("*.py")):
            digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()
