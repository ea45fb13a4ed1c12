"""``RunOptions``: what a run asks for beyond its inputs, made once by the outermost call."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..heuristics.params import HeuristicParams
from ..heuristics.schedule import Schedule
from .product_policy import ProductPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """What a run asks for beyond its inputs; as a whole a part of the plan's key.

    Attributes
    ----------
    params : tuple of HeuristicParams, optional
        Params to use in place of those the heuristics propose, one for each segment.
    schedule : Schedule, optional
        The schedule to use in place of what the heuristics choose.
    device : torch.device, optional
        Where to run a definition whose inputs do not say.
    arch : str, optional
        The GPU that kernels are made for, ``"sm_90"``; by default that of the device.
    products : ProductPolicy
        Who computes matrix products.
    two_steps : bool
        Whether a reduction with few results may take two kernels.
    origin : str
        Where the schedule comes from, in words; empty where the caller gave it, or none.
    """

    params: tuple[HeuristicParams, ...] | None = None
    schedule: Schedule | None = None
    device: torch.device | None = None
    arch: str | None = None
    products: ProductPolicy = ProductPolicy.AUTO
    two_steps: bool = True
    origin: str = ""


DEFAULT = RunOptions()
"""What a run without arguments asks for. Calls test for it by identity."""
