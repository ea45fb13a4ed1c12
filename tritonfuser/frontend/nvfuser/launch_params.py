"""nvFuser's ``LaunchParams`` and ``CompileParams``: what a program may say of a CUDA launch.

They can be made, read and compared. Grids, blocks and registers are what the params of a
scheduler say (``fd.heuristics(inputs)``), so nothing reads them here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dtypes import DataType


@dataclass
class LaunchParams:
    """The extents of a CUDA grid and block; -1 where nothing is asked for.

    Attributes
    ----------
    gdimx, gdimy, gdimz : int
        Blocks of the grid.
    bdimx, bdimy, bdimz : int
        Threads of a block.
    smem : int
        Bytes of shared memory.
    """

    gdimx: int = -1
    gdimy: int = -1
    gdimz: int = -1
    bdimx: int = -1
    bdimy: int = -1
    bdimz: int = -1
    smem: int = 0


@dataclass
class CompileParams:
    """How nvFuser compiles a kernel.

    Attributes
    ----------
    index_type : DataType, optional
        The dtype of indices; here 64 bits where a tensor needs them, and only then.
    maxrregcount : int
        Most registers of a thread.
    enable_magic_zero, enable_ptxas_verbose : bool
        Options of nvFuser's own code.
    device : int, optional
        The GPU's number.
    """

    index_type: DataType | None = None
    maxrregcount: int = 255
    enable_magic_zero: bool = True
    enable_ptxas_verbose: bool = False
    device: int | None = None
