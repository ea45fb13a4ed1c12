"""Applies the rewrites of a given schedule to a fusion, or says why one cannot be applied."""

from __future__ import annotations

from collections.abc import Sequence

from ....device import DeviceProperties
from ....errors import ParamsError
from ....heuristics.schedule import Rewrites
from ....ir import Fusion
from ...passes.concatenations.reduced_pieces import pieces_of, reduce_pieces
from ...passes.contract_to_mma import candidates, contract_to_mma
from ...passes.invariants.kept_orders import is_order, named, order_of
from ...passes.invariants.materialize import materializable, materialize_invariants
from ...passes.materialization import Reread, materialize_shared
from ...product_policy import ProductPolicy
from ..rewritten import Rewritten
from .splits import split_as


def rewritten_as(fusion: Fusion, device: DeviceProperties, rewrites: Rewrites) -> Rewritten:
    """The fusion rewritten as a schedule says.

    Raises
    ------
    ParamsError
        Names the field, by its path, that is of no use here, and why.
    """
    fusion = reduced_as(fusion, rewrites.pieces)
    fusion = with_invariants(materialized_as(fusion, rewrites), rewrites.invariants)
    fusion = contracted_as(fusion, device, rewrites.products)
    fusion = split_as(fusion, rewrites.tile_splits, "tile_splits").fusion
    whole = split_as(fusion, rewrites.splits, "splits")
    return Rewritten(whole.fusion, rewrites, whole.partial or None)


def reduced_as(fusion: Fusion, names: Sequence[str]) -> Fusion:
    """The fusion with the named reductions in pieces.

    Raises
    ------
    ParamsError
        A name is of no reduction of tensors that are concatenated.
    """
    nodes = {node.outs[0].name: node for node in fusion.nodes} if names else {}
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ParamsError(f"pieces[{place}]: {name} is there already")
        if name not in nodes or pieces_of(fusion, nodes[name]) is None:
            raise ParamsError(
                f"pieces[{place}]: expected a reduction of tensors that are concatenated, "
                f"got {name!r}"
            )
    return reduce_pieces(fusion, names)


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
        A name is of no tensor that kernels compute element by element, or its order is none of
        another order of its dims.
    """
    possible = materializable(fusion, moved=True)
    values = (*fusion.inputs, *(out for node in fusion.nodes for out in node.outs))
    ranks = {value.name: value.tensor.rank for value in values if value.name in possible}
    for place, name in enumerate(names):
        value, dims = named(name), order_of(name)
        if value in map(named, names[:place]):
            raise ParamsError(f"invariants[{place}]: {value} is there already")
        if value not in possible:
            raise ParamsError(
                f"invariants[{place}]: expected a tensor that kernels compute element by element, "
                f"got {name!r}"
            )
        if dims and not is_order(dims, ranks[value]):
            raise ParamsError(
                f"invariants[{place}]: expected another order of the {ranks[value]} dims of "
                f"{value}, got {name!r}"
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
