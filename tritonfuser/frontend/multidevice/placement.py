"""Where parts of operands must be for an op to run on parts, and where its results are then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...errors import TritonFuserError
from ...ir import Arg, Const, Dim, Node, Operand, TensorType, Value
from ...ops.builder import as_call
from ...ops.parameters import Kind
from ...ops.table import Call
from ..record.cuts import Cut, Factor, Shards, count, kinds, normal, parts
from ..record.device_mesh import DeviceMesh
from ..vocabulary.enums import ParallelType
from .links import Links, links_of, whole
from .pieces import Dims, Label, Piece, results_of


@dataclass(frozen=True)
class Placement:
    """What a device has of a tensor.

    Attributes
    ----------
    shards : Shards
        A cut for each dim, in normal form.
    partial : tuple of (ParallelType, str)
        Mesh types along which each device has a result of its part, still to be made one; how,
        by the neutral element.
    """

    shards: Shards
    partial: tuple[tuple[ParallelType, str], ...] = ()

    @property
    def without_partials(self) -> Placement:
        """This placement with partial results summed up."""
        return replace(self, partial=())

    def local(self, mesh: DeviceMesh, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sizes of one device's part."""
        pairs = zip(sizes, self.shards, strict=True)
        return tuple(size // parts(mesh, cut) for size, cut in pairs)

    def __str__(self) -> str:
        cut = [f"dim {d} on {_text(own)}" for d, own in enumerate(self.shards) if own]
        joined = [f"partial on {kind.name}" for kind, _ in self.partial]
        return ", ".join([*cut, *joined]) or "whole"


def _text(cut: Cut) -> str:
    return " * ".join(f"{f}" if isinstance(f, int) else f.name for f in cut)


@dataclass(frozen=True)
class Step:
    """A node with the placements its operands must have, and those of its results then.

    ``once`` are the operands that one device alone gives, along the mesh types of partial results.
    """

    operands: tuple[Placement, ...]
    results: tuple[Placement, ...]
    once: frozenset[int] = frozenset()


def replicated(value: Value) -> Placement:
    """All of a tensor on every device."""
    return Placement(((),) * value.tensor.rank)


def steps_of(
    node: Node,
    have: Sequence[Placement],
    asked: Sequence[Placement | None],
    mesh: DeviceMesh,
) -> list[Step]:
    """The ways to run a node with operands that are spread like ``have``.

    Each begins with what one tensor is cut like, a result that was put somewhere or an operand, and
    cuts the rest as the others have it; where all is needed whole there is one.
    """
    links = links_of(node)
    wanted = [(d, p) for d, p in zip(links.results, asked, strict=True) if p is not None]
    given = [*zip(links.operands, have, strict=True)]
    orders = [[first, *given] for first in (*wanted, *given)] or [given]
    steps = dict.fromkeys(_step(links, order, mesh) for order in orders)
    found = [step for step in steps if _holds(node, step, mesh)]
    return found or [_step(whole(node), [], mesh)]


def _step(links: Links, order: Sequence[tuple[Dims, Placement]], mesh: DeviceMesh) -> Step:
    chosen: dict[Label, Cut] = {}
    for dims, placement in order:
        for pieces, cut in zip(dims, placement.shards, strict=True):
            chosen.update(_choice(pieces, cut, chosen, mesh))

    def placed(dims: Dims, partial: tuple[tuple[ParallelType, str], ...] = ()) -> Placement:
        return Placement(tuple(_joined(pieces, chosen, mesh) for pieces in dims), partial)

    partial = tuple(
        (kind, how)
        for label, how in links.combined.items()
        for kind in kinds(chosen.get(label, ()))
    )
    return Step(
        tuple(map(placed, links.operands)),
        tuple(placed(dims, partial) for dims in links.results),
        links.once if partial else frozenset(),
    )


def _choice(
    pieces: Sequence[Piece], cut: Cut, chosen: dict[Label, Cut], mesh: DeviceMesh
) -> dict[Label, Cut]:
    """How a dim that is cut has its pieces cut; less of it where not all can be."""
    taken = {kind for own in chosen.values() for kind in kinds(own)}
    while cut:
        found = _spread(pieces, cut, mesh)
        fits = found is not None and all(
            piece.label is not None and piece.label not in chosen
            for piece, own in zip(pieces, found, strict=True)
            if own
        )
        if found is not None and fits and not taken.intersection(kinds(cut)):
            return {p.label: own for p, own in zip(pieces, found, strict=True) if own}
        cut = normal(cut[:-1])
    return {}


def _spread(pieces: Sequence[Piece], cut: Cut, mesh: DeviceMesh) -> list[Cut] | None:
    """The cut of a dim as cuts of its pieces; None where a factor lies across two of them."""
    left: list[Factor] = [*cut]
    found: list[Cut] = []
    for piece in pieces:
        room, own = piece.size, list[Factor]()
        while left and (room > 1 or count(mesh, left[0]) == 1):
            factor = left.pop(0)
            extent = count(mesh, factor)
            if isinstance(factor, int) and factor % room == 0:
                own.append(room)
                left = [factor // room, *left] if factor > room else left
                room = 1
            elif room % extent == 0:
                own.append(factor)
                room //= extent
            else:
                return None
        found.append(normal(own))
    return None if left else found


def _joined(pieces: Sequence[Piece], chosen: dict[Label, Cut], mesh: DeviceMesh) -> Cut:
    """The cut of a dim of which the pieces are cut."""
    factors: list[Factor] = []
    for piece in pieces:
        own = chosen.get(piece.label, ()) if piece.label is not None else ()
        inside = piece.size
        for factor in own:
            inside //= count(mesh, factor)
        factors += [*own, inside]
    return normal(factors)


# --- a node on parts -----------------------------------------------------------------------------


def local_type(value: Value, placement: Placement, mesh: DeviceMesh) -> TensorType:
    """The type of one device's part."""
    type_ = value.tensor
    sizes = placement.local(mesh, type_.sizes)
    dims = tuple(Dim(n, d.expanded and n > 1) for n, d in zip(sizes, type_.dims, strict=True))
    return replace(type_, dims=dims, layout=None)


def local_call(node: Node, args: Sequence[Arg], step: Step, mesh: DeviceMesh) -> Call:
    """The node's call on parts: a shape in it that is its result's becomes the part's.

    Parameters
    ----------
    args : sequence
        The arguments with parts in the place of tensors.
    """
    call = as_call(node)
    kinds = [param.kind for param in call.op.params if param.kind.is_operand]
    if len(step.results) == 1:
        args = tuple(
            _local_shape(arg, node.out, step.results[0], mesh) if kind is Kind.EXTENTS else arg
            for arg, kind in zip(args, kinds, strict=True)
        )
    return Call(call.op, tuple(args), call.attrs)


def _local_shape(arg: Arg, out: Value, placement: Placement, mesh: DeviceMesh) -> Arg:
    """Entries that are the extent of a dim which is cut, in the part's terms."""
    if not isinstance(arg, tuple):
        return arg
    sizes, local = out.tensor.sizes, placement.local(mesh, out.tensor.sizes)

    def entry(place: int, item: Operand) -> Operand:
        cut = place < len(sizes) and sizes[place] != local[place]
        same = cut and isinstance(item, Const) and item.value == sizes[place]
        return Const.of(local[place]) if same else item

    return tuple(entry(place, item) for place, item in enumerate(arg))


def replaced(args: Sequence[Arg], swap: Callable[[Value], Operand | None]) -> tuple[Arg, ...]:
    """Arguments with values replaced, each time one occurs."""

    def item(operand: Operand) -> Operand | None:
        return swap(operand) if isinstance(operand, Value) else operand

    def one(arg: Arg) -> Arg:
        if isinstance(arg, tuple):
            return tuple(found for found in map(item, arg) if found is not None)
        return None if arg is None else item(arg)

    return tuple(one(arg) for arg in args)


def _holds(node: Node, step: Step, mesh: DeviceMesh) -> bool:
    """Whether the op, given parts of these sizes, results in parts of the sizes expected."""
    wanted = iter(step.operands)

    def part(value: Value) -> Operand:
        return (
            Value(value.index, local_type(value, next(wanted), mesh)) if value.is_tensor else value
        )

    call = local_call(node, replaced(node.args, part), step, mesh)
    try:
        types = call.op.infer(call)
    except TritonFuserError:
        return False
    found = [type_.sizes for type_ in types if isinstance(type_, TensorType)]
    outs = results_of(node)
    return found == [r.local(mesh, o.tensor.sizes) for o, r in zip(outs, step.results, strict=True)]
