"""Weights and inputs of a step that was built on the meta device."""

from __future__ import annotations

from typing import Any

import torch

from ..families.family import Step

_SPREAD = 0.02
"""Standard deviation of weights."""


def materialized(step: Step, device: str, seed: int = 0) -> Step:
    """The step with random weights and inputs on a device, in the layout it was built with.

    Weights of one dim, which are those of norms and biases, lie about 1, running averages are 1,
    other weights are normal about 0. Integers are below the step's limits.
    """
    generator = torch.Generator(device).manual_seed(seed)
    if isinstance(step.run, torch.nn.Module):
        _fill(step.run, generator)
    inputs = tuple(_input(x, _limit(step, place), generator) for place, x in enumerate(step.inputs))
    return Step(step.run, inputs, step.training, step.limits)


def _limit(step: Step, place: int) -> int:
    return step.limits[place] if place < len(step.limits) else 2


def _fill(model: torch.nn.Module, generator: torch.Generator) -> None:
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            drawn = _SPREAD * _like(weight, generator) + float(weight.ndim == 1)
            made = torch.nn.Parameter(drawn.to(weight.dtype), weight.requires_grad)
            module._parameters[name] = made
        for name, value in module.named_buffers(recurse=False):
            module._buffers[name] = torch.ones_like(value, device=generator.device)


def _input(x: Any, limit: int, generator: torch.Generator) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    if not x.is_floating_point():
        return torch.randint(limit, x.shape, device=generator.device, generator=generator)
    return _like(x, generator).to(x.dtype).requires_grad_(x.requires_grad)


def _like(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Standard normal numbers in the memory order of a tensor."""
    found = torch.empty_like(x, device=generator.device, dtype=torch.float32, requires_grad=False)
    return found.normal_(generator=generator)
