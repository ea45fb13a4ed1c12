"""In-place results: outputs that a kernel may store into the memory of an input that it loads.

``add_output(p - lr * g, alias_input=p)`` needs no buffer of its own, and no copy after the kernel,
if every load of ``p[i]`` comes before the store of ``result[i]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...ir import Fusion, Value
from ...ops.builder import op_of
from ...ops.forms import Pointwise
from ...symbolic.queries import is_known_equal
from ..access.reads import Read
from ..access.traffic import offset_of
from ..kernel_source import InPlace
from ..segments.segment import Segment
from ..segments.store import Store
from ..tile.nest import Nest
from ..tile.tiled_segment import TiledSegment
from .body import Body
from .lines import Line

BARRIER = "tl.debug_barrier()"
"""A barrier of the threads of a program: all loads before it come before all stores after it."""


def in_place(
    fusion: Fusion, tiled: TiledSegment, body: Body, lines: Sequence[Line]
) -> tuple[tuple[InPlace, ...], list[Line]]:
    """The outputs that may be stored into the inputs that they replace, and the lines of the kernel
    with the barriers for it.

    Either the segment does not load the input, or these hold:

    - One statement loads the input, and one stores the result: the same element at each position.
    - Each element is loaded by one program alone, which also stores it. Or else the result is the
      only stored value that depends on the input, by pointwise ops alone: a program that does not
      store the element may load its old or its new value.
    - The load comes before the store, outside of loops, with a barrier between them. So no thread
      stores an element before all threads of the program have loaded theirs, in any layout.

    Parameters
    ----------
    body : Body
        Of the segment's kernel, when it is written.
    lines : sequence of Line
        The lines that it has written.
    """
    segment = tiled.segment
    found = []
    for out in fusion.outputs:
        if out.alias_of is None or not _is_stored_once(out.value, body.stored):
            continue
        pair = out.value, out.alias_of
        if out.alias_of not in segment.inputs or _replaces(tiled, body, *pair, lines):
            found.append(pair)
    return tuple(found), _with_barriers(lines, found)


def launched_in_place(pieces: Iterable[tuple[Segment, Sequence[InPlace]]]) -> tuple[InPlace, ...]:
    """The in-place results of a launch with several segments: none of the others may load the
    input."""
    made = list(pieces)
    return tuple(
        (result, given)
        for own, pairs in made
        for result, given in pairs
        if not any(given in other.inputs for other, _ in made if other is not own)
    )


def _is_stored_once(result: Value, stores: Sequence[Store]) -> bool:
    """Whether one statement stores all of the result, as it is computed."""
    found = [store for store in stores if store.value == result]
    return len(found) == 1 and found[0].part is None and found[0].source is None


def _replaces(
    tiled: TiledSegment, body: Body, result: Value, given: Value, lines: Sequence[Line]
) -> bool:
    loads = [read for read in body.loaded if read.value == given]
    (store,) = (store for store in body.stored if store.value == result)
    # Programs of other nests share rows, or process tiles in an order of their own.
    if type(tiled.nest) is not Nest or tiled.nest.row_split is not None or len(loads) != 1:
        return False
    if offset_of(loads[0].index, tiled.inputs[given]) != offset_of(
        store.index, tiled.outputs[result]
    ):
        return False
    is_alone = loads[0].guards == store.guards and _is_by_one_program(tiled.nest, loads[0])
    if not is_alone and not _is_for_result_alone(tiled.segment, result, given):
        return False
    first = [place for place, line in enumerate(lines) if line.loads == given.name]
    then = [place for place, line in enumerate(lines) if line.stores == result.name]
    in_loops = any(lines[place].depth for place in (*first, *then))
    return len(first) == len(then) == 1 and first < then and not in_loops


def _is_by_one_program(nest: Nest, read: Read) -> bool:
    """Whether no two programs load the same element.

    This holds if the load runs along all axes of the grid: it loads the element that is stored at
    the same position, and each element is stored once.
    """
    names = {axis.name for item in read.index for axis in item.axes()}
    spread = (tile for tile, count in nest.grid if not is_known_equal(count, 1))
    return all(tile.name in names for tile in spread)


def _is_for_result_alone(segment: Segment, result: Value, given: Value) -> bool:
    """Whether the result is the only stored value that depends on an input, by pointwise ops alone.

    Other ops may use the loaded value as an index, which has to be in range.
    """
    dependent = {given}
    for node in segment.nodes:
        if dependent.isdisjoint(node.operands()):
            continue
        if not isinstance(op_of(node).form, Pointwise):
            return False
        dependent.update(node.outs)
    return dependent.intersection(segment.outputs) == {result}


def _with_barriers(lines: Sequence[Line], pairs: Iterable[InPlace]) -> list[Line]:
    """The lines with a barrier before each in-place store, unless one has come since the load."""
    replaced = {result.name: given.name for result, given in pairs}
    loaded: set[str] = set()
    made: list[Line] = []
    for line in lines:
        if line.stores in replaced and replaced[line.stores] in loaded:
            made.append(Line(BARRIER))
            loaded.clear()
        loaded.add(line.loads)
        made.append(line)
    return made
