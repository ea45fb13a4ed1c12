"""What a run chooses is legal as a given schedule, and what could be tried in its place lowers."""

from __future__ import annotations

import random

import pytest
import torch

from tests.e2e.graphs.growing import grow
from tritonfuser import FusionDefinition

ARCHS = ("sm_80", "sm_90", "sm_100", "gfx942")
SIZES = ((1, 3, 4, 7), (1, 2, 8, 16), (1, 33, 128, 257), (1, 31, 2048), (4096, 1, 3))


def grown(rng):
    """A random definition, and tensors without memory that stand for its inputs on a GPU."""
    made = grow(rng, sizes=rng.choice(SIZES), most=10)
    return made.fd, [_like(x) for x in made.inputs]


def _like(x):
    """Tensors of no dims stay where they are: some are of a CPU."""
    if not isinstance(x, torch.Tensor) or not x.dim():
        return x
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def check(seed, compiles=False):
    """The choice for a random definition, and schedules drawn from the space around it.

    Returns how many of those are legal.
    """
    rng = random.Random(f"chosen {seed}")
    fd, inputs = grown(rng)
    arch = rng.choice(ARCHS)
    chosen = fd.schedule(inputs, arch=arch)
    found = fd.is_legal(chosen, inputs, arch=arch)
    assert found, f"{arch}: {found.reason}\n{fd}"
    assert fd.schedule(inputs, arch=arch, schedule=chosen.to_dict()) == chosen
    space = fd.search_space(inputs, arch=arch)
    drawn = [space.draw(rng) for _ in range(4)]
    legal = [one for one in drawn if fd.is_legal(one, inputs, arch=arch)]
    for one in legal:
        # What a drawn schedule leaves to the rules is filled in, and then stays.
        whole = fd.schedule(inputs, arch=arch, schedule=one)
        assert fd.schedule(inputs, arch=arch, schedule=whole) == whole
        fd.kernels(inputs, arch=arch, schedule=one)
    if compiles and legal:
        fd.compile_for(arch, inputs, schedule=legal[0])
    return len(legal)


@pytest.mark.parametrize("start", [0, 20, pytest.param(40, marks=pytest.mark.slow)])
def test_choices_are_legal(start):
    """Most of what a space draws is legal too, or it would not be worth drawing from."""
    assert sum(check(seed) for seed in range(start, start + 20)) > 40


def test_what_shares_a_launch_is_legal_with_its_warps():
    """Rows that are whole in threads would join a kernel of one warp."""
    assert check(1157) > 0


def test_legal_candidates_compile():
    assert sum(check(seed, compiles=True) for seed in range(100, 106)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 200))
def test_more_choices_are_legal(start):
    for seed in range(start, start + 200):
        check(seed, compiles=seed % 10 == 0)


@pytest.mark.parametrize("shape", [(64, 16384), (64, 32768), (1, 1 << 22)])
def test_what_is_chosen_can_be_launched(shape) -> None:
    """Wavefronts of AMD have 64 threads: half as many warps are in a program as of NVIDIA."""
    x = torch.empty(shape, device="meta")
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        powers = fd.ops.exp(fd.ops.sub(t, fd.ops.max(t, [1], keepdim=True)))
        fd.add_output(fd.ops.div(powers, fd.ops.sum(powers, [1], keepdim=True)))
    for arch in ARCHS:
        verdict = fd.is_legal(fd.schedule([x], arch=arch), [x], arch=arch)
        assert verdict, verdict.reason
