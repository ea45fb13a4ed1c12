"""``Stream``: the facts of one tensor that a kernel reads or writes: bytes, strides, reuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class StrideTerm(NamedTuple):
    """One term of a tensor's offset: position ``p`` of an axis adds ``step * (p // div % extent)``.

    A tuple, for the fastest hash and comparison: the facts of tensors are looked up by their terms.

    Attributes
    ----------
    axis : int
        Index of the axis in ``Problem.axes``.
    div : int
        Number of adjacent positions of the axis that have the same offset.
    extent : int
        Number of steps before the term starts from 0 again.
    step : int
        The stride, in elements.
    is_indexed : bool
        The axis enters the offset through an index tensor: the elements may be anywhere, and
        ``step`` is only large enough that no two of them share a sector.
    """

    axis: int
    div: int
    extent: int
    step: int
    is_indexed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """One tensor that a kernel reads or writes.

    Attributes
    ----------
    item_bytes : int
        Bytes of an element in memory.
    along_x : bool
        It runs along axis x: its elements differ from one position of x to another.
    along_r : bool
        It runs along axis r.
    x_stride : int or None
        Stride along the innermost positions of x, in elements. 0 where the tensor does not run
        along x. None where the stride is not constant.
    r_stride : int or None
        The same for axis r.
    is_store : bool
        The kernel stores it; otherwise it loads it.
    is_late : bool
        No reduction along the rows needs it, as the weight of a norm: in kernels that read rows in
        several passes, only the last pass loads it.
    contiguous_run : int
        Number of innermost positions of x that are contiguous in memory. 0 where all of them are.
    x_same, r_same : int
        Number of adjacent positions of x, and of r, that have the same element.
    total_bytes : int
        Bytes of the elements that the kernel accesses, each once.
    accessed : (int, int)
        Share of the positions at which it is loaded or stored, as (numerator, denominator). It is
        masked at the others.
    held_bytes : int
        Bytes of the whole tensor in memory, if it is read at indices of another tensor; else 0.
    known_bytes : int
        Of ``total_bytes``, those that another load of the kernel fetches shortly before, so that
        they hit the L1 cache.
    stride_terms : tuple of StrideTerm
        The terms whose sum is its offset. Approximate where a sum of axes is divided.
    start : int
        Elements from the last boundary of a sector to where its offset begins, as behind a slice.
    """

    item_bytes: int
    along_x: bool = True
    along_r: bool = True
    x_stride: int | None = 1
    r_stride: int | None = 1
    is_store: bool = False
    is_late: bool = False
    contiguous_run: int = 0
    x_same: int = 1
    r_same: int = 1
    total_bytes: int = 1
    accessed: tuple[int, int] = (1, 1)
    held_bytes: int = 0
    known_bytes: int = 0
    stride_terms: tuple[StrideTerm, ...] = ()
    start: int = 0

    def __hash__(self) -> int:
        # A few facts in which nearly all tensors of a kernel differ: hashing all would be slow.
        return hash(
            (self.total_bytes, self.item_bytes, self.is_store, self.x_stride, self.r_stride)
        )

    @property
    def fetched_bytes(self) -> int:
        """Bytes that are fetched from the L2 cache or memory: those that miss the L1 cache."""
        return self.total_bytes - self.known_bytes

    @property
    def is_in_last_pass(self) -> bool:
        """Whether only the last pass over a row loads or stores it."""
        return self.is_store or self.is_late

    @property
    def accessed_share(self) -> float:
        """``accessed`` as a number."""
        part, whole = self.accessed
        return part / whole

    @property
    def fresh_share(self) -> float:
        """``fetched_bytes`` as a share of ``total_bytes``."""
        return self.fetched_bytes / max(self.total_bytes, 1)

    def sizes(self) -> list[int]:
        """The facts that may vary between runs."""
        found = [self.contiguous_run, self.x_same, self.r_same, self.total_bytes, self.known_bytes]
        found.append(self.held_bytes)
        found += [n for n in (self.x_stride, self.r_stride) if n is not None]
        for term in self.stride_terms:
            found += term.div, term.extent, term.step
        return found


def counted(streams: Sequence[Stream]) -> Mapping[Stream, int]:
    """Each tensor once, in order, with the number of those that have its facts: 1 for most."""
    found = dict.fromkeys(streams, 1)
    return found if len(found) == len(streams) else Counter(streams)
