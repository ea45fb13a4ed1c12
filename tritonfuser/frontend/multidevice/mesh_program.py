"""A definition over a mesh as this device's program: local runs with communication between.

``plan`` walks the concrete fusion once and gives each node a stage: it is in the stage of its
operands, or in the next one where an operand must be gathered or made one of partial results
first. The nodes of a stage are a fusion of their own, on parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir import Fusion, Node, Operand, Output, ScalarType, Value, print_fusion
from ...ops.builder import GraphBuilder, as_call
from ..record.device_mesh import DeviceMesh
from .exchanges import shared, volume
from .local_part import part_of
from .moments import dims_of, moments_as_sums
from .pieces import results_of, tensors_of
from .placement import Placement, Step, everywhere, local_call, local_type, replaced, steps_of

Key = tuple[Value, Placement | None]
"""What exists at run time: a tensor in a placement, or a number."""


@dataclass(frozen=True)
class Exchange:
    """Parts sent around: what ``value`` is in one placement, in another."""

    value: Value
    have: Placement
    want: Placement

    def __str__(self) -> str:
        return f"{self.value.name}: {self.have} -> {self.want}"


@dataclass(frozen=True)
class Run:
    """A fusion on parts, run by this device alone."""

    fusion: Fusion
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]

    def __str__(self) -> str:
        return print_fusion(self.fusion)


@dataclass(frozen=True)
class Program:
    """What one device does, step by step.

    Attributes
    ----------
    steps : tuple of Exchange or Run
        In order, the same on all devices.
    inputs : tuple of Key
        What is given, in order.
    outputs : tuple of Key
        What the definition's outputs are, in order, as parts.
    """

    mesh: DeviceMesh
    steps: tuple[Exchange | Run, ...]
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The local runs."""
        return tuple(step for step in self.steps if isinstance(step, Run))

    def __str__(self) -> str:
        return "\n\n".join(str(step) for step in self.steps)


def plan(
    fusion: Fusion,
    mesh: DeviceMesh,
    inputs: Sequence[Placement | None],
    outputs: Sequence[Placement | None],
    inside: Mapping[Value, Placement],
    device: int,
) -> Program:
    """The program of one device.

    Parameters
    ----------
    fusion : Fusion
        Concrete, at the sizes of whole tensors, without composite ops.
    inputs : sequence
        Where each input is; None for numbers, and for tensors that are whole on all devices.
    outputs : sequence
        Where each output has to be; None for where it comes.
    inside : mapping
        Where results of ops are for the ops that take them, as far as it was said.
    device : int
        Whose program.
    """
    asked = {o.value: p for o, p in zip(fusion.outputs, outputs, strict=True) if p}
    planner = _Planner(fusion, mesh, inputs, {**inside, **asked}, device)
    if planner.across:
        fusion = moments_as_sums(fusion, planner.across)
        planner = _Planner(fusion, mesh, inputs, {**inside, **asked}, device)
    return planner.program(outputs)


class _Planner:
    """The walk over the nodes: where each value is, and in which stage it is made."""

    def __init__(
        self,
        fusion: Fusion,
        mesh: DeviceMesh,
        inputs: Sequence[Placement | None],
        asked: Mapping[Value, Placement],
        device: int,
    ) -> None:
        self.fusion = fusion
        self.mesh = mesh
        self.device = device
        self._asked = asked
        given = [cut for own in inputs if own for cut in own.shards]
        self._in_blocks = any(isinstance(factor, int) for cut in given for factor in cut)
        self.where: dict[Value, Placement] = {}
        self.stage: dict[Value, int] = {}
        self.steps: dict[Value, Step] = {}
        self.stages: list[_Stage] = []
        # Statistics over a dim that is cut, by the first of their results.
        self.across: set[Value] = set()
        for value, placement in zip(fusion.inputs, inputs, strict=True):
            self.stage[value] = -1
            if value.is_tensor:
                self.where[value] = placement or everywhere(value)
        for node in fusion.nodes:
            self._visit(node)

    # -- where and when ----------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        stage = max([0, *(self.stage[v] for v in node.operands())])
        if node.out.is_tensor:
            tensors = tensors_of(node)
            if any(self.where[tensors[0]].shards[dim] for dim in dims_of(node)):
                self.across.add(node.out)
            step = self._cheapest(node, tensors)
            self.steps[node.out] = step
            self.where.update(zip(node.outs, step.results, strict=True))
            for value, want in zip(tensors, step.operands, strict=True):
                stage = max(stage, self.ready(value, want))
        self.stage.update(dict.fromkeys(node.outs, stage))

    def _cheapest(self, node: Node, tensors: Sequence[Value]) -> Step:
        """The way to run a node that moves least; of equal ones the first."""
        outs = results_of(node)
        asked = [self._asked.get(value) for value in outs]
        steps = steps_of(node, [self.spread(v) for v in tensors], asked, self.mesh)

        def moved(step: Step) -> int:
            taken = zip(tensors, step.operands, strict=True)
            made = zip(outs, step.results, asked, strict=True)
            return sum(volume(v, self.where[v], want, self.mesh) for v, want in taken) + sum(
                volume(v, have, want or have.settled, self.mesh) for v, have, want in made
            )

        return min(steps, key=moved) if len(steps) > 1 else steps[0]

    def spread(self, value: Value) -> Placement:
        """Where a value is for an op that takes it, if it does not matter to the op."""
        return self._asked.get(value, self.where[value].settled)

    def ready(self, value: Value, want: Placement) -> int:
        """The first stage in which a part can be cut of what was exchanged before."""
        exchanged = self.shared(value, want) != self.where[value]
        return max(0, self.stage[value] + exchanged)

    def shared(self, value: Value, want: Placement) -> Placement:
        """What to exchange for: cut where both are cut alike, whole elsewhere."""
        return shared(self.where[value], want)

    # -- what is done --------------------------------------------------------------------------

    def program(self, outputs: Sequence[Placement | None]) -> Program:
        """All stages with what each needs of those before it."""
        last = max(self.stage.values(), default=0)
        self.stages = [_Stage(self) for _ in range(last + 2)]
        for node in self.fusion.nodes:
            if node.out.is_tensor:
                self.stages[self.stage[node.out]].add(node, self.steps[node.out])
        wanted = map(self._wanted, self.fusion.outputs, outputs)
        delivered = tuple(self._deliver(*pair) for pair in wanted)
        steps: list[Exchange | Run] = []
        for stage in self.stages:
            steps.extend(stage.exchanges)
            if stage.outputs:
                steps.append(stage.run())
        inputs = tuple((value, self.where.get(value)) for value in self.fusion.inputs)
        return Program(self.mesh, tuple(steps), inputs, delivered)

    def _wanted(self, output: Output, asked: Placement | None) -> tuple[Value, Placement]:
        """An output and where it has to be; one written into an input lies as the input does."""
        if output.alias_of is not None:
            return output.value, self.where[output.alias_of]
        return output.value, asked or self._where_it_comes(output.value)

    def _where_it_comes(self, value: Value) -> Placement:
        """In blocks only where inputs are: elsewhere every device has one piece of a dim."""
        have = self.where[value].settled
        if self._in_blocks:
            return have
        pairs = ((cut, [isinstance(f, int) for f in cut]) for cut in have.shards)
        return Placement(tuple(c[: n.index(True)] if any(n) else c for c, n in pairs))

    def _deliver(self, value: Value, want: Placement) -> Key:
        """An output as the part that is asked for."""
        have, shared = self.where[value], self.shared(value, want)
        if want in (have, shared):
            self.offer(value)
        if want != have and want == shared:
            self.stages[self.ready(value, want)].exchanges.append(Exchange(value, have, want))
        elif want != have:
            self.stages[self.ready(value, want)].hand_out(value, want)
        return value, want

    def offer(self, value: Value) -> None:
        """Let a stage hand out a value that is needed after it."""
        if self.stage[value] >= 0:
            self.stages[self.stage[value]].hand_out(value, self.where[value])


class _Stage:
    """The nodes of one stage, being recorded anew on parts."""

    def __init__(self, planner: _Planner) -> None:
        self.planner = planner
        self.builder = GraphBuilder()
        self.inputs: list[Key] = []
        self.outputs: dict[Key, Value] = {}
        self.exchanges: list[Exchange] = []
        self._own: dict[Key, Operand] = {}

    def add(self, node: Node, step: Step) -> None:
        """Record a node with parts in the place of tensors."""
        wanted = iter(enumerate(step.operands))
        alone = self._is_first(step)

        def part(value: Value) -> Operand | None:
            if not value.is_tensor:
                return self.scalar(value)
            number, want = next(wanted)
            return None if number in step.once and not alone else self.tensor(value, want)

        self.builder.loc = node.loc
        args = replaced(node.args, part)
        self.builder.append(local_call(node, args, step, self.planner.mesh))
        for old, new in zip(node.outs, self.builder.nodes[-1].outs, strict=True):
            self._own[old, self.planner.where[old]] = new

    def _is_first(self, step: Step) -> bool:
        partial = {kind for result in step.results for kind, _ in result.partial}
        mesh, device = self.planner.mesh, self.planner.device
        return all(mesh.coordinate(device, kind) == 0 for kind in partial)

    def scalar(self, value: Value) -> Operand:
        """A number: given, or computed anew in each stage that needs it."""
        if (value, None) not in self._own:
            node = self.planner.fusion.producers.get(value)
            if node is None:
                self._own[value, None] = self._take((value, None), value)
            else:
                args = replaced(node.args, self.scalar)
                self.builder.append(replace(as_call(node), args=args))
                self._own[value, None] = self.builder.nodes[-1].out
        return self._own[value, None]

    def tensor(self, value: Value, want: Placement) -> Operand:
        """A tensor in a placement: made here, brought here, or cut from what is here."""
        if (value, want) not in self._own:
            shared = self.planner.shared(value, want)
            self._own[value, want] = (
                self._brought(value, want) if shared == want else self._cut(value, shared, want)
            )
        return self._own[value, want]

    def _brought(self, value: Value, want: Placement) -> Operand:
        """An input of this stage, from those before or exchanged by the devices."""
        have = self.planner.where[value]
        if have != want:
            self.exchanges.append(Exchange(value, have, want))
        self.planner.offer(value)
        return self._take((value, want), value)

    def _take(self, key: Key, value: Value) -> Value:
        self.inputs.append(key)
        _, want = key
        if want is None:
            return self.builder.add_input(ScalarType(value.dtype))
        return self.builder.add_input(local_type(value, want, self.planner.mesh))

    def _cut(self, value: Value, have: Placement, want: Placement) -> Operand:
        """This device's part of a tensor that is here as a larger part."""
        source = self.tensor(value, have)
        return part_of(self.builder, source, have, want, self.planner.mesh, self.planner.device)

    def hand_out(self, value: Value, want: Placement) -> None:
        """Make a tensor an output of this stage's fusion."""
        made = self.tensor(value, want)
        assert isinstance(made, Value)
        self.outputs[value, want] = made

    def run(self) -> Run:
        """The stage as a fusion of its own."""
        self.builder.outputs = [Output(value) for value in self.outputs.values()]
        return Run(self.builder.fusion(), tuple(self.inputs), tuple(self.outputs))
