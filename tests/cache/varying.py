"""Definitions to run at many sizes, and what was compiled for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.executor import FusionExecutorCache


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def cache_of(body: Callable[..., Any], *dtypes_and_ranks: Any, **kwargs: Any) -> Any:
    with FusionDefinition() as fd:
        inputs = [
            fd.define_tensor(shape=[-1] * rank, contiguity=True, dtype=dtype)
            for dtype, rank in dtypes_and_ranks
        ]
        made = body(fd, *inputs)
        for out in made if isinstance(made, tuple) else (made,):
            fd.add_output(out)
    return FusionExecutorCache(fd.fusion.ir, **kwargs)


def doubling(**kwargs: Any) -> FusionExecutorCache:
    made = cache_of(lambda fd, x: fd.ops.mul(x, 2.0), (DataType.Float, 2), **kwargs)
    assert isinstance(made, FusionExecutorCache)
    return made


def kinds(cache: FusionExecutorCache) -> list[str]:
    return ["dynamic" if made.dynamic else "static" for made in cache.recompiles()]


def run(cache: FusionExecutorCache, *shapes: tuple[int, ...]) -> None:
    for shape in shapes:
        x = noise(*shape)
        assert torch.equal(cache.execute([x])[0], x * 2)
