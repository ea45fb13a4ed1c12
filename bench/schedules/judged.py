"""How well a model chooses among measured schedules, beside the rules of the heuristics."""

from __future__ import annotations

import math
from statistics import median, quantiles

import torch

from .kernels import Measured

APART = 1.1
"""Factor from which on the order of two times counts."""

GAINS = (0.9, 0.8)
"""Shares of the time of the rules' choice that another one has to be predicted to take at most."""


def judged(data: Measured, predicted: torch.Tensor, chosen: torch.Tensor) -> str:
    """Median, 90th percentile and worst of a choice over the fastest, and pairs in order.

    Parameters
    ----------
    predicted : Tensor
        The time of each schedule by the model.
    chosen : Tensor
        Whether a schedule's problem counts.
    """
    found: dict[str, list[float]] = {}
    right = pairs = 0
    for number in sorted(set(data.problem[chosen].tolist())):
        places = (data.problem == number).nonzero()[:, 0]
        times, model = data.seconds[places], torch.log(predicted[places].detach())
        rules = int(data.heuristic[places].nonzero()[0, 0])
        first = int(model.argmin())
        best = float(times.min())
        found.setdefault("rules", []).append(float(times[rules]) / best)
        found.setdefault("model", []).append(float(times[first]) / best)
        for gain in GAINS:
            picked = first if model[first] - model[rules] < math.log(gain) else rules
            found.setdefault(f"model below {gain}", []).append(float(times[picked]) / best)
        apart = torch.log(times)[:, None] - torch.log(times)[None] > math.log(APART)
        pairs += int(apart.sum())
        right += int(((model[:, None] - model[None])[apart] > 0).sum())
    rows = (f"{name} {_figures(values)}" for name, values in found.items())
    return f"{'; '.join(rows)}; pairs {right / max(pairs, 1):.3f}"


def _figures(values: list[float]) -> str:
    ninth = quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]
    return f"{median(values):.3f}/{ninth:.3f}/{max(values):.2f}"
