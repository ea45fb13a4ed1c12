"""Counters of streams and of graphs: who gets which memory."""

from __future__ import annotations

from itertools import pairwise

import torch

from tritonfuser.cache.plan.counters import FEWEST, RESERVED, StreamCounters

CPU = torch.device("cpu")


class Capture:
    """Whether a stream is captured, as a test says."""

    on = False

    def __call__(self):
        return self.on


def counters():
    captured = Capture()
    return StreamCounters(CPU, captured), captured


def test_each_stream_has_its_own():
    found, _ = counters()
    first, second = found(0, 16), found(7, 16)
    assert first[0] != second[0]
    assert found(0, 16) == (first[0], None) and found(7, FEWEST) == (second[0], None)


def test_more_counters_than_before_are_others():
    found, _ = counters()
    address, _ = found(0, 16)
    larger, held = found(0, FEWEST + 1)
    assert larger != address and held.numel() == FEWEST + 1 and not held.any()
    assert found(0, 16)[0] == larger


def test_a_handle_that_stands_for_many_streams_has_new_ones_each_time():
    found, _ = counters()
    (one, first), (other, second) = found(2, 16), found(2, 16)
    assert one != other and first is not None and second is not None


def test_each_kernel_in_a_graph_has_its_own():
    found, captured = counters()
    plain = found(0, 16)[0]
    captured.on = True
    places = [found(0, count)[0] for count in (1, 32, 33, 16)]
    assert [b - a for a, b in pairwise(places)] == [128, 128, 256]
    assert plain not in places
    captured.on = False
    assert found(0, 16)[0] == plain


def test_where_none_are_left_a_graph_fills_them():
    found, captured = counters()
    captured.on = True
    assert found(0, RESERVED)[1] is None
    address, held = found(0, 16)
    assert held.data_ptr() == address and held.numel() == 16 and not held.any()
    found, captured = counters()
    captured.on = True
    assert found(0, RESERVED + 1)[1] is not None


def test_all_are_zero():
    found, _ = counters()
    found(0, 16)
    assert found.left() == 0
    found._of_streams[0][0][3] = 2
    assert found.left() == 2
