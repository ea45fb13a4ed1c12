"""``KnownTraffic``: loads and stores as functions of axes, each found once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...ir import Fusion, Value
from ...shapes.index_map import Index
from ..access.aliases import buffer_strides
from ..access.reads import Guards, Read
from ..access.traffic import Traffic, accessed_most, offset_of, share_of
from ..segments.store import Store


class KnownTraffic:
    """The traffic of reads and stores. Groups ask again for each value that they are offered.

    Parameters
    ----------
    ranks : mapping of Value to int
        The position of each value in the fusion.
    """

    def __init__(self, fusion: Fusion, ranks: Mapping[Value, int]) -> None:
        self._fusion = fusion
        self._ranks = ranks
        self._known: dict[tuple[Value, Index, Guards, bool], Traffic] = {}

    def __call__(self, reads: Iterable[Read], stores: Iterable[Store] = ()) -> list[Traffic]:
        """Loads and stores of tensors as functions of the axes, in the values' order."""
        found = [self._of(r.value, r.index, r.guards) for r in reads if r.value.is_tensor]
        found += map(self.of_store, stores)
        return accessed_most(found)

    def of_store(self, store: Store) -> Traffic:
        """One store as a function of the axes."""
        guards = (*store.guards, *store.target.guards)
        return self._of(store.value, store.target.index, guards, is_store=True)

    def _of(self, value: Value, index: Index, guards: Guards, is_store: bool = False) -> Traffic:
        key = value, index, guards, is_store
        if key not in self._known:
            offset, share = offset_of(index, buffer_strides(self._fusion, value)), share_of(guards)
            self._known[key] = Traffic(value, offset, is_store, self._ranks[value], share)
        return self._known[key]
