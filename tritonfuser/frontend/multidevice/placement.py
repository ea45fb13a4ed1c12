"""Where the parts of operands have to be for an op to run on parts: links in, placements out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...errors import TritonFuserError
from ...ir import Arg, Const, Dim, Node, Operand, TensorType, Value
from ...ops.builder import as_call
from ...ops.table import Call, Kind
from ..record.device_mesh import DeviceMesh
from ..record.sharding import Shards, parts
from ..vocabulary.enums import ParallelType
from .links import Label, Labels, Links, links_of, tensors_of, whole


@dataclass(frozen=True)
class Placement:
    """What a device has of a tensor.

    Attributes
    ----------
    shards : Shards
        For each dim the mesh types it is cut along.
    partial : tuple of (ParallelType, str)
        Mesh types along which each device has a result of its part, still to be made one; how,
        by the neutral element.
    """

    shards: Shards
    partial: tuple[tuple[ParallelType, str], ...] = ()

    @property
    def settled(self) -> Placement:
        """The same with partial results made one."""
        return replace(self, partial=())

    def local(self, mesh: DeviceMesh, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sizes of one device's part."""
        pairs = zip(sizes, self.shards, strict=True)
        return tuple(size // parts(mesh, types) for size, types in pairs)

    def __str__(self) -> str:
        cut = [f"dim {d} on {k.name}" for d, kinds in enumerate(self.shards) for k in kinds]
        joined = [f"partial on {kind.name}" for kind, _ in self.partial]
        return ", ".join([*cut, *joined]) or "whole"


@dataclass(frozen=True)
class Step:
    """A node with the placements its operands must have, and those of its results then.

    ``once`` are the operands that one device alone gives, along the mesh types of partial results.
    """

    operands: tuple[Placement, ...]
    results: tuple[Placement, ...]
    once: frozenset[int] = frozenset()


def everywhere(value: Value) -> Placement:
    """All of a tensor on every device."""
    return Placement(((),) * value.tensor.rank)


def place(node: Node, have: Sequence[Placement], mesh: DeviceMesh) -> Step:
    """How to run a node with operands that are spread like ``have``, moving little.

    A name of dims is cut as the first operand has it that can be; everything else is made whole.
    """
    for links in (links_of(node), whole(node)):
        step = _step(node, links, have, mesh)
        if _holds(node, step, mesh):
            return step
    raise AssertionError(f"{node.op} does not run on whole operands")


def _step(node: Node, links: Links, have: Sequence[Placement], mesh: DeviceMesh) -> Step:
    tensors, outs = tensors_of(node), [out for out in node.outs if out.is_tensor]
    labelled = [*zip(tensors, links.operands, strict=True), *zip(outs, links.results, strict=True)]
    chosen: dict[Label, tuple[ParallelType, ...]] = {}
    for labels, placement in zip(links.operands, have, strict=True):
        for label, types in zip(labels, placement.shards, strict=True):
            used = {kind for kinds in chosen.values() for kind in kinds}
            if label is None or not types or label in chosen or used.intersection(types):
                continue
            if _divides(parts(mesh, types), label, labelled):
                chosen[label] = types

    def cut(labels: Labels) -> Shards:
        return tuple(() if label is None else chosen.get(label, ()) for label in labels)

    partial = tuple(
        (k, how) for label, how in links.combined.items() for k in chosen.get(label, ())
    )
    return Step(
        tuple(Placement(cut(labels)) for labels in links.operands),
        tuple(Placement(cut(labels), partial) for labels in links.results),
        links.once if partial else frozenset(),
    )


def _divides(count: int, label: Label, labelled: Sequence[tuple[Value, Labels]]) -> bool:
    sizes = [
        size
        for value, labels in labelled
        for size, own in zip(value.tensor.sizes, labels, strict=True)
        if own == label
    ]
    return all(size % count == 0 for size in sizes)


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
    outs = [out for out in node.outs if out.is_tensor]
    return found == [r.local(mesh, o.tensor.sizes) for o, r in zip(outs, step.results, strict=True)]
