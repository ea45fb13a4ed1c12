"""Rewritings of a fusion as schedules write them, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...device import DeviceProperties
from ...errors import ParamsError
from ...heuristics.schedule import ReductionSplit, Rewrites
from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.table import Contraction, Moments, Reduction
from ...symbolic.queries import assume_multiple, is_known_equal
from ...symbolic.sizes import hint, is_size
from ..passes.contract_to_mma import candidates, contract_to_mma
from ..passes.materialization import Reread
from ..passes.split_factors import (
    AlongMaximum,
    Interleaved,
    Padded,
    Parts,
    reduced_extents,
)
from ..passes.split_reduction import split_reductions
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
        # As many as in this run: a schedule that is given does not choose.
        parts, interleave = hint(wanted.count), int(wanted.interleaved)
        return ReductionSplit(
            value=value.name, parts=parts, interleave=interleave, padded=wanted.place
        )
    if isinstance(wanted, AlongMaximum):
        return ReductionSplit(value=value.name, parts=wanted.maximum.name)
    if isinstance(wanted, tuple):
        pairs = zip(wanted, reduced_extents(fusion.producers[value]), strict=True)
        return ReductionSplit(value=value.name, parts=tuple(_factor(*pair) for pair in pairs))
    return ReductionSplit(value=value.name, parts=wanted)


def _factor(factor: int, extent: int) -> int:
    """A factor as a schedule writes it, so that it is right for other sizes too where it can be."""
    if is_known_equal(factor, extent):
        return -1
    left = extent // factor
    return -left if is_size(factor) and not is_size(left) else hint(factor)


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
        if name not in possible:
            raise ParamsError(
                f"products[{place}]: expected a matrix product that a kernel can compute"
                f" ({', '.join(sorted(possible)) or 'there is none'}), got {name!r}"
            )
    return contract_to_mma(fusion, {possible[name] for name in products}).fusion


def split_as(fusion: Fusion, splits: Sequence[ReductionSplit], field: str) -> Fusion:
    """The fusion with the named reductions in two steps.

    Raises
    ------
    ParamsError
        A name is of no reduction, or its parts are of no use.
    """
    if not splits:
        return fusion
    possible = {
        node.out.name: node.out
        for node in fusion.nodes
        if isinstance(as_call(node).op.form, Reduction | Moments | Contraction)
    }
    parts: dict[Value, Parts] = {}
    for place, split in enumerate(splits):
        path = f"{field}[{place}]"
        value = _of(possible, split.value, f"{path}.value")
        parts[value] = _parts(fusion, value, split, possible, path)
    return split_reductions(fusion, parts).fusion


def _of(possible: Mapping[str, Value], name: str, path: str) -> Value:
    if name not in possible:
        raise ParamsError(
            f"{path}: expected a reduction or a matrix product ({', '.join(possible) or 'none'}), "
            f"got {name!r}"
        )
    return possible[name]


def _parts(
    fusion: Fusion, value: Value, split: ReductionSplit, possible: Mapping[str, Value], path: str
) -> Parts:
    wanted = split.parts
    node = fusion.producers[value]
    call = as_call(node)
    product = isinstance(call.op.form, Contraction)
    if isinstance(wanted, str):
        return AlongMaximum(_of(possible, wanted, f"{path}.parts"))
    if isinstance(wanted, tuple):
        dims = 0 if product else len(call.dims())
        if len(wanted) != dims or 0 in wanted:
            raise ParamsError(
                f"{path}.parts: expected a factor for each of {dims} reduced dims, not 0, "
                f"got {list(wanted)}"
            )
        pairs = zip(wanted, reduced_extents(node), strict=True)
        return tuple(_given_factor(n, extent, f"{path}.parts") for n, extent in pairs)
    if wanted < 2:
        raise ParamsError(f"{path}.parts: expected 2 or more, got {wanted}")
    if split.interleave < 0 or (product and split.interleave):
        raise ParamsError(
            f"{path}.interleave: expected {0 if product else '0 or more'}, got {split.interleave}"
        )
    if split.padded != -1:
        dims = len(call.dims()) if isinstance(call.op.form, Reduction) else 0
        if not 0 <= split.padded < dims:
            raise ParamsError(
                f"{path}.padded: expected -1, or the place of one of {dims} reduced dims that can "
                f"be padded, got {split.padded}"
            )
        return Padded(split.padded, wanted, bool(split.interleave))
    return Interleaved(wanted, split.interleave) if split.interleave else wanted


def _given_factor(wanted: int, extent: int, path: str) -> int:
    """A factor of an extent. ``-n`` leaves ``n`` elements to the first step."""
    if not assume_multiple(extent, abs(wanted)):
        raise ParamsError(f"{path}: expected a divisor of {extent}, got {wanted}")
    return wanted if wanted > 0 else extent // -wanted
