"""Kernels written by hand, in the form that the emitter gives them."""

from __future__ import annotations

from textwrap import dedent

from tritonfuser.dtypes import DataType
from tritonfuser.ir import Dim, ScalarType, TensorType, Value
from tritonfuser.lowering.kernel_source import KernelArg, KernelSource

HEADER = "import triton\nimport triton.language as tl\n\n\n"
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")


def aligned(source, value=True):
    """For each argument whether it is a multiple of 16 bytes: all alike."""
    return (value,) * len(source.args)


def tensor(name, dtype=DataType.Float, number=0, size=1024):
    return KernelArg(name, Value(number, TensorType((Dim(size),), dtype)), True)


def scalar(name, dtype, number=0):
    return KernelArg(name, Value(number, ScalarType(dtype)), False)


def kernel(name, text, args, constants=(), grid=(1, 1, 1), *, num_warps=4, num_stages=1, lines=()):
    """A KernelSource of functions given as indented text."""
    text = HEADER + dedent(text).strip() + "\n"
    return KernelSource(
        name, text, tuple(args), tuple(constants), grid, num_warps, num_stages, tuple(lines)
    )


def vector_add(dtype=DataType.Float, size=1024, block=1024, name="vector_add"):
    """out = x + y, computed in float32 for the reduced floats."""
    wide = dtype in (DataType.Half, DataType.BFloat16)
    cast = ".to(tl.float32)" if wide else ""
    return kernel(
        name,
        f"""
        @triton.jit
        def {name}(x, y, out, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            inside = i < {size}
            a = tl.load(x + i, mask=inside){cast}
            b = tl.load(y + i, mask=inside){cast}
            tl.store(out + i, a + b, mask=inside)
        """,
        [tensor(arg, dtype, number, size) for number, arg in enumerate(("x", "y", "out"))],
        [("BLOCK", block)],
        (-(-size // block), 1, 1),
    )


def spilling(rows=3, block=16384):
    """Keeps more numbers between a sum and its use than registers hold."""
    loads = "\n            ".join(f"v{n} = tl.load(x + i + {n * block})" for n in range(rows))
    total = " + ".join(f"tl.sum(v{n}, 0)" for n in range(rows))
    stores = "\n            ".join(
        f"tl.store(out + i + {n * block}, v{n} * s)" for n in range(rows)
    )
    return kernel(
        "spilling",
        f"""
        @triton.jit
        def spilling(x, out):
            i = tl.arange(0, {block})
            {loads}
            s = {total}
            {stores}
        """,
        [tensor("x", size=rows * block), tensor("out", number=1, size=rows * block)],
    )


def program_numbers():
    """Stores the number of each program of a grid of 2 x 3 x 4, as three decimal digits."""
    return kernel(
        "places",
        """
        @triton.jit
        def places(out):
            x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
            tl.store(out + (x * 3 + y) * 4 + z, x * 100 + y * 10 + z)
        """,
        [tensor("out", DataType.Int32)],
        grid=(2, 3, 4),
    )
