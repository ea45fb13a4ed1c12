"""The first frontend's FusionDefinition: nvFuser's names, and a place in the FusionCache."""

from __future__ import annotations

from ..frontend.nvfuser.legacy_definition import LegacyFusionDefinition
from .nvfuser_direct import definition


class FusionDefinition(LegacyFusionDefinition, definition.FusionDefinition):
    __doc__ = definition.FusionDefinition.__doc__
