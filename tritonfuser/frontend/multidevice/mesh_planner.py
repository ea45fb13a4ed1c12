"""Plans the program of one device: where each value is, and in which stage it is made.

``plan`` walks the concrete fusion once and gives each node a stage: it is in the stage of its
operands, or in the next one where an operand must be gathered or made one of partial results
first. The nodes of a stage are a fusion of their own, on parts (``mesh_stage.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir import Fusion, Node, Output, Value
from ..record.device_mesh import DeviceMesh
from .exchanges import exchanged_bytes, shared
from .mesh_program import Exchange, Key, Program, Run
from .mesh_stage import Stage
from .moments import dims_of, moments_as_sums
from .pieces import results_of, tensors_of
from .placement import Placement, Step, replicated, steps_of


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
        self.stages: list[Stage] = []
        # Statistics over a dim that is cut, by the first of their results.
        self.across: set[Value] = set()
        for value, placement in zip(fusion.inputs, inputs, strict=True):
            self.stage[value] = -1
            if value.is_tensor:
                self.where[value] = placement or replicated(value)
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
            operands = zip(tensors, step.operands, strict=True)
            results = zip(outs, step.results, asked, strict=True)
            changes = [(v, self.where[v], want) for v, want in operands]
            changes += [(v, have, want or have.without_partials) for v, have, want in results]
            return sum(exchanged_bytes(*change, self.mesh) for change in changes)

        return min(steps, key=moved) if len(steps) > 1 else steps[0]

    def spread(self, value: Value) -> Placement:
        """Where a value is for an op that takes it, if it does not matter to the op."""
        return self._asked.get(value, self.where[value].without_partials)

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
        self.stages = [
            Stage(self.fusion, self.mesh, self.device, self.where, self.offer)
            for _ in range(last + 2)
        ]
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
        have = self.where[value].without_partials
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
