"""Applies the splits of a given schedule, or refuses those that do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....errors import ParamsError
from ....heuristics.schedule import ReductionSplit
from ....ir import Fusion, Node, Value
from ....ops.builder import as_call
from ....ops.forms import Contraction, Moments, Reduction, Scan
from ....ops.mma import product_sizes
from ....ops.shape_rules import int_attr
from ....ops.table import Form
from ....symbolic.queries import assume_at_most, assume_equal, assume_multiple
from ...groups.anchor_maker import AnchorMaker
from ...groups.online_pairs import online_pairs
from ...passes.splits.parts import (
    AlongMaximum,
    Interleaved,
    Padded,
    Parts,
    Remainder,
    reduced_extents,
)
from ...passes.splits.remainders import may_leave_remainder, padded_if_short
from ...passes.splits.split_factors import cut_dims, split_factors
from ...passes.splits.split_reduction import TwoSteps, split_reductions

SplitParts = int | tuple[int, ...] | Interleaved | Padded | Remainder
"""The parts of a reduction that is split by itself."""


def split_as(fusion: Fusion, splits: Sequence[ReductionSplit], field: str) -> TwoSteps:
    """The fusion with the named reductions in two steps.

    Raises
    ------
    ParamsError
        A name is of no reduction, or its parts are of no use.
    """
    if not splits:
        return TwoSteps(fusion)
    possible = {
        node.out.name: node.out for node in fusion.nodes if type(as_call(node).op.form) in _READERS
    }
    parts: dict[Value, Parts] = {}
    for place, split in enumerate(splits):
        path = f"{field}[{place}]"
        value = _named_value(possible, split.value, f"{path}.value")
        if value in parts:
            raise ParamsError(f"{path}.value: {split.value} is split already")
        parts[value] = _given_parts(fusion, value, split, possible, path)
    for place, split in enumerate(splits):
        _refuse_unrelated_maximum(fusion, possible[split.value], parts, f"{field}[{place}].parts")
    return split_reductions(fusion, parts)


def _named_value(possible: Mapping[str, Value], name: str, path: str) -> Value:
    if name not in possible:
        raise ParamsError(
            f"{path}: expected a reduction, a scan or a matrix product "
            f"({', '.join(possible) or 'none'}), got {name!r}"
        )
    return possible[name]


def _given_parts(
    fusion: Fusion, value: Value, split: ReductionSplit, possible: Mapping[str, Value], path: str
) -> Parts:
    """The parts of a split, in which each step has something to reduce."""
    if isinstance(split.parts, str):
        _refuse_fields(split, path, "interleave", "padded", "remainder")
        return AlongMaximum(_named_value(possible, split.parts, f"{path}.parts"))
    node = fusion.producers[value]
    return _READERS[type(as_call(node).op.form)](node, split, path)


def _parts_of_reduction(node: Node, split: ReductionSplit, path: str) -> SplitParts:
    """A number of parts of all that is reduced, or a factor of each reduced dim."""
    if isinstance(split.parts, tuple):
        _refuse_fields(split, path, "remainder")
        if split.padded == -1:
            _refuse_fields(split, path, "interleave")
    wanted = _parts_of_fields(node, split, path)
    if not _has_two_steps(node, wanted):
        raise ParamsError(
            f"{path}.parts: expected parts of the reduced extents {list(reduced_extents(node))} "
            f"that leave something to both steps, got {_printable(split.parts)}"
        )
    return wanted


def _has_two_steps(node: Node, wanted: SplitParts) -> bool:
    """Whether each of the two steps reduces something."""
    if isinstance(wanted, Remainder):
        wanted = padded_if_short(node, wanted)
    if isinstance(wanted, Remainder):
        return True
    found = split_factors(node, wanted)
    if found is None:
        return False
    sizes = [*as_call(node).value("arg").tensor.sizes]
    if found.padded is not None:
        dim, size = found.padded
        if isinstance(as_call(node).op.form, Moments) and assume_equal(found.factors[dim], size):
            return False  # parts of one element: they have no moments
        sizes[dim] = size
    cut = cut_dims(sizes, found)
    return bool(cut.first and cut.second)


def _refuse_fields(split: ReductionSplit, path: str, *names: str) -> None:
    """Refuse what is read of a number of parts of a reduction, or of a padded dim, alone."""
    for name in names:
        unset = {"interleave": 0, "padded": -1, "remainder": False}[name]
        if getattr(split, name) != unset:
            raise ParamsError(
                f"{path}.{name}: expected {unset} where parts are not a number of parts of a "
                f"reduction, got {getattr(split, name)}"
            )


def _parts_of_product(node: Node, split: ReductionSplit, path: str) -> SplitParts:
    """A number of parts that K has."""
    _refuse_fields(split, path, "interleave", "padded", "remainder")
    inner, wanted = product_sizes(as_call(node))[3], split.parts
    fits = isinstance(wanted, int) and wanted >= 2 and assume_multiple(inner, wanted)
    if not fits or not isinstance(wanted, int):
        raise ParamsError(
            f"{path}.parts: expected a divisor of K, {inner}, 2 or more, got {_printable(wanted)}"
        )
    return wanted


def _parts_of_scan(node: Node, split: ReductionSplit, path: str) -> SplitParts:
    """A number of parts of a row, of two elements or more."""
    _refuse_fields(split, path, "interleave", "padded", "remainder")
    call, wanted = as_call(node), split.parts
    extent = call.value("arg").tensor.sizes[int_attr(call, "dim")]
    if not isinstance(wanted, int) or wanted < 2 or not assume_at_most(2 * wanted, extent):
        raise ParamsError(
            f"{path}.parts: expected 2 parts or more of a row of {extent} elements, of 2 elements "
            f"or more each, got {_printable(wanted)}"
        )
    return wanted


_READERS: dict[type[Form], Callable[[Node, ReductionSplit, str], SplitParts]] = {
    Reduction: _parts_of_reduction,
    Moments: _parts_of_reduction,
    Contraction: _parts_of_product,
    Scan: _parts_of_scan,
}
"""What reads the parts of an op's split, by the lowering form of the op."""


def _parts_of_fields(node: Node, split: ReductionSplit, path: str) -> SplitParts:
    """The parts of a reduction as the pass takes them."""
    wanted = split.parts
    _refuse_padding(node, split, path)
    if isinstance(wanted, tuple):
        return _given_factors(node, wanted, split, path)
    assert isinstance(wanted, int)
    if wanted < 2:
        raise ParamsError(f"{path}.parts: expected 2 or more, got {wanted}")
    if split.remainder:
        if not may_leave_remainder(node):
            raise ParamsError(
                f"{path}.remainder: expected false but for sums, products, maxima, minima and "
                f"moments over neighbouring dims, got true for {node.op} over "
                f"{list(as_call(node).dims())}"
            )
        if split.padded != -1:
            raise ParamsError(f"{path}.padded: expected -1 with a remainder, got {split.padded}")
        return Remainder(wanted, split.interleave)
    if split.padded != -1:
        return Padded(split.padded, wanted, bool(split.interleave))
    return Interleaved(wanted, split.interleave) if split.interleave else wanted


def _given_factors(
    node: Node, wanted: tuple[int, ...], split: ReductionSplit, path: str
) -> tuple[int, ...] | Padded:
    """A factor of each reduced dim, or parts of a padded one."""
    extents = reduced_extents(node)
    if len(wanted) != len(extents) or 0 in wanted:
        raise ParamsError(
            f"{path}.parts: expected a factor for each of {len(extents)} reduced dims, not 0, "
            f"got {list(wanted)}"
        )
    if split.padded != -1:
        return _parts_of_positions(wanted, split, path)
    pairs = zip(wanted, extents, strict=True)
    return tuple(_given_factor(n, extent, f"{path}.parts") for n, extent in pairs)


def _refuse_padding(node: Node, split: ReductionSplit, path: str) -> None:
    """Refuse to pad a dim that is not there, or the operand of an op without a neutral element."""
    paddable = isinstance(as_call(node).op.form, Reduction | Moments)
    dims = len(reduced_extents(node)) if paddable else 0
    if split.padded >= dims:
        raise ParamsError(
            f"{path}.padded: expected -1, or the place of one of {dims} reduced dims that can "
            f"be padded, got {split.padded}"
        )


def _parts_of_positions(wanted: tuple[int, ...], split: ReductionSplit, path: str) -> Padded:
    """Parts of a padded dim, for each position of other dims."""
    place, count = split.padded, wanted[split.padded]
    second = tuple(at for at, each in enumerate(wanted) if each == -1)
    others = (each for at, each in enumerate(wanted) if at != place)
    if count < 2 or not second or any(each not in (-1, 1) for each in others):
        raise ParamsError(
            f"{path}.parts: expected 2 or more parts of the padded dim, -1 for some others of "
            f"which each position has parts of its own, and 1 for the rest, got {list(wanted)}"
        )
    return Padded(place, count, bool(split.interleave), second)


def _given_factor(wanted: int, extent: int, path: str) -> int:
    """A factor of an extent. ``-n`` leaves ``n`` elements to the first step."""
    if not assume_multiple(extent, abs(wanted)):
        raise ParamsError(f"{path}: expected a divisor of {extent}, got {wanted}")
    return wanted if wanted > 0 else extent // -wanted


def _refuse_unrelated_maximum(
    fusion: Fusion, value: Value, parts: Mapping[Value, Parts], path: str
) -> None:
    """Refuse a sum in the parts of a maximum where it is not one of exponentials below that."""
    wanted = parts[value]
    if not isinstance(wanted, AlongMaximum):
        return
    nodes = [fusion.producers[v] for v in (value, wanted.maximum)]
    maker = AnchorMaker(fusion)
    reductions = [n for n in nodes if isinstance(as_call(n).op.form, Reduction)]
    members = {n.out: maker.reducer(n).member for n in reductions}
    found = online_pairs(fusion, {v: m for v, m in members.items() if m is not None})
    if value not in found or isinstance(parts.get(wanted.maximum), AlongMaximum | None):
        raise ParamsError(
            f"{path}: expected a maximum that is split, and below which {value.name} sums "
            f"exponentials, got {wanted.maximum.name!r}"
        )


def _printable(parts: object) -> object:
    return list(parts) if isinstance(parts, tuple) else parts
