"""Bounds of work on a device, against figures computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tritonfuser.device import LAUNCH_S, InstructionRates
from tritonfuser.devices import known
from tritonfuser.heuristics.bounds import Instructions, RowsReadAgain, Work, bound

ONE = replace(
    known("sm_90"),
    sm_count=10,
    registers_per_sm=1000,
    shared_bytes_per_sm=6000,
    l2_bytes=100_000,
    bandwidth_bytes_per_s=1e9,
    clock_hz=1e6,
    rates=InstructionRates(
        issue=100, fp32=100, fp64=10, integer=50, integer_multiply=25, sfu=10, conversion=20
    ),
)
"""Ten multiprocessors of a megahertz: 1e7 clocks a second, 1e9 bytes; 200,000 bytes on the chip."""


def seconds(**work):
    return dict(bound(Work(**work), ONE).resources)


def test_bytes_take_the_time_of_a_copy():
    found = bound(Work(read_bytes=3e6, written_bytes=1e6), ONE)
    assert (found.seconds, found.limit) == (pytest.approx(4e-3), "memory")
    assert found.share(8e-3) == pytest.approx(0.5)
    assert found.share(None) is None


def test_each_pipe_has_its_rate():
    found = seconds(
        instructions=Instructions(
            multiplies=4e9,
            adds=2e9,
            fp64=1e9,
            integer=5e8,
            integer_multiplies=1e9,
            sfu=2e9,
            conversions=1e9,
            others=5e8,
        )
    )
    assert found["FP32"] == pytest.approx(4.0)  # 4e9 / (100 * 1e7): adds ride along
    assert found["FP64"] == pytest.approx(10.0)
    assert found["integer"] == pytest.approx(1.0)
    assert found["integer multiply"] == pytest.approx(4.0)
    assert found["SFU"] == pytest.approx(20.0)
    assert found["conversion"] == pytest.approx(5.0)
    assert found["issue"] == pytest.approx(10.0)  # 1e10 / (100 * 1e7)


def test_the_busiest_resource_is_the_limit():
    work = Work(read_bytes=1e6, instructions=Instructions(sfu=5e6), launches=2)
    found = bound(work, ONE)
    assert found.limit == "SFU" and found.seconds == pytest.approx(0.05)
    assert [name for name, _ in found.resources[:2]] == ["SFU", "issue"]
    assert dict(found.resources)["launch"] == 2 * LAUNCH_S


def test_little_work_takes_a_launch():
    found = bound(Work(read_bytes=16), ONE)
    assert (found.seconds, found.limit) == (LAUNCH_S, "launch")
    nothing = bound(Work(launches=0), ONE)
    assert (nothing.seconds, nothing.limit) == (0.0, "")


def test_what_does_not_fit_on_the_chip_is_read_twice():
    assert ONE.on_chip_bytes == 200_000
    rows = RowsReadAgain(rows=4, row_bytes=300_000)
    found = bound(Work(read_bytes=1.2e6, written_bytes=1.2e6, again=(rows,)), ONE)
    assert found.bytes_again == 400_000
    assert found.seconds == pytest.approx(2.8e-3)
    held = replace(rows, row_bytes=200_000)
    assert bound(Work(read_bytes=1.2e6, again=(held,)), ONE).bytes_again == 0


def test_one_more_pass_serves_all_reductions():
    rows = RowsReadAgain(rows=1, row_bytes=500_000)
    found = bound(Work(again=(rows, replace(rows, row_bytes=600_000))), ONE)
    assert found.bytes_again == 400_000


def test_products_run_at_the_speed_of_cublas():
    assert seconds(product_flops=1e12)["tensor cores"] == pytest.approx(
        1e12 / ONE.product_flops_per_s
    )
