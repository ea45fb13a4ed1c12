"""Fusion in, an equal Fusion with loop invariants materialized out.

``x * sin(angle)`` over [B, H, T, D] with angles of [T, D] -> ``x * materialize(sin(angle))``, if
``gain.py`` says that it pays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ....device import DeviceProperties
from ....errors import SourceLoc
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import View
from ....symbolic.choices import choose, env_among
from ....symbolic.sizes import hint
from ...access.aliases import requested_order
from ...access.rough_instructions import is_fused, load_instructions
from ..redundant_nodes import eliminate_dead_code
from ..rewriting import viewed_results
from ..substitution import Substitution, next_free, rebuilt
from .candidates import candidates
from .components import Component, components_of
from .counts import Computed, computed
from .exact_dtypes import narrowed
from .gain import Balance, gain
from .kept_orders import orders


def choose_invariants(fusion: Fusion, device: DeviceProperties) -> tuple[str, ...]:
    """The names of the values to materialize: of fewer axes than the kernels that use them.

    Parameters
    ----------
    device : DeviceProperties
        The device that kernels are for. The interpreter gains nothing.
    """
    costs = {} if device.is_cpu else candidates(fusion)
    if costs:
        possible = materializable(fusion)
        costs = {value: count for value, count in costs.items() if value.name in possible}
    if not costs:
        return ()
    instructions_per_byte = device.instructions_per_s / device.bandwidth_bytes_per_s

    def stores(value: Value, used: int) -> bool:
        """Whether a value is computed so often that storing and loading it costs less."""
        if value not in costs:
            return False
        own, size = hint(value.tensor.numel), value.dtype.info.bytes
        saved = costs[value] * (hint(used) - own) - load_instructions(size) * hint(used)
        return saved > 2 * own * size * instructions_per_byte

    before, after = computed(fusion), computed(fusion, stores)
    chosen: list[str] = []
    for component in components_of(fusion) if after.materialized else ():
        stored = [node.out for node in component.nodes if node.out in after.materialized]
        if stored and pays(_balance(component, stored, before, after), device):
            chosen += [value.name for value in stored]
    return tuple(chosen)


def _balance(
    component: Component, stored: Iterable[Value], before: Computed, after: Computed
) -> Balance:
    """What the kernels of a component compute and move before and after values are materialized."""
    return Balance(
        bytes_moved=component.bytes_moved(before),
        instructions=component.instructions(before),
        stored_bytes=sum(v.tensor.numel * v.dtype.info.bytes for v in stored),
        instructions_after=component.instructions(after),
    )


@dataclass(frozen=True)
class _Question:
    """The arguments of ``is_gain``, as one object for ``choose``."""

    balance: Balance
    device: DeviceProperties


def pays(balance: Balance, device: DeviceProperties) -> bool:
    """Whether materializing values pays at the sizes of this run (recorded by ``choose``)."""
    b = balance
    env = env_among(b.bytes_moved, b.instructions, b.stored_bytes, b.instructions_after)
    return choose(env, is_gain, _Question(balance, device))


def is_gain(question: _Question) -> bool:
    """Whether materializing values saves time."""
    return gain(question.balance, question.device) > 0


def materializable(fusion: Fusion, moved: bool = False) -> frozenset[str]:
    """The names of the values that ``materialize_invariants`` accepts.

    Materialized inputs are copied into the order of their dims. Outputs that are views stay views:
    neither their base nor the values between are accepted. Nor are values with a requested memory
    order.

    Parameters
    ----------
    moved : bool
        Whether to accept outputs of views that strides cannot express, and which are therefore no
        aliases. Only kernels that compute them at many positions gain by that.
    """
    seen = viewed_results(fusion)
    inputs = (v for v in fusion.inputs if v in fusion.consumers and v not in fusion.written)
    made = (node.out for node in fusion.nodes if is_fused(node) and not _is_view(node, seen, moved))
    found = (*(v for v in inputs if v not in seen), *made)
    return frozenset(value.name for value in found if value.is_tensor)


def _is_view(node: Node, seen: Collection[Value], moved: bool) -> bool:
    """Whether an output is, or is based on, the alias that a view gives."""
    call = as_call(node)
    form = call.op.form
    if node.out not in seen or not isinstance(form, View):
        return False
    return form.alias is not None or not moved or bool(requested_order(call))


def materialize_invariants(fusion: Fusion, names: Collection[str]) -> Fusion:
    """The fusion with some values materialized for all their users.

    A value that a lossless cast widened is stored in the narrow dtype, and widened after each load.

    Parameters
    ----------
    names : collection of str
        Of values among ``materializable(fusion)``, as ``kept_orders`` has them.
    """
    if not names:
        return fusion
    builder = GraphBuilder(*next_free(fusion))
    values, order = Substitution(), orders(names)

    def store(value: Value, loc: SourceLoc | None) -> None:
        builder.loc = loc
        makers = {out: node for node in builder.nodes for out in node.outs}
        given, dims = narrowed(value, makers, builder), order[value.name]
        if dims:
            given = builder.call("permute", given, dims)
        stored = builder.call("materialize", given)
        if dims:
            stored = builder.call("permute", stored, tuple(map(dims.index, range(len(dims)))))
        if stored.dtype is not value.dtype:
            stored = builder.call("cast", stored, value.dtype)
        values.set(value, stored)

    for value in fusion.inputs:
        if value.name in order:
            store(value, fusion.consumers[value][0].loc)
    for node in fusion.nodes:
        builder.nodes.append(values.node(node))
        if is_fused(node) and node.out.name in order:
            store(node.out, node.loc)
    return eliminate_dead_code(rebuilt(fusion, builder.nodes, values))
