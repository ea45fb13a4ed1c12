"""Random compositions of pads, slices and concatenations: box by box the same bits as at once."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lowering.harness import CPU, H200, compare, framed, lowered, planned, poisoned, record
from tritonfuser import DataType
from tritonfuser.frontend.inspect.oracle import reference
from tritonfuser.lowering.fuse import grouper
from tritonfuser.lowering.fuse.grouper import Grouper

SPECIAL = (0.0, -0.0, float("nan"), float("inf"), -float("inf"))
MOVES = (
    "slice",
    "pad",
    "pad",
    "pad",
    "cat",
    "cat",
    "add",
    "add",
    "cast",
    "permute",
    "where",
    "swap",
)
Term = tuple[Any, list[int]]


class Grower:
    """A definition of three tensors, grown op by op, with the shapes of its values."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        shape = [self.rng.choice((2, 3, 4)), self.rng.choice((1, 5, 8)), self.rng.choice((8, 16))]
        self.inputs = [framed(self.tensor(shape)) for _ in range(3)]

    def tensor(self, shape: list[int]) -> torch.Tensor:
        if self.rng.random() < 0.2:
            shape = [self.rng.choice((0, 1, n)) for n in shape]
        made = torch.randn(shape, generator=torch.Generator().manual_seed(self.rng.randrange(99)))
        for value in SPECIAL if made.numel() > 8 else ():
            made.view(-1)[self.rng.randrange(made.numel())] = value
        if self.rng.random() < 0.4:
            made = made.transpose(0, 2).contiguous().transpose(0, 2)
        return made.to(self.rng.choice((torch.float32, torch.bfloat16)))

    def body(self, fd: Any, *inputs: Any) -> Any:
        self.rng.seed(self.seed + 1)
        shapes = [list(x.shape) for x in self.inputs]
        self.values: list[Term] = list(zip(inputs, shapes, strict=True))
        for _ in range(self.rng.randint(3, 9)):
            self.values.append(self.step(fd, *self.rng.choice(self.values[-3:])))
        last, before = self.values[-1][0], self.values[-2][0]
        order = self.rng.sample(range(3), 3)
        return fd.ops.neg(last), fd.ops.permute(fd.ops.neg(last), order), fd.ops.neg(before)

    def step(self, fd: Any, value: Any, shape: list[int]) -> Term:
        dim, move = self.rng.randrange(3), self.rng.choice(MOVES)
        alike = [v for v, s in self.values if s == shape]
        floats = (DataType.Float, DataType.BFloat16)
        match move:
            case "slice":
                low = self.rng.randint(0, shape[dim])
                ends, starts = list(shape), [0, 0, 0]
                starts[dim], ends[dim] = low, self.rng.randint(low, shape[dim])
                sizes = [stop - start for start, stop in zip(starts, ends, strict=True)]
                return fd.ops.slice(value, starts, ends, [1, 1, 1]), sizes
            case "pad":
                before = self.rng.choice((0, 0, 1, 8))
                after = self.rng.choice((-(shape[dim] > 1), 0, 8, 16))
                widths, sizes = [0] * 6, list(shape)
                widths[4 - 2 * dim : 6 - 2 * dim] = [before, after]
                sizes[dim] += before + after
                fill = self.rng.choice((None, -0.0, 1.5))
                return (
                    (fd.ops.pad(value, widths, fill), sizes) if sizes[dim] >= 0 else (value, shape)
                )
            case "cat":
                fits = [t for t in self.values if without(t[1], dim) == without(shape, dim)]
                parts = [(value, shape), *self.rng.choices(fits, k=2)]
                sizes = list(shape)
                sizes[dim] = sum(s[dim] for _, s in parts)
                joined = fd.ops.cat([fd.ops.cast(v, DataType.Float) for v, _ in parts], dim)
                return joined, sizes
            case "add":
                return fd.ops.add(value, self.rng.choice(alike)), shape
            case "cast":
                return fd.ops.cast(fd.ops.tanh(value), self.rng.choice(floats)), shape
            case "permute":
                dims = self.rng.sample(range(3), 3)
                return fd.ops.permute(value, dims), [shape[d] for d in dims]
            case "where":
                other = self.rng.choice(alike)
                return fd.ops.where(fd.ops.gt(other, 0.0), value, other), shape
        if shape[dim] % 2 or 0 in shape:
            return value, shape
        halves = [*shape[:dim], 2, shape[dim] // 2, *shape[dim + 1 :]]
        order = list(range(4))
        order[dim], order[dim + 1] = dim + 1, dim
        return fd.ops.reshape(fd.ops.permute(fd.ops.reshape(value, halves), order), shape), shape


def without(shape: list[int], dim: int) -> list[int]:
    return shape[:dim] + shape[dim + 1 :]


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().view(torch.int32 if tensor.itemsize == 4 else torch.int16).tolist()


def check(seed: int) -> int:
    """The boxes that were stored in all."""
    grown = Grower(seed)
    fd = record(grown.body, grown.inputs)
    wanted = reference(fd.fusion.ir, grown.inputs)
    found, stores = [], 0
    for cut in (True, False):
        for facts in (H200, CPU):
            with pytest.MonkeyPatch.context() as patched, poisoned():
                patched.setattr(grouper, "pays_in_boxes", lambda *_, cut=cut: cut)
                patched.setattr(Grouper, "_is_quick", lambda *_: False)
                made = lowered(fd, grown.inputs, facts)
                found.append(planned(made, grown.inputs, facts).run(grown.inputs))
            pieces = made.segmented.segments
            stores += sum(store.part is not None for p in pieces for store in p.stores)
    compare(found[0], wanted)
    for other in found[1:]:
        assert [bits(x) for x in other] == [bits(x) for x in found[0]]
    return stores


SEEDS = given(st.integers(0, 1 << 30))


@settings(max_examples=5, deadline=None)
@SEEDS
def test_boxes_have_the_bits_of_the_whole(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@SEEDS
def test_more_boxes_have_the_bits_of_the_whole(seed: int) -> None:
    check(seed)


def test_the_random_definitions_have_boxes() -> None:
    assert sum(check(seed) > 0 for seed in range(10)) > 3


@pytest.mark.parametrize("seed", [954])
def test_found_failures(seed: int) -> None:
    check(seed)
