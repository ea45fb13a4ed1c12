"""Guards tell apart what they have to, both kinds of them, and memory that is shared is found."""

from __future__ import annotations

import random

import pytest
import torch

from tritonfuser.cache.calls import tensor_guards
from tritonfuser.cache.calls.tensor_guards import guard_for, plain_guard
from tritonfuser.cache.plan.memory_overlap import (
    OverlapCheck,
    extent_bytes,
    has_distinct_elements,
    tensors_overlap,
)

X = torch.zeros(3, 4)
Z = torch.view_as_complex(torch.zeros(3, 4, 2))

OTHERS = {
    "size": torch.zeros(3, 5),
    "rank": torch.zeros(3, 4, 1),
    "stride": torch.zeros(4, 3).t(),
    "gaps": torch.zeros(3, 8)[:, :4],
    "dtype": torch.zeros(3, 4, dtype=torch.int32),
    "same width": torch.zeros(3, 4, dtype=torch.bfloat16),
    "device": torch.zeros(3, 4, device="meta"),
    "sparse": torch.zeros(3, 4).to_sparse(),
    "number": 2.0,
    "nothing": None,
    "list": [1.0],
}


@pytest.mark.parametrize("make", [guard_for, plain_guard])
@pytest.mark.parametrize("name", OTHERS)
def test_other_tensors_are_refused(make, name):
    guard = make([X, X[:]])
    assert guard(torch.ones(3, 4), torch.ones(3, 4))
    assert not guard(X, OTHERS[name])
    assert not guard(OTHERS[name], X)


@pytest.mark.parametrize("make", [guard_for, plain_guard])
def test_another_number_is_no_guess(make):
    guard = make([X, X[:]])
    for given in ((), (X,), (X, X[:], X[1:])):
        with pytest.raises(TypeError):
            guard(*given)


def test_sizes_of_one_and_empty_ones_count_too():
    for make in (guard_for, plain_guard):
        assert not make([torch.zeros(1, 3)])(torch.zeros(1, 3).as_strided((1, 3), (7, 1)))
        assert make([torch.zeros(0, 3)])(torch.zeros(0, 3))
        assert not make([torch.zeros(0, 3)])(torch.zeros(0, 4))
        assert make([torch.zeros(())])(torch.ones(()))
        assert not make([torch.zeros(())])(torch.ones(1))
        assert not make([Z])(torch.zeros(3, 4, dtype=torch.complex128))
        assert make([])()


def test_plain_ones_take_what_torch_s_do_not():
    guard, fast = plain_guard([X, X[:]]), guard_for([X, X[:]])
    cases = [(X, X), (torch.nn.Parameter(X), X)]
    for given in cases:
        assert guard(*given)
        assert not fast(*given)
    with torch.inference_mode():
        assert guard(X, X[:])
        assert not fast(X, X[:])


def test_the_same_tensor_twice_makes_a_plain_guard():
    guard = guard_for([X, X])
    assert guard(X, X)
    assert guard(X, torch.ones(3, 4))
    assert not guard(X, torch.ones(4, 4))


def test_without_torch_s_guards(monkeypatch):
    """They are no public interface: where they are gone, or blind, plain ones take over."""
    for stand_in in (None, lambda *tensors, **kwargs: Blind()):
        tensor_guards._is_reliable.cache_clear()
        monkeypatch.setattr(torch._C._dynamo.guards, "TensorGuards", stand_in)
        guard = guard_for([X])
        assert guard(torch.ones(3, 4))
        assert not guard(torch.ones(4, 4))
    monkeypatch.undo()
    tensor_guards._is_reliable.cache_clear()


class Blind:
    """A guard that takes everything."""

    def check(self, *tensors):
        return True


def test_torch_s_guards_are_in_use():
    assert type(guard_for([X])).__name__ == "builtin_function_or_method"


# --- memory --------------------------------------------------------------------------------------


def elements(tensor):
    """The address of each element."""
    places = torch.arange(10_000).as_strided(
        tensor.shape, tensor.stride(), tensor.storage_offset() % 5_000
    )
    return set(places.flatten().tolist())


def test_sharing_is_what_addresses_say():
    rng = random.Random(0)
    whole = torch.zeros(600)
    found = set()
    for _ in range(600):
        rank = rng.randint(0, 3)
        strides = [rng.choice((0, 1, 2, 3, 5, 8, 12, 20)) for _ in range(rank)]
        one, other = (
            whole.as_strided([rng.randint(1, 5) for _ in range(rank)], strides, rng.randint(0, 60))
            for _ in range(2)
        )
        truth = bool(elements(one) & elements(other))
        case = one.shape, other.shape, strides
        assert tensors_overlap(one, other) == tensors_overlap(other, one) == truth, case
        found.add(truth)
    assert found == {True, False}


def test_columns_of_one_tensor_do_not_share():
    q, k, v = torch.zeros(8, 30).chunk(3, 1)
    assert not tensors_overlap(q, k)
    assert not tensors_overlap(v, k)
    assert tensors_overlap(q, q[4:])
    assert tensors_overlap(torch.zeros(4), torch.zeros(4)) is False
    assert tensors_overlap(torch.zeros(0), torch.zeros(0)) is False


def test_what_steps_otherwise_goes_by_ranges():
    whole = torch.zeros(40)
    assert tensors_overlap(whole[:8], whole[4:].view(6, 6)[:, :2])
    assert tensors_overlap(whole.view(torch.int32)[:8], whole[:2])
    assert not tensors_overlap(whole.view(torch.int32)[:8], whole[8:])


@pytest.mark.parametrize(
    ("shape", "strides", "apart"),
    [
        ((3, 4), (4, 1), True),
        ((3, 4), (1, 3), True),
        ((3, 4), (8, 1), True),
        ((3, 4), (0, 1), False),
        ((3, 4), (1, 1), False),
        ((1, 4), (0, 1), True),
        ((), (), True),
        ((0, 4), (0, 0), True),
    ],
)
def test_elements_apart(shape, strides, apart):
    assert has_distinct_elements(shape, strides) is apart


def test_the_bytes_from_the_first_element_to_the_last():
    assert extent_bytes((3, 4), (8, 1), torch.float32) == 80
    assert extent_bytes((3, 0), (8, 1), torch.float32) == 0
    assert extent_bytes((), (), torch.float64) == 8


def test_near_goes_by_ranges_and_remembers():
    overlaps = OverlapCheck([16, 16, 8], [2])
    assert overlaps.overlap((0, 100, 92)) is None
    assert overlaps.overlap((0, 100, 93)) == (2, 1)
    assert overlaps.overlap((0, 100, 15)) == (2, 0)
    assert not overlaps((0, 100, 16))
    assert overlaps.disjoint == (0, 100, 16)
    assert overlaps((0, 100, 110))
    assert overlaps.disjoint == (0, 100, 16)


def test_near_lets_the_same_be_the_same():
    overlaps = OverlapCheck([16, 16], [1], [(1, 0)])
    assert overlaps.overlap((32, 32)) is None
    assert overlaps.overlap((32, 40)) == (1, 0)


def test_nothing_is_near_to_nothing():
    assert OverlapCheck([16, 0], [1]).overlap((32, 32)) is None
    assert OverlapCheck([0, 16], [1]).overlap((32, 32)) is None
