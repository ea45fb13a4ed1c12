"""All families, by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    audio,
    convolutions,
    decoders,
    encoders,
    experts,
    graphs,
    losses,
    messages,
    optimizers,
    recurrent,
    vision,
)
from .family import Family

_MODULES = (
    decoders,
    experts,
    encoders,
    vision,
    convolutions,
    recurrent,
    audio,
    graphs,
    messages,
    losses,
    optimizers,
)
FAMILIES: Mapping[str, Family] = {
    family.name: family for module in _MODULES for family in module.FAMILIES
}
