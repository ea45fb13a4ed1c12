"""The Philox reference: known answers, layout, ranges and moments."""

from __future__ import annotations

import pytest
import torch

from tritonfuser.ops.creation import philox


def test_known_answer_of_random123() -> None:
    """The first vector of Random123's kat_vectors for philox4x32-10: counter and key 0."""
    assert [hex(int(w)) for w in philox.words(1, 0, 0)[0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]


def test_counter_and_key_use_all_their_bits() -> None:
    plain = philox.words(2, 0, 0)
    for seed, offset in ((1, 0), (1 << 32, 0), (0, 1), (0, 1 << 32), (-1, 0), ((1 << 64) - 1, 0)):
        assert not torch.equal(philox.words(2, seed, offset), plain)
    assert torch.equal(philox.words(2, -1, 0), philox.words(2, (1 << 64) - 1, 0))
    assert not torch.equal(plain[0], plain[1])


def test_uniform_is_words_in_order() -> None:
    bits = philox.words(2, 5, 3).reshape(-1)[:7]
    expected = ((bits.double() + 0.5) * 2.0**-32).float().reshape(7, 1)
    found = philox.uniform((7, 1), 5, 3)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    assert found.dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_range_and_moments(dtype: torch.dtype) -> None:
    found = philox.uniform((100_001,), 1, 2, dtype)
    assert found.dtype is dtype
    assert 0 <= found.min() < 1e-4 and 1 - 1e-4 < found.max() < 1
    assert abs(found.mean() - 0.5) < 3e-3


def test_one_becomes_zero() -> None:
    """The largest words round up to 1.0 in float32, which [0, 1) has not."""
    assert philox.uniform((1 << 20,), 0, 0).max() < 1
    unit = (torch.tensor([0xFFFFFFFF]).float() + 0.5) * 2.0**-32
    assert unit == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_moments_and_pairs(dtype: torch.dtype) -> None:
    found = philox.normal((100_001,), 1, 2, dtype)
    assert found.dtype is dtype and torch.isfinite(found).all()
    assert abs(found.mean()) < 1e-2 and abs(found.std() - 1) < 1e-2
    radius = found[:-1].double().reshape(-1, 2).square().sum(1)
    assert abs(radius.mean() - 2) < 3e-2


def test_empty() -> None:
    assert philox.uniform((0, 3), 1, 2).shape == (0, 3)
    assert philox.normal((2, 0), 1, 2).shape == (2, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, -1.0), (-2.0, 0.0)])
def test_round_below_stays_inside(dtype: torch.dtype, low: float, high: float) -> None:
    near = torch.nextafter(torch.tensor(high).double(), torch.tensor(low).double())
    values = torch.tensor([low, near.item(), (low + high) / 2], dtype=torch.float64)
    found = philox.round_below(values, high, dtype)
    assert found.dtype is dtype and (found < high).all()
    assert found[0] == low and found[2] == (low + high) / 2
    limit = torch.tensor(high, dtype=dtype)
    assert found[1] == torch.nextafter(limit, torch.full_like(limit, -torch.inf))
