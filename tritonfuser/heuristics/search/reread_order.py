"""The order of rows in which programs that load the same run soon after one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..cost.sides import sides_beside
from ..params import HeuristicParams, KernelParams
from .warps import Kernels


def with_rereads_near(kernels: Kernels, params: HeuristicParams) -> HeuristicParams:
    """Params with the rows in another order, where the L2 cache loses less of what is read again.

    A bias of scores that is the same for all of a batch, ``[heads, rows, columns]``, is read again
    when all heads are done. With the batch innermost the programs of one row follow one another.
    """
    problem = kernels.problem
    if not isinstance(params, KernelParams):
        return params
    if getattr(params, "axes", None) != () or len(problem.order) != 1:
        return params
    first = kernels.time(params)
    lost = {} if first is None else kernels.reread_bytes(params)
    if first is None or not lost:
        return params
    own = problem.order[0]
    most = max(lost, key=lambda stream: lost[stream])
    beside = {own[place] for place in sides_beside(problem, most) if place < len(own)}
    order = (*(n for n in own if n not in beside), *(n for n in own if n in beside))
    changed: dict[str, Any] = {"axes": order}
    turned = replace(params, **changed)
    found = kernels.time(turned)
    slower = found is None or kernels.within_model_error(first.seconds, found.seconds)
    return params if slower else turned
