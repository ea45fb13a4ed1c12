"""Extents of the model, and its inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

KEEP = 0.9
EPS = 1e-5
SEED, OFFSET = 1234, 8


@dataclass(frozen=True)
class Sizes:
    """Extents of the model and of its input; ``hidden`` is the MLP's width."""

    batch: int
    tokens: int
    width: int
    heads: int
    hidden: int
    vocabulary: int

    @property
    def rows(self) -> int:
        return self.batch * self.tokens

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.width // self.heads

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The shape of every weight, in the order of the inputs and gradients."""
        d, f, v = self.width, self.hidden, self.vocabulary
        return {
            "embedding": (v, d),
            "norm1": (d,),
            "qkv": (3 * d, d),
            "proj": (d, d),
            "proj_bias": (d,),
            "norm2": (d,),
            "norm2_bias": (d,),
            "up": (f, d),
            "up_bias": (f,),
            "gate": (f, d),
            "down": (d, f),
            "down_bias": (d,),
            "norm3": (d,),
            "head": (v, d),
        }


SMALL = Sizes(batch=2, tokens=16, width=32, heads=2, hidden=48, vocabulary=50)
REAL = Sizes(batch=2, tokens=1024, width=1024, heads=16, hidden=4096, vocabulary=32000)


def make_inputs(
    sizes: Sizes, dtype: torch.dtype, device: str = "cpu", seed: int = 0
) -> list[torch.Tensor | int]:
    """Inputs: tokens, labels, rotary tables, the dropout's seed and offset, and the weights."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(sizes.vocabulary, (2, sizes.rows), generator=generator)
    tokens, labels = ids[0].view(sizes.batch, sizes.tokens), ids[1]
    angles = torch.arange(sizes.tokens).unsqueeze(1) * 0.3 ** torch.arange(sizes.head // 2)
    tables = [torch.cat([t, t], 1).float() for t in (angles.cos(), angles.sin())]
    weights: list[torch.Tensor] = []
    for name, shape in sizes.weights().items():
        drawn = torch.randn(shape, generator=generator)
        if len(shape) == 1:
            drawn = 0.1 * drawn + float(name.startswith("norm") and not name.endswith("bias"))
        else:
            drawn = drawn if name == "embedding" else drawn / math.sqrt(shape[1])
        weights.append(drawn.to(dtype))
    tensors = [x.to(device) for x in (tokens, labels, *tables, *weights)]
    return [*tensors[:4], SEED, OFFSET, *tensors[4:]]
