"""All families, by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    audio,
    convolutions,
    decoders,
    disentangled,
    encoders,
    experts,
    gates,
    generative,
    graphs,
    implicit,
    layer_norm_decoders,
    losses,
    messages,
    mixers,
    optimizers,
    policies,
    recurrent,
    vision,
)
from .family import Family

_MODULES = (
    decoders,
    layer_norm_decoders,
    experts,
    encoders,
    disentangled,
    vision,
    convolutions,
    mixers,
    generative,
    recurrent,
    gates,
    audio,
    graphs,
    messages,
    implicit,
    losses,
    policies,
    optimizers,
)
FAMILIES: Mapping[str, Family] = {
    family.name: family for module in _MODULES for family in module.FAMILIES
}
