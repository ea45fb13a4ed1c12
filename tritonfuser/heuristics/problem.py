"""The facts of one kernel that schedulers decide by: extents, traffic, device."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from ..device import DeviceProperties


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """One tensor a kernel reads or writes.

    ``item_bytes`` is the storage of an element; ``along_x``/``along_r`` tell which of the
    kernel's axes its elements run over; ``x_stride``/``r_stride`` the memory step in elements
    from one position of the axis to the next, 0 where it does not run along it and None where
    the step is not the same everywhere. ``run`` counts the positions of x that follow one another
    in memory before the tensor begins again or jumps, 0 where all do. ``total_bytes`` is what all
    its elements take.
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

    ``left_bytes`` and ``right_bytes`` are fetched for each element of an operand, more than it
    has where it is computed from wider tensors, or from several; ``descriptors`` whether the
    device's copy engine can fetch both operands' tiles; ``partial`` whether it is one of the parts
    that a longer sum was cut into. ``width`` columns are reduced behind it, 0 for none; ``beside``
    counts the bytes that are read and written behind it for each element of the result, and
    ``draws`` says whether random numbers are drawn for each.
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
    """One segment as schedulers see it.

    ``parallel`` positions (x) each reduce ``reduced`` elements (r); ``levels`` is how many
    reductions depend on one another in a row; ``full_outputs`` whether results run over both
    axes, ``dependent_outputs`` whether such results depend on a reduction of the kernel;
    ``outer_members`` counts reductions over the rows instead, each keeping ``chunks`` partial
    results a column; ``together`` positions of x have to be one program's, since results of theirs
    are reduced further; ``crossing`` is the extent of a second axis along which some tensors lie in
    memory (a transpose); ``work`` the number of ops an element takes; ``states`` the numbers that
    a lane keeps of a row it walks over (two for a mean with its spread); ``told`` how many sums of
    a row the programs that share it tell one another, 0 where they cannot; ``draws``
    says whether random numbers are drawn for its elements; ``online`` whether its reductions are a
    maximum and sums of exponentials below it; ``vector`` is how many elements a vector
    of 16 bytes has, where rows lie one behind another and begin inside of vectors, else 1;
    ``varies`` whether the length of rows does from run to run, so that they are not cut;
    ``product`` is the matrix product that the rest goes with.
    """

    parallel: int
    reduced: int = 1
    levels: int = 0
    full_outputs: bool = False
    dependent_outputs: bool = False
    scans: bool = False
    outer_members: int = 0
    chunks: int = 1
    together: int = 1
    crossing: int = 1
    streams: tuple[Stream, ...] = ()
    work: int = 1
    states: int = 1
    told: int = 0
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


MAX_TILE = 1 << 20
"""Triton's limit on the elements of one block (TRITON_MAX_TENSOR_NUMEL)."""
