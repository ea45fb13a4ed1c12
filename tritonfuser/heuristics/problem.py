"""The facts of one kernel that schedulers decide by: extents, traffic, device."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from ..device import DeviceProperties


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """One tensor that a kernel reads or writes.

    Attributes
    ----------
    item_bytes : int
        Bytes of an element in memory.
    along_x, along_r : bool
        Whether its elements run over the kernel's axes x and r.
    x_stride, r_stride : int or None
        Elements of memory from one position of the axis to the next: 0 where it does not run along
        the axis, None where the step is not the same everywhere.
    is_store : bool
        It is written.
    run : int
        Positions of x that are neighbours in memory before the tensor begins again or jumps.
        0 where all of them are.
    total_bytes : int
        Bytes of all its elements.
    """

    item_bytes: int
    along_x: bool = True
    along_r: bool = True
    x_stride: int | None = 1
    r_stride: int | None = 1
    is_store: bool = False
    run: int = 0
    total_bytes: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """A matrix product ``[batch, m, k] x [batch, k, n]``.

    Attributes
    ----------
    batch, m, n, k : int
        Its extents.
    left_bytes, right_bytes : int
        Bytes fetched for each element of an operand: more than an element has where the operand is
        computed from wider tensors, or from several.
    descriptors : bool
        The device's copy engine can fetch tiles of both operands.
    partial : bool
        It is one of the parts that a longer sum over k was cut into.
    width : int
        Columns that are reduced behind it. 0 for none.
    beside : int
        Bytes read and written behind it for each element of the result.
    draws : bool
        Random numbers are drawn for each element of the result.
    """

    batch: int
    m: int
    n: int
    k: int
    left_bytes: int = 2
    right_bytes: int = 2
    descriptors: bool = False
    partial: bool = False
    width: int = 0
    beside: int = 0
    draws: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One segment as schedulers see it. Extents are hints where sizes vary.

    Attributes
    ----------
    parallel : int
        Positions of axis x: results, or rows. At least 0.
    reduced : int
        Elements of axis r that each position reduces or scans. 1 where nothing is reduced.
    levels : int
        Longest chain of reductions along r that depend on one another. 0 without reductions.
    full_outputs : bool
        Some results run over both axes.
    dependent_outputs : bool
        Some results over both axes depend on a reduction of the kernel.
    scans : bool
        Some member is a scan.
    outer_members : int
        Reductions over the rows (x) rather than along them.
    chunks : int
        Partial results a column that each outer reduction keeps.
    co_reduced : int
        Neighbouring positions of x whose results are reduced once more, so that one program must
        hold them all. 1 where there are none.
    crossing : int
        Extent of a second axis along which some tensors are contiguous (a transpose). 1 if none.
    streams : tuple of Stream
        The tensors that are read and written.
    work : int
        Ops that an element takes.
    states : int
        Numbers that a lane carries along a row that it walks over: 2 for mean and variance.
    published_sums : int
        Sums of a row that programs sharing it have to exchange. 0 where they cannot share rows.
    draws : bool
        Random numbers are drawn for each element.
    online : bool
        The reductions are a maximum and sums of exponentials below it (softmax).
    vector : int
        Elements of a 16-byte vector where rows are contiguous and begin inside vectors, else 1.
    varies : bool
        The length of a row varies from run to run, so that rows are not cut into tails.
    product : Product or None
        The matrix product that the rest is fused with.
    device : DeviceProperties
        The device to schedule for.
    """

    parallel: int
    reduced: int = 1
    levels: int = 0
    full_outputs: bool = False
    dependent_outputs: bool = False
    scans: bool = False
    outer_members: int = 0
    chunks: int = 1
    co_reduced: int = 1
    crossing: int = 1
    streams: tuple[Stream, ...] = ()
    work: int = 1
    states: int = 1
    published_sums: int = 0
    draws: bool = False
    online: bool = False
    vector: int = 1
    varies: bool = False
    product: Product | None = None
    device: DeviceProperties

    @property
    def inner(self) -> bool:
        """Whether most of the bytes lie contiguously along the reduced axis."""
        full = [s for s in self.streams if s.along_x and s.along_r]
        along_r = sum(s.total_bytes for s in full if s.r_stride == 1)
        along_x = sum(s.total_bytes for s in full if s.x_stride == 1)
        return along_r >= along_x

    @property
    def narrowest(self) -> int:
        """Bytes of the smallest item of the tensors that run over every element."""
        full = [s.item_bytes for s in self.streams if s.along_x]
        return min(full, default=4)

    @property
    def widest(self) -> int:
        return max((s.item_bytes for s in self.streams), default=4)

    @property
    def on_cpu(self) -> bool:
        return self.device.arch == "cpu"


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n`` and at least 1."""
    return 1 << max(n - 1, 0).bit_length()


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def divisors(n: int) -> list[int]:
    """All divisors of a number, the smallest first."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
