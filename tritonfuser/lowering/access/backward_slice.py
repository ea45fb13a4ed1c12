"""``BackwardSlice``: the values that a value is computed from, back to what a kernel loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...ir import Fusion, Node, Value


class BackwardSlice:
    """A value, its operands, theirs, and so on, up to inputs of the fusion and loaded values.

    Iteration walks depth-first from the value, and gives each value once: with the node that
    computes it, or with None if the slice ends there.

    Parameters
    ----------
    is_loaded : callable
        Whether a kernel loads a value rather than compute it, from the value and its node.
    scalars : bool
        Whether operands that are numbers belong to the slice.

    Attributes
    ----------
    reached : set of Value
        The values that the walk has reached so far.
    """

    def __init__(
        self,
        fusion: Fusion,
        value: Value,
        is_loaded: Callable[[Value, Node], bool],
        *,
        scalars: bool = False,
    ) -> None:
        self._fusion, self._value = fusion, value
        self._is_loaded, self._scalars = is_loaded, scalars
        self.reached = {value}

    def __iter__(self) -> Iterator[tuple[Value, Node | None]]:
        stack = [self._value]
        while stack:
            value = stack.pop()
            node = self._fusion.producers.get(value)
            if node is not None and self._is_loaded(value, node):
                node = None
            yield value, node
            stack += [] if node is None else self._fresh(node)

    def _fresh(self, node: Node) -> list[Value]:
        """The operands of a node that are reached for the first time."""
        operands = (v for v in dict.fromkeys(node.operands()) if v.is_tensor or self._scalars)
        found = [value for value in operands if value not in self.reached]
        self.reached.update(found)
        return found
