"""The row of slices of one tensor side by side, which a pass writes: a roll is two of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...ir import Dim, TensorType
from ...shapes.index_map import Pull, Source
from ...shapes.pieced_maps import cat_slices_pull
from ...symbolic.sizes import integer
from ..parameters import Kind, Param
from ..shape_rules import ARG, extents, int_attr, source, view_of
from ..table import Call, Op, View


def _infer(call: Call) -> tuple[TensorType, ...]:
    arg, place = call.value("arg").tensor, int_attr(call, "dim")
    total = sum(extents(call, "lengths"), start=0)
    return view_of(arg, (*arg.dims[:place], Dim(total), *arg.dims[place + 1 :]))


def _pull(call: Call, pull: Pull) -> tuple[Source, ...]:
    starts, lengths = (tuple(map(integer, extents(call, name))) for name in ("starts", "lengths"))
    place = int_attr(call, "dim")
    size = call.value("arg").tensor.sizes[place]
    moved = cat_slices_pull(pull.index[place], starts, lengths, size)
    return source(call, (*pull.index[:place], moved, *pull.index[place + 1 :]))


def _cat_slices(
    arg: torch.Tensor, starts: Sequence[int], lengths: Sequence[int], dim: int
) -> torch.Tensor:
    pairs = zip(starts, lengths, strict=True)
    return torch.cat([arg.narrow(dim, start, length) for start, length in pairs], dim)


INTERNAL: tuple[Op, ...] = (
    Op(
        "cat_slices",
        (
            ARG,
            Param("starts", Kind.EXTENTS),
            Param("lengths", Kind.EXTENTS),
            Param("dim", Kind.INT),
        ),
        "Concatenates slices of one tensor along the dim that they are cut along.",
        "view",
        View(_pull),
        _infer,
        _cat_slices,
    ),
)
"""Rows that only passes write: ``fd.ops`` does not have them."""
