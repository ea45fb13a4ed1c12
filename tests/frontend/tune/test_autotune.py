"""``fd.autotune`` refuses what it cannot do."""

from __future__ import annotations

import pytest

from tests.frontend.tune.fakes import softmax
from tritonfuser import ArgumentError, InputError, UnsupportedDeviceError


def test_without_a_gpu_it_says_what_works():
    fd, inputs = softmax()
    with pytest.raises(UnsupportedDeviceError, match=r"needs a CUDA device, .* on cpu") as error:
        fd.autotune(inputs)
    assert "interpreter" in str(error.value) and "fd.compile_for" in str(error.value)
    assert "test_autotune.py" in str(error.value)


@pytest.mark.parametrize("budget", [0, -1.0, float("inf"), float("nan"), True, "5"])
def test_a_budget_is_a_positive_number(budget):
    fd, inputs = softmax()
    with pytest.raises(ArgumentError, match="budget_s must be a positive number of seconds"):
        fd.autotune(inputs, budget_s=budget)


def test_other_arguments_are_checked():
    fd, inputs = softmax()
    with pytest.raises(ArgumentError, match="level must be one of 'params', 'schedule'"):
        fd.autotune(inputs, level="all")
    with pytest.raises(ArgumentError, match="seed must be an int"):
        fd.autotune(inputs, seed="x")
    with pytest.raises(InputError):
        fd.autotune([1.0])
