"""What a benchmark case is: a definition, its inputs, and what others do instead."""

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
    """Random tensors of one dtype on one device, the same for the same seed."""

    def __init__(self, dtype: torch.dtype, device: str, seed: int = 0) -> None:
        self.dtype = dtype
        self.device = device
        meta = device == "meta"
        self._generator = None if meta else torch.Generator(device).manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Normal numbers, in the dtype of the case unless another is named."""
        return torch.randn(
            shape, dtype=dtype or self.dtype, device=self.device, generator=self._generator
        )

    def integers(self, high: int, *shape: int) -> torch.Tensor:
        """int64 numbers of [0, high)."""
        return torch.randint(high, shape, device=self.device, generator=self._generator)

    def kept(self, share: float, *shape: int) -> torch.Tensor:
        """True for about that share of the elements."""
        unit = torch.rand(shape, device=self.device, generator=self._generator)
        return unit < share


@dataclass(frozen=True)
class Sizes:
    """The sizes a case runs at, by dtype."""

    bfloat16: tuple[Size, ...]
    float32: tuple[Size, ...] = ()

    def of(self, dtype: str) -> tuple[Size, ...]:
        """Those of ``"bfloat16"`` or ``"float32"``."""
        found: tuple[Size, ...] = getattr(self, dtype)
        return found


@dataclass(frozen=True)
class Case:
    """One row of the suite.

    Attributes
    ----------
    name, suite : str
        ``softmax_bwd`` and the table it stands in.
    sizes : Sizes
        Where it is run.
    define : callable
        ``(fd, size, dtype)``: records the case.
    draw : callable
        ``(Draw, size) -> inputs`` of the definition; numbers among them are scalar inputs.
    eager : callable
        ``(*inputs) -> result(s)`` in torch: what torch.compile gets and, with float64 inputs, the
        reference. It may give more results than the definition, at the end.
    prepare : callable, optional
        ``(*inputs) -> thunk``, where eager's best is not ``eager`` itself: an autograd backward.
    peers : callable, optional
        ``(Draw, inputs) -> inputs`` of ``eager`` and ``prepare``, where they need others: the mask
        that a dropout of torch has stored.
    oracle : callable, optional
        ``(*inputs) -> result(s)`` with float64 inputs, where ``eager`` draws other random numbers.
    liger : callable, optional
        The function of Liger-Kernel.
    traffic : callable, optional
        ``(size, dtype) -> bytes``; by default every input read once, every output written once.
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
        """The definition at a size."""
        with FusionDefinition() as fd:
            self.define(fd, size, dtype)
        return fd

    def inputs(self, size: Size, dtype: torch.dtype, device: str, seed: int = 0) -> Inputs:
        """Random inputs of the definition; ``device`` may be ``"meta"``."""
        return self.draw(Draw(dtype, device, seed), size)

    def peer_inputs(self, inputs: Inputs, seed: int = 0) -> Inputs:
        """What ``eager`` takes instead of these inputs."""
        if self.peers is None:
            return inputs
        like = next(t for t in inputs if isinstance(t, torch.Tensor))
        return self.peers(Draw(like.dtype, str(like.device), seed), inputs)

    def eager_run(self, inputs: Inputs) -> Run:
        """Eager torch on the inputs of peers, ready to be timed."""
        return self.prepare(*inputs) if self.prepare else partial(self.eager, *inputs)

    def reference(self, inputs: Inputs) -> Any:
        """The results in float64."""
        return (self.oracle or self.eager)(*doubled(inputs))

    def bytes(self, fd: FusionDefinition, size: Size, dtype: torch.dtype) -> int:
        """Bytes that have to be moved."""
        return self.traffic(size, dtype) if self.traffic else minimum_bytes(fd.fusion.ir)


def doubled(inputs: Inputs) -> Inputs:
    """The same with floats in float64."""
    return [
        x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    ]


def size_name(size: Sequence[int]) -> str:
    """``8192x8192``."""
    return "x".join(map(str, size))
