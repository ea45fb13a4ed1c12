"""All families, by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import convolutions, decoders, encoders, experts, vision
from .family import Family

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for module in (decoders, experts, encoders, vision, convolutions)
    for family in module.FAMILIES
}
