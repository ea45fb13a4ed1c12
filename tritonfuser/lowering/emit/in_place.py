"""Results that a kernel may store into the memory of an input that it loads.

``add_output(p - lr * g, alias_input=p)`` needs no buffer, and no copy behind the kernel, where
``p[i]`` has been loaded by all that need it when ``result[i]`` is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...device import AMD_WAVEFRONT_SIZE
from ...ir import Fusion, Value
from ...symbolic.queries import is_known_equal
from ..access.read_footprint import Read
from ..access.traffic import offset_of
from ..kernel_source import InPlace
from ..segments import Segment, Store
from ..tile.nest import Nest
from ..tile.tiled_segment import TiledSegment
from .bodies import Body


def in_place(fusion: Fusion, tiled: TiledSegment, body: Body) -> tuple[InPlace, ...]:
    """The outputs that replace an input, stored by a segment that may store them there.

    Either the segment does not load the input, or these hold:

    - One statement loads it, and one stores the result: the same element at each position. So no
      element is loaded after it has been stored, and none by another program: programs differ in
      the elements that they store.
    - The result is computed from what is loaded. So a thread that stores an element waits until it
      has been loaded, by whatever thread loads it.
    - Each element is loaded by one thread, or what the others load is of no use: nothing else is
      computed from it.

    Parameters
    ----------
    body : Body
        Of the segment's kernel, when it is written.
    """
    segment = tiled.segment
    found = []
    for out in fusion.outputs:
        if out.alias_of is None or not _is_stored_once(out.value, body.stored):
            continue
        apart = out.alias_of not in segment.inputs
        if apart or _replaces(fusion, tiled, body, out.value, out.alias_of):
            found.append((out.value, out.alias_of))
    return tuple(found)


def launched_in_place(pieces: Iterable[tuple[Segment, Sequence[InPlace]]]) -> tuple[InPlace, ...]:
    """Those of a launch that computes several segments: no other of them may load the input."""
    made = list(pieces)
    return tuple(
        (result, given)
        for own, pairs in made
        for result, given in pairs
        if not any(given in other.inputs for other, _ in made if other is not own)
    )


def _is_stored_once(result: Value, stores: Sequence[Store]) -> bool:
    """Whether one statement stores it, as it is computed."""
    found = [store for store in stores if store.value == result]
    return len(found) == 1 and found[0].part is None and found[0].source is None


def _replaces(fusion: Fusion, tiled: TiledSegment, body: Body, result: Value, given: Value) -> bool:
    loads = [read for read in body.loaded if read.value == given]
    (store,) = (store for store in body.stored if store.value == result)
    if type(tiled.nest) is not Nest or tiled.nest.row_split is not None or len(loads) != 1:
        return False
    here, there = _place(tiled, loads[0]), _place(tiled, store)
    if here != there or not _is_by_one_program(tiled.nest, loads[0]):
        return False
    made_of_it = _computed_from(fusion, tiled.segment, given)
    others = [value for value in tiled.segment.outputs if value != result and value in made_of_it]
    return result in made_of_it and (not others or _is_by_one_thread(tiled, loads[0]))


def _place(tiled: TiledSegment, access: Read | Store) -> object:
    """The offset in elements that is loaded or stored, and where."""
    if isinstance(access, Store):
        return offset_of(access.index, tiled.outputs[access.value]), access.guards
    return offset_of(access.index, tiled.inputs[access.value]), access.guards


def _is_by_one_program(nest: Nest, read: Read) -> bool:
    """Whether programs differ in the elements of a load."""
    names = _axes(read)
    spread = (tile for tile, count in nest.grid if not is_known_equal(count, 1))
    return all(tile.name in names for tile in spread)


def _is_by_one_thread(tiled: TiledSegment, read: Read) -> bool:
    """Whether a tile of a load has an element for each thread, so that threads share none."""
    names = _axes(read)
    tiles = (tile for tile in tiled.nest.tiles if tile.block is not None and tile.name in names)
    threads = tiled.segment.kernel_params.num_warps * AMD_WAVEFRONT_SIZE
    return prod(tile.width for tile in tiles) >= threads


def _axes(read: Read) -> set[str]:
    return {axis.name for item in read.index for axis in item.axes()}


def _computed_from(fusion: Fusion, segment: Segment, given: Value) -> set[Value]:
    """What a segment computes from an input, in any number of steps."""
    found = {given}
    own = set(segment.nodes)
    for node in fusion.nodes:
        if node in own and not found.isdisjoint(node.operands()):
            found.update(node.outs)
    return found
