"""The dataclass of a benchmark case: a definition, its inputs, and its peers in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Union

import torch

from tritonfuser import FusionDefinition

from ..measure.ideal_bytes import minimum_bytes

Size = tuple[int, ...]
Input = Union[torch.Tensor, int]
Inputs = list[Input]
Run = Callable[[], Any]
Liger = Callable[[ModuleType, Any], Run]
"""``(liger_kernel.ops, inputs) -> thunk``."""


class Draw:
    """Generator of random tensors of one dtype on one device, reproducible by seed."""

    def __init__(self, dtype: torch.dtype, device: str, seed: int = 0) -> None:
        self.dtype = dtype
        self.device = device
        meta = device == "meta"
        self._generator = None if meta else torch.Generator(device).manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Standard normal numbers, by default in the dtype of the case."""
        return torch.randn(
            shape, dtype=dtype or self.dtype, device=self.device, generator=self._generator
        )

    def integers(self, high: int, *shape: int) -> torch.Tensor:
        """Uniform int64 numbers in [0, high)."""
        return torch.randint(high, shape, device=self.device, generator=self._generator)

    def kept(self, share: float, *shape: int) -> torch.Tensor:
        """A bool tensor in which each element is True with probability ``share``."""
        unit = torch.rand(shape, device=self.device, generator=self._generator)
        return unit < share


@dataclass(frozen=True)
class Sizes:
    """The sizes a case runs at, by dtype."""

    bfloat16: tuple[Size, ...]
    float32: tuple[Size, ...] = ()

    def of(self, dtype: str) -> tuple[Size, ...]:
        """The sizes for ``"bfloat16"`` or ``"float32"``."""
        found: tuple[Size, ...] = getattr(self, dtype)
        return found


@dataclass(frozen=True)
class Case:
    """One row of the suite.

    Attributes
    ----------
    name : str
        Unique name, such as ``softmax_bwd``.
    suite : str
        The table that lists the case, such as ``softmax``.
    sizes : Sizes
        The problem sizes, by dtype.
    define : callable
        ``(fd, size, dtype)``: record the case into ``fd``.
    draw : callable
        ``(Draw, size) -> inputs`` of the definition; numbers among them are scalar inputs.
    eager : callable
        ``(*inputs) -> result(s)`` in torch. torch.compile compiles it; with float64 inputs it is
        the reference. It may return extra results after those of the definition.
    prepare : callable, optional
        ``(*inputs) -> thunk``: the call timed as eager torch where ``eager`` itself is not the
        fastest, such as an autograd backward.
    peers : callable, optional
        ``(Draw, inputs) -> inputs`` of ``eager`` and ``prepare`` where they differ from those of
        the definition: torch's dropout takes a stored mask.
    oracle : callable, optional
        ``(*inputs) -> result(s)`` with float64 inputs: the reference where ``eager`` draws other
        random numbers than the definition.
    liger : callable, optional
        The same computation by Liger-Kernel.
    traffic : callable, optional
        ``(size, dtype) -> bytes`` of minimum memory traffic. The default counts every input and
        every output once.
    """

    name: str
    suite: str
    sizes: Sizes
    define: Callable[[FusionDefinition, Size, torch.dtype], None]
    draw: Callable[[Draw, Size], Inputs]
    eager: Callable[..., Any]
    prepare: Callable[..., Run] | None = None
    peers: Callable[[Draw, Inputs], Inputs] | None = None
    oracle: Callable[..., Any] | None = None
    liger: Liger | None = None
    traffic: Callable[[Size, torch.dtype], int] | None = None

    def record(self, size: Size, dtype: torch.dtype) -> FusionDefinition:
        """Record the definition at a size."""
        with FusionDefinition() as fd:
            self.define(fd, size, dtype)
        return fd

    def inputs(self, size: Size, dtype: torch.dtype, device: str, seed: int = 0) -> Inputs:
        """Generate random inputs of the definition; ``device`` may be ``"meta"``."""
        return self.draw(Draw(dtype, device, seed), size)

    def peer_inputs(self, inputs: Inputs, seed: int = 0) -> Inputs:
        """The inputs of ``eager`` that correspond to these inputs of the definition."""
        if self.peers is None:
            return inputs
        like = next(t for t in inputs if isinstance(t, torch.Tensor))
        return self.peers(Draw(like.dtype, str(like.device), seed), inputs)

    def eager_run(self, inputs: Inputs) -> Run:
        """A call of eager torch, bound to the inputs of peers and ready to be timed."""
        return self.prepare(*inputs) if self.prepare else partial(self.eager, *inputs)

    def reference(self, inputs: Inputs) -> Any:
        """The results in float64."""
        return (self.oracle or self.eager)(*doubled(inputs))

    def bytes(self, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> int:
        """Minimum memory traffic in bytes."""
        return self.traffic(size, dtype) if self.traffic else minimum_bytes(fd.fusion.ir)


def doubled(inputs: Inputs) -> Inputs:
    """Copy the inputs with floating-point tensors in float64."""
    return [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]


def size_name(size: Sequence[int]) -> str:
    """``8192x8192``."""
    return "x".join(map(str, size))
