"""What the emitter hands to the compiler: the text of a runnable module and how to launch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from ..dtypes import EIGHT_BIT_FLOATS, DataType
from ..errors import SourceLoc
from ..ir import Value


@dataclass(frozen=True, slots=True)
class KernelArg:
    """A run-time argument of a kernel.

    Attributes
    ----------
    name : str
        The argument's name.
    value : Value
        What is passed.
    is_tensor : bool
        Whether it is passed as a pointer; a scalar is passed by value.
    """

    name: str
    value: Value
    is_tensor: bool

    @property
    def dtype(self) -> DataType:
        """What a pointer points to, or what a scalar is passed as."""
        return self.value.dtype if self.is_tensor else passed_dtype(self.value)


def passed_dtype(scalar: Value) -> DataType:
    """The type a scalar is passed to a kernel as: Float for those that it would have as bytes."""
    return DataType.Float if scalar.dtype in EIGHT_BIT_FLOATS else scalar.dtype


@dataclass(frozen=True, slots=True)
class SizeArg:
    """A size that varies between runs, as a run-time argument.

    Attributes
    ----------
    name : str
        The argument's name.
    dtype : DataType
        Int32, or Int where positions need 64 bits.
    multiple : int
        A number that it is a multiple of in all runs.
    is_tensor : bool
        It is passed by value.
    """

    name: str
    dtype: DataType
    multiple: int = 1
    is_tensor: bool = False


@dataclass(frozen=True, slots=True)
class InverseArg:
    """One of the two numbers that a kernel divides by a size with, as a run-time argument.

    Attributes
    ----------
    size : str
        The size.
    dtype : DataType
        Int32 where the numbers that are divided have 32 bits, Int where they have 64.
    is_shift : bool
        Which one: of the pair ``inverse_of`` gives, the second.
    is_tensor : bool
        It is passed by value.
    """

    size: str
    dtype: DataType
    is_shift: bool
    is_tensor: bool = False

    @property
    def name(self) -> str:
        """``size0_inverse`` and ``size0_shift``, ``size0_long_inverse`` of 64 bits."""
        long = "_long" if self.dtype is DataType.Int else ""
        return f"{self.size}{long}_{'shift' if self.is_shift else 'inverse'}"


WORKSPACE = "workspace_ptr"
"""The name of the argument that is a cooperative kernel's workspace."""


@dataclass(frozen=True, slots=True)
class CooperativeWorkspace:
    """Memory in which the programs of a launch publish results, as a run-time argument.

    Attributes
    ----------
    name : str
        The argument's name.
    dtype : DataType
        Of a word: Int32 for floats of 32 bits, Int for doubles.
    count : int
        Words. All are -1 before the kernel starts.
    is_tensor : bool
        It is passed as a pointer.
    """

    name: str
    dtype: DataType
    count: int
    is_tensor: bool = True

    @property
    def made(self) -> str:
        """How torch makes it, with ``{}`` for the device."""
        return f"torch.full(({self.count},), -1, dtype={self.dtype.info.torch}, device={{}})"


ARRIVALS = "arrivals_ptr"
"""The name of the argument with the counters of programs that have arrived."""


@dataclass(frozen=True, slots=True)
class ArrivalCounters:
    """Counters of the programs that have done their part, as a run-time argument.

    Attributes
    ----------
    count : int
        Counters. All are 0 before the kernel starts, and after it.
    is_tensor : bool
        It is passed as a pointer.
    """

    count: int
    is_tensor: bool = True

    @property
    def name(self) -> str:
        """The argument's name."""
        return ARRIVALS

    @property
    def dtype(self) -> DataType:
        """Of a counter."""
        return DataType.Int32

    @property
    def made(self) -> str:
        """How torch makes it, with ``{}`` for the device."""
        return f"torch.zeros(({self.count},), dtype={self.dtype.info.torch}, device={{}})"


Argument = Union[KernelArg, SizeArg, InverseArg, CooperativeWorkspace, ArrivalCounters]


InPlace = tuple[Value, Value]
"""A result, and the input whose memory a kernel may store it into."""


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One generated ``@triton.jit`` kernel.

    Attributes
    ----------
    name : str
        The kernel function's name, made by us: ``[a-z0-9_]+``.
    text : str
        A whole module: imports, the kernel, and a ``launch`` function taking tensors.
    args : tuple of KernelArg
        The run-time arguments in order.
    sizes : tuple of SizeArg
        The sizes behind them; none where all sizes are written out.
    inverses : tuple of InverseArg
        What it divides by sizes with, behind them.
    constants : tuple of (str, int)
        The ``tl.constexpr`` arguments behind all others, such as ``("XBLOCK", 1024)``.
    grid : tuple of int
        Number of programs along x, y, z.
    num_warps : int
        Warps of a program.
    num_stages : int
        Depth of the software pipeline of its loops.
    unaligned : frozenset of str
        Pointers that are not declared aligned, so that their loads are not vectorized.
    follows : bool
        Whether it waits by itself for the kernel before it, so it may be launched early.
    workspace : CooperativeWorkspace or None
        The last run-time argument, where programs wait for one another. All of them must be
        resident at once. None for other kernels.
    arrivals : ArrivalCounters or None
        The last run-time argument, where the last programs that arrive finish what others began.
    max_registers : int
        Limit on the registers of a thread; 0 for the compiler's choice.
    room : int
        Registers of a thread with which as many programs run at a time as with fewer, since the
        grid has no more programs. 0 where that is not known.
    register_limits : tuple of int
        Registers of a thread with which 2, 3, ... programs run at a time on a multiprocessor, as
        far as that is expected.
    asserts : bool
        Whether it is to be compiled with its assertions.
    in_place : tuple of (Value, Value)
        Results that may be stored into the memory of an input: (result, input).
    lines : tuple of (int, SourceLoc)
        1-based line of the text -> the user's line it was generated for.
    index_ops : tuple of (int, str)
        1-based line of the text -> the op whose indices it checks.
    """

    name: str
    text: str
    args: tuple[KernelArg, ...]
    constants: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    lines: tuple[tuple[int, SourceLoc], ...] = ()
    index_ops: tuple[tuple[int, str], ...] = ()
    sizes: tuple[SizeArg, ...] = ()
    inverses: tuple[InverseArg, ...] = ()
    unaligned: frozenset[str] = frozenset()
    follows: bool = False
    workspace: CooperativeWorkspace | None = None
    arrivals: ArrivalCounters | None = None
    max_registers: int = 0
    room: int = 0
    register_limits: tuple[int, ...] = ()
    asserts: bool = False
    in_place: tuple[InPlace, ...] = ()

    @property
    def passed(self) -> tuple[Argument, ...]:
        """All run-time arguments, in order."""
        memory = (item for item in (self.workspace, self.arrivals) if item is not None)
        return (*self.args, *self.sizes, *self.inverses, *memory)
