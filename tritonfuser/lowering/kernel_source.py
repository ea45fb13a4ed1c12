"""What the emitter hands to the compiler: the text of a runnable module and how to launch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from ..dtypes import EIGHT_BIT_FLOATS, DataType
from ..errors import SourceLoc
from ..ir import Value


@dataclass(frozen=True, slots=True)
class KernelArg:
    """One run-time argument of a kernel, in order: a tensor's pointer or a scalar's value."""

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
    """A size that varies between runs, as a run-time argument: a multiple of a number."""

    name: str
    dtype: DataType
    multiple: int = 1
    is_tensor: bool = False


@dataclass(frozen=True, slots=True)
class CooperativeWorkspace:
    """Memory by which the programs of a launch tell one another results, as an argument.

    It has ``count`` words of ``dtype``, all of them -1 before the kernel starts.
    """

    name: str
    dtype: DataType
    count: int
    is_tensor: bool = True

    @property
    def made(self) -> str:
        """How torch makes it, with ``{}`` for the device."""
        return f"torch.full(({self.count},), -1, dtype={self.dtype.info.torch}, device={{}})"


Argument = Union[KernelArg, SizeArg, CooperativeWorkspace]


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
        Those that follow them: none where all sizes are written out.
    constants : tuple of (str, int)
        The ``tl.constexpr`` arguments that follow those, such as ``("XBLOCK", 1024)``.
    grid : tuple of int
        Number of programs along x, y, z.
    num_warps, num_stages : int
        Compile options.
    unaligned : frozenset of str
        Arguments that are not to be called aligned, even where they are.
    follows : bool
        Whether it waits by itself for the kernel before it, and may be started early.
    workspace : CooperativeWorkspace or None
        The last run-time argument, where programs wait for one another: all must run at a time.
    max_registers : int
        Most registers of a thread, 0 for as many as the compiler takes.
    lines : tuple of (int, SourceLoc)
        1-based line of the text -> the user's line it was generated for.
    """

    name: str
    text: str
    args: tuple[KernelArg, ...]
    constants: tuple[tuple[str, int], ...]
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    lines: tuple[tuple[int, SourceLoc], ...] = ()
    sizes: tuple[SizeArg, ...] = ()
    unaligned: frozenset[str] = frozenset()
    follows: bool = False
    workspace: CooperativeWorkspace | None = None
    max_registers: int = 0

    @property
    def passed(self) -> tuple[Argument, ...]:
        """All run-time arguments, in order."""
        return (*self.args, *self.sizes, *((self.workspace,) if self.workspace else ()))
