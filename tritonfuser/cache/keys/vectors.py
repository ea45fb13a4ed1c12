"""Vector widths of inputs and outputs with open sizes, and the sizes that they depend on.

A kernel loads 16 bytes at once where all rows of a tensor begin at multiples of 16 bytes. A kernel
with open sizes can do so only if it counts on what the sizes are multiples of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

from ...device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, VECTOR_BYTES
from ...errors import TritonFuserError
from ...ir import Fusion, Output
from ...lowering.access.aliases import buffer_strides
from ...lowering.passes.concretize import InputSignature, TensorSpec, concretize
from ...symbolic.evaluation import evaluator
from ...symbolic.shape_env import ShapeEnv

Layout = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Bytes of an element, sizes, strides."""

Widths = tuple[int, ...]
"""Bytes of the vectors of each tensor."""

FULL_LINE = CACHE_LINE_BYTES // NVIDIA_WARP_SIZE
"""Bytes of a load of one thread with which a warp takes whole lines.

Wider vectors save instructions alone: those between these and the widest have no kernels of their
own, nor have vectors of elements that are wider themselves."""


class Vectors:
    """The widths of the vectors of a definition's inputs and outputs, at any sizes.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    signature : tuple of InputSpec
        Its inputs, with symbols of ``env`` for what varies.
    env : ShapeEnv
        Of these symbols, which are known to be multiples of nothing. Guards are recorded in it.
    """

    def __init__(self, fusion: Fusion, signature: InputSignature, env: ShapeEnv) -> None:
        self._env = env
        layouts = [*_input_layouts(signature), *_output_layouts(fusion, signature)]
        self._layouts: Callable[[Sequence[int]], Any] = evaluator(tuple(layouts))

    def widths(self, symbols: Sequence[int]) -> Widths:
        """Bytes of each tensor's vectors where the symbols are these sizes."""
        return tuple(_width(*layout) for layout in self._layouts(self._env.symbols.values(symbols)))

    def multiples(self, symbols: Sequence[int]) -> tuple[int, ...]:
        """The least power of two of each size that makes vectors as wide as they are here.

        1 for sizes that they do not depend on, as the number of rows.
        """
        wanted, found = self.widths(symbols), list(symbols)
        needed = []
        for place, size in enumerate(symbols):
            multiple = 1
            while multiple < min(size & -size, VECTOR_BYTES):
                # A size that is a multiple of this and of no greater power of two.
                found[place] = size + multiple
                if self.widths(found) == wanted:
                    break
                multiple *= 2
            found[place] = size
            needed.append(multiple)
        return tuple(needed)


def _input_layouts(signature: InputSignature) -> list[Layout]:
    tensors = [spec for spec in signature if isinstance(spec, TensorSpec)]
    return [(spec.dtype.info.bytes, spec.sizes, spec.strides) for spec in tensors]


def _output_layouts(fusion: Fusion, signature: InputSignature) -> list[Layout]:
    """Of the outputs. None where the sizes do not fit the definition, which lowering tells."""
    try:
        made = concretize(fusion, signature)
        return [_output_layout(made, out) for out in made.outputs if out.value.is_tensor]
    except TritonFuserError:
        return []


def _output_layout(fusion: Fusion, output: Output) -> Layout:
    value = output.value if output.alias_of is None else output.alias_of
    return value.dtype.info.bytes, value.tensor.sizes, buffer_strides(fusion, value)


def _width(item_bytes: int, sizes: Sequence[int], strides: Sequence[int]) -> int:
    """Bytes of the vectors that all rows begin at, of those that a kernel should count on."""
    dims = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    if item_bytes > FULL_LINE or all(stride != 1 for _, stride in dims):
        return item_bytes
    step = item_bytes * gcd(*(size if stride == 1 else stride for size, stride in dims))
    width = step & -step
    if width >= VECTOR_BYTES:
        return VECTOR_BYTES
    return max(min(width, FULL_LINE), item_bytes)
