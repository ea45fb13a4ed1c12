"""One stage of a mesh program: its nodes as a fusion on parts, with what it needs and hands out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...ir import Fusion, Node, Operand, Output, ScalarType, Value
from ...ops.builder import GraphBuilder, as_call
from ..record.device_mesh import DeviceMesh
from .exchanges import shared
from .local_part import part_of
from .mesh_program import Exchange, Key, Run
from .placement import Placement, Step, local_call, local_type, replaced


class Stage:
    """The nodes of one stage, being recorded anew on parts.

    Parameters
    ----------
    fusion : Fusion
        The fusion on whole tensors.
    mesh : DeviceMesh
        The mesh.
    device : int
        Whose part of each tensor the stage computes.
    where : mapping of Value to Placement
        Where each tensor is, once it is made.
    offer : callable
        Lets the stage that makes a value hand it out.

    Attributes
    ----------
    exchanges : list of Exchange
        What has to be exchanged before the stage runs.
    outputs : dict of Key to Value
        What later stages, or the caller, need of this one.
    """

    def __init__(
        self,
        fusion: Fusion,
        mesh: DeviceMesh,
        device: int,
        where: Mapping[Value, Placement],
        offer: Callable[[Value], None],
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.outputs: dict[Key, Value] = {}
        self._fusion = fusion
        self._mesh = mesh
        self._device = device
        self._where = where
        self._offer = offer
        self._builder = GraphBuilder()
        self._inputs: list[Key] = []
        self._own: dict[Key, Operand] = {}

    def add(self, node: Node, step: Step) -> None:
        """Record a node with parts in the place of tensors."""
        wanted = iter(enumerate(step.operands))
        alone = self._is_first(step)

        def part(value: Value) -> Operand | None:
            if not value.is_tensor:
                return self._scalar(value)
            number, want = next(wanted)
            # All devices take part in its exchange, also those that leave it out.
            found = self._tensor(value, want)
            return None if number in step.once and not alone else found

        self._builder.loc = node.loc
        args = replaced(node.args, part)
        self._builder.append(local_call(node, args, step, self._mesh))
        for old, new in zip(node.outs, self._builder.nodes[-1].outs, strict=True):
            self._own[old, self._where[old]] = new

    def _is_first(self, step: Step) -> bool:
        partial = {kind for result in step.results for kind, _ in result.partial}
        mesh, device = self._mesh, self._device
        return all(mesh.coordinate(device, kind) == 0 for kind in partial)

    def _scalar(self, value: Value) -> Operand:
        """A number: given, or computed anew in each stage that needs it."""
        if (value, None) not in self._own:
            node = self._fusion.producers.get(value)
            if node is None:
                self._own[value, None] = self._take((value, None), value)
            else:
                args = replaced(node.args, self._scalar)
                self._builder.append(replace(as_call(node), args=args))
                self._own[value, None] = self._builder.nodes[-1].out
        return self._own[value, None]

    def _tensor(self, value: Value, want: Placement) -> Operand:
        """A tensor in a placement: made here, brought here, or cut from what is here."""
        if (value, want) not in self._own:
            have = shared(self._where[value], want)
            self._own[value, want] = (
                self._brought(value, want) if have == want else self._cut(value, have, want)
            )
        return self._own[value, want]

    def _brought(self, value: Value, want: Placement) -> Operand:
        """An input of this stage, from those before or exchanged by the devices."""
        have = self._where[value]
        if have != want:
            self.exchanges.append(Exchange(value, have, want))
        self._offer(value)
        return self._take((value, want), value)

    def _take(self, key: Key, value: Value) -> Value:
        self._inputs.append(key)
        _, want = key
        if want is None:
            return self._builder.add_input(ScalarType(value.dtype))
        return self._builder.add_input(local_type(value, want, self._mesh))

    def _cut(self, value: Value, have: Placement, want: Placement) -> Operand:
        """This device's part of a tensor that is here as a larger part."""
        source = self._tensor(value, have)
        return part_of(self._builder, source, have, want, self._mesh, self._device)

    def hand_out(self, value: Value, want: Placement) -> None:
        """Make a tensor an output of this stage's fusion."""
        made = self._tensor(value, want)
        assert isinstance(made, Value)
        self.outputs[value, want] = made

    def run(self) -> Run:
        """The stage as a fusion of its own."""
        self._builder.outputs = [Output(value) for value in self.outputs.values()]
        return Run(self._builder.fusion(), tuple(self._inputs), tuple(self.outputs))
