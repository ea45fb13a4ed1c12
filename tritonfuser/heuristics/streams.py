"""The facts of one tensor that a kernel reads or writes: bytes, strides, reuse by neighbours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StrideTerm:
    """One term of a tensor's offset: position ``p`` of an axis adds ``step * (p // div % extent)``.

    Attributes
    ----------
    axis : int
        The place of the axis among ``Problem.axes``.
    div : int
        Neighbouring positions of the axis that have the same offset.
    extent : int
        Steps before the term starts from 0 again.
    step : int
        The stride: elements of memory from one step to the next.
    is_indexed : bool
        The axis is one that an index tensor is read along, and the step stands for anywhere.
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
        Its elements differ along axis x.
    along_r : bool
        Its elements differ along axis r.
    x_stride : int or None
        Elements of memory from one position of x to the next. 0 where the tensor does not run along
        x. None where the stride is not the same everywhere.
    r_stride : int or None
        The same for axis r.
    is_store : bool
        The kernel writes it.
    is_late : bool
        No reduction of its rows needs it, as the weight of a norm: where rows are read more than
        once, it is loaded in the last pass alone.
    contiguous_run : int
        Positions of x that are contiguous in memory before the tensor repeats or jumps. 0 where all
        of them are.
    x_same, r_same : int
        Neighbouring positions of x, and of r, that have the same element.
    total_bytes : int
        Bytes of all its elements.
    accessed : (int, int)
        The share of positions at which it is loaded or stored, as numerator and denominator: others
        are masked.
    held_bytes : int
        Bytes of the whole tensor in memory, where it is read at an index of another tensor; else 0.
    known_bytes : int
        Those of them that another load of the kernel has, at places so near that the L1 cache
        still has them.
    stride_terms : tuple of StrideTerm
        Its offset: the sum of these terms. What is read at an index of another
        tensor may be anywhere: the steps of its terms are so large that no two elements share a
        sector. Where a sum of axes is divided, the terms are approximate.
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

    def __hash__(self) -> int:
        # What nearly all tensors of a kernel differ in: they are keys, with many facts.
        return hash(
            (self.total_bytes, self.item_bytes, self.is_store, self.x_stride, self.r_stride)
        )

    @property
    def fetched_bytes(self) -> int:
        """Bytes that the L2 cache or memory is asked for."""
        return self.total_bytes - self.known_bytes

    @property
    def is_in_last_pass(self) -> bool:
        """Whether the last pass over a row alone loads or stores it."""
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
