"""Params as nvFuser's programs take them: fields may be set, and some have nvFuser's names too.

``compute_heuristics`` gives a subclass of the params' own class. A run takes the plain params that
it stands for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...heuristics.params import (
    PARAMS,
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    MatmulParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
    TransposeParams,
)


@dataclass(frozen=True, slots=True)
class Alias:
    """A field of nvFuser's that has a counterpart.

    Attributes
    ----------
    read : callable
        Its value for params.
    field : str
        Our field, which is set in its place. Empty where it cannot be set.
    instead : str
        What to set then.
    """

    read: Callable[[Any], Any]
    field: str = ""
    instead: str = ""


_WHICH = "The scheduler says so: ask for the params of another SchedulerType."
_ROWS = Alias(lambda p: p.block_x > 1, instead="Set block_x, the rows of a program.")

ALIASES: Mapping[type[HeuristicParams], Mapping[str, Alias]] = {
    ReductionParams: {
        "persistent_kernel": Alias(lambda p: p.persistent, "persistent"),
        "multiple_reds_per_blk": _ROWS,
    },
    InnerPersistentParams: {
        "persistent_kernel": Alias(lambda p: p.persistent, "persistent"),
        "multiple_reds_per_blk": _ROWS,
        "fastest_dim": Alias(lambda p: True, instead=_WHICH),
        "combined_inner_outer": Alias(lambda p: False, instead=_WHICH),
    },
    OuterPersistentParams: {
        "persistent_kernel": Alias(lambda p: p.persistent, "persistent"),
        "multiple_reds_per_blk": _ROWS,
        "fastest_dim": Alias(lambda p: False, instead=_WHICH),
        "combined_inner_outer": Alias(lambda p: False, instead=_WHICH),
    },
    InnerOuterPersistentParams: {
        "persistent_kernel": Alias(lambda p: True, instead=_WHICH),
        "fastest_dim": Alias(lambda p: True, instead=_WHICH),
        "combined_inner_outer": Alias(lambda p: True, instead=_WHICH),
    },
}
"""nvFuser's fields that have a counterpart under another name."""

_TILE = "A program computes block_x elements with 32 * num_warps threads."
_LINE = "A pointwise kernel runs over the flattened output; TransposeParams have two sides."
_ROW = "block_r is the part of a row that num_warps warps have at a time."
_PARTS = "A reduction over several programs is a split: change `parts` of fd.schedule(inputs)."
_LAUNCH = "num_warps says how many threads a program has; the grid follows from the block sizes."
_COMPILE = "max_registers limits the registers of a thread; indices are as wide as tensors need."

_EVERYWHERE = {"lparams": _LAUNCH, "cparams": _COMPILE, "tag": "Params have no tag."}
_OF_FLAT = {
    "unroll_factor_inner": _TILE,
    "unroll_factor_outer": _TILE,
    "break_point": _LINE,
    "split_block": _LINE,
    "split_grid_y_dim": _LINE,
    "flip_grid_binding": _LINE,
}
_OF_ROWS = {
    **dict.fromkeys(
        (
            "vectorize_inner_reduction",
            "vectorize_iter_dom",
            "vectorization_factor_outer",
            "vectorization_factor_tmp_gmem_write",
            "unroll_factor_inner_reduction",
            "unroll_factor_outer_reduction",
            "unroll_factor_iter_dom",
            "unroll_factor_top_of_vectorization",
            "batches_per_block_inner_reduction",
            "batches_per_block_outer_reduction",
            "pad_inner_reduction_to_warp",
            "pad_outer_reduction_to_warp",
            "cross_block_inner_reduction",
            "cross_block_outer_reduction",
        ),
        _ROW,
    ),
    **dict.fromkeys(
        (
            "cross_grid_inner_reduction",
            "cross_grid_outer_reduction",
            "split_grid_dim_inner_reduction",
            "split_grid_dim_outer_reduction",
        ),
        _PARTS,
    ),
    **dict.fromkeys(
        (
            "block_dim_inner_reduction",
            "block_dim_outer_reduction",
            "block_dim_iter_dom",
            "grid_dim_inner_reduction",
            "grid_dim_outer_reduction",
            "grid_dim_iter_dom",
            "split_grid_dim_iter_dom_inner",
            "split_grid_dim_iter_dom_outer",
            "static_bdimx",
            "static_bdimy",
        ),
        _LAUNCH,
    ),
    "fastest_dim": "The strides of the tensors say which axis is contiguous.",
    "project_persistent_buffers": "What is cheap to compute again is never kept.",
}
_OF_PRODUCTS = {
    "tile_sizes": "block_m, block_n and block_k are the sides of the tile of a program.",
    "grid_traversal_factor": "group_m says how many rows of tiles are finished together.",
    "cta_order": "group_m says how many rows of tiles are finished together.",
    "circular_buffer_options": "num_stages is the depth of the loop's pipeline.",
    "tiling_strategy": "programs is the number of persistent programs, 0 for one a tile.",
    "splitk_factor": _PARTS,
    "use_smem_epilogue": "descriptors has tiles loaded and stored by the copy engine.",
    "mma_macro": "Triton chooses the instruction of the tensor cores for the tile.",
    "cluster_dims": "Kernels have no clusters.",
}
INSTEAD: Mapping[type[HeuristicParams], Mapping[str, str]] = {
    PointwiseParams: _OF_FLAT,
    TransposeParams: {**_OF_FLAT, "vectorization_factor": "block_x and block_y are the tile."},
    ReductionParams: _OF_ROWS,
    InnerPersistentParams: _OF_ROWS,
    OuterPersistentParams: _OF_ROWS,
    InnerOuterPersistentParams: {
        **_OF_ROWS,
        "multiple_reds_per_blk": "block_m is the rows of a step of the loop.",
    },
    MatmulParams: _OF_PRODUCTS,
}
"""nvFuser's fields that have no counterpart, and what to use."""


class Editable(HeuristicParams):
    """Params whose fields can be set. Each setting is checked as the constructor checks."""

    def frozen(self) -> HeuristicParams:
        """The plain params, equal to these."""
        return PARAMS[self.scheduler](**{row.name: getattr(self, row.name) for row in fields(self)})

    def __getattr__(self, name: str) -> Any:
        # Only for names that are no fields.
        alias = _alias(type(self), name)
        if alias is not None:
            return alias.read(self)
        raise AttributeError(_no_field(type(self), name))

    def __setattr__(self, name: str, value: Any) -> None:
        alias = _alias(type(self), name)
        if alias is not None and not alias.field:
            raise AttributeError(f"{self._kind().__name__}.{name} cannot be set. {alias.instead}")
        name = name if alias is None else alias.field
        if name not in {row.name for row in fields(self)}:
            raise AttributeError(_no_field(type(self), name))
        before = getattr(self, name)
        object.__setattr__(self, name, value)
        try:
            self.validate()
        except BaseException:
            object.__setattr__(self, name, before)
            raise

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeuristicParams):
            return NotImplemented
        return self.frozen() == plain(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.frozen())

    def __reduce__(self) -> tuple[Any, ...]:
        return editable, (self.frozen(),)

    @classmethod
    def _kind(cls) -> type[HeuristicParams]:
        return PARAMS[cls.scheduler]


def editable(params: HeuristicParams) -> HeuristicParams:
    """A copy of params whose fields can be set."""
    values = {row.name: getattr(params, row.name) for row in fields(params)}
    made: HeuristicParams = _EDITABLE[params.scheduler](**values)
    return made


def plain(params: HeuristicParams) -> HeuristicParams:
    """The params without a way to set their fields."""
    return params.frozen() if isinstance(params, Editable) else params


def _made(self: Any, **given: Any) -> None:
    """The constructor: fields are set past ``__setattr__``, as a frozen dataclass sets its own."""
    self._kind().__init__(self, **given)


_EDITABLE = {
    name: type(kind.__name__, (Editable, kind), {"__doc__": kind.__doc__, "__init__": _made})
    for name, kind in PARAMS.items()
}
"""Scheduler name -> the class of its params whose fields can be set."""


def _alias(kind: type[HeuristicParams], name: str) -> Alias | None:
    return ALIASES.get(PARAMS[kind.scheduler], {}).get(name)


def _no_field(kind: type[HeuristicParams], name: str) -> str:
    """What to say of a name that is no field."""
    own = PARAMS[kind.scheduler]
    instead = {**_EVERYWHERE, **INSTEAD.get(own, {})}.get(name)
    if instead is not None:
        return f"{own.__name__} has no {name}. {instead}"
    known = [row.name for row in fields(own)] + [*ALIASES.get(own, {})]
    near = difflib.get_close_matches(name, known, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(known)}"
    return f"{own.__name__} has no field {name!r}{hint}"
