"""Rewritings of a fusion as schedules write them, and back: splits see ``given_splits.py``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...device import DeviceProperties
from ...errors import ParamsError
from ...heuristics.schedule import ReductionSplit, Rewrites
from ...ir import Fusion, Value
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import hint, is_size
from ..passes.contract_to_mma import candidates, contract_to_mma
from ..passes.invariants.materialize import can_be_kept, materialize_invariants
from ..passes.materialization import Reread, materialize_shared
from ..passes.split_factors import (
    AlongMaximum,
    Interleaved,
    Padded,
    Parts,
    Remainder,
    reduced_extents,
)
from ..product_policy import ProductPolicy


def chosen_rewrites(
    fusion: Fusion,
    reread: Reread,
    products: Collection[Value],
    in_tiles: Mapping[Value, Parts],
    parts: Mapping[Value, Parts],
) -> Rewrites:
    """What was chosen, as a schedule writes it.

    Parameters
    ----------
    fusion : Fusion
        Before ``parts`` are split.
    reread : Reread
        Which values are materialized.
    products : collection of Value
        The results of the products that generated kernels compute.
    in_tiles, parts : mapping of Value to Parts
        The reductions that are split, first those whose first step a product does.
    """
    return Rewrites(
        materialized=reread.materialized,
        recomputed=reread.recomputed,
        products=tuple(v.name for v in sorted(products, key=lambda v: v.index)),
        tile_splits=tuple(_split(fusion, v, wanted) for v, wanted in in_tiles.items()),
        splits=tuple(_split(fusion, v, wanted) for v, wanted in parts.items()),
    )


def _split(fusion: Fusion, value: Value, wanted: Parts) -> ReductionSplit:
    if isinstance(wanted, Interleaved):
        return ReductionSplit(value=value.name, parts=wanted.count, interleave=wanted.multiple_of)
    if isinstance(wanted, Padded):
        parts, interleave = _padded_parts(fusion, value, wanted), int(wanted.interleaved)
        return ReductionSplit(
            value=value.name, parts=parts, interleave=interleave, padded=wanted.place
        )
    if isinstance(wanted, Remainder):
        parts, interleave = hint(wanted.count), wanted.multiple_of
        return ReductionSplit(value=value.name, parts=parts, interleave=interleave, remainder=True)
    if isinstance(wanted, AlongMaximum):
        return ReductionSplit(value=value.name, parts=wanted.maximum.name)
    if isinstance(wanted, tuple):
        pairs = zip(wanted, reduced_extents(fusion.producers[value]), strict=True)
        return ReductionSplit(value=value.name, parts=tuple(_factor(*pair) for pair in pairs))
    return ReductionSplit(value=value.name, parts=wanted)


def _padded_parts(fusion: Fusion, value: Value, wanted: Padded) -> int | tuple[int, ...]:
    """As many as in this run: a schedule that is given does not choose."""
    count = hint(wanted.count)
    if not wanted.apart:
        return count
    behind = len(reduced_extents(fusion.producers[value])) - wanted.place - 1
    return (-1,) * wanted.place + (count,) + (1,) * behind


def _factor(factor: int, extent: int) -> int:
    """A factor as a schedule writes it, so that it is right for other sizes too where it can be."""
    if is_known_equal(factor, extent):
        return -1
    left = extent // factor
    return -left if is_size(factor) and not is_size(left) else hint(factor)


def materialized_as(fusion: Fusion, rewrites: Rewrites) -> Fusion:
    """The fusion with the named values materialized, and others computed from those.

    Raises
    ------
    ParamsError
        A name is of no value that kernels behind an op of torch read again.
    """
    wanted = Reread(rewrites.materialized, rewrites.recomputed)
    found, taken = materialize_shared(fusion, wanted)
    for field in ("materialized", "recomputed"):
        for place, name in enumerate(getattr(wanted, field)):
            if name in getattr(wanted, field)[:place]:
                raise ParamsError(f"{field}[{place}]: {name} is there already")
            if name not in getattr(taken, field):
                raise ParamsError(
                    f"{field}[{place}]: expected a value that kernels read or compute again "
                    f"behind an op that torch runs, got {name!r}"
                )
    return found


def with_invariants(fusion: Fusion, names: Sequence[str]) -> Fusion:
    """The fusion with the named values in memory for all kernels that use them.

    Raises
    ------
    ParamsError
        A name is of no tensor that kernels compute element by element.
    """
    possible = can_be_kept(fusion)
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ParamsError(f"invariants[{place}]: {name} is there already")
        if name not in possible:
            raise ParamsError(
                f"invariants[{place}]: expected a tensor that kernels compute element by element, "
                f"got {name!r}"
            )
    return materialize_invariants(fusion, names)


def contracted_as(fusion: Fusion, device: DeviceProperties, products: Sequence[str]) -> Fusion:
    """The fusion with the named products as generated kernels.

    Raises
    ------
    ParamsError
        A name is of no product that a kernel can compute.
    """
    possible = {}
    if products:
        found = candidates(fusion, device, ProductPolicy.KERNELS)
        possible = {value.name: value for value in found}
    for place, name in enumerate(products):
        if name in products[:place]:
            raise ParamsError(f"products[{place}]: {name} is there already")
        if name not in possible:
            raise ParamsError(
                f"products[{place}]: expected a matrix product that a kernel can compute"
                f" ({', '.join(sorted(possible)) or 'there is none'}), got {name!r}"
            )
    return contract_to_mma(fusion, {possible[name] for name in products}).fusion
