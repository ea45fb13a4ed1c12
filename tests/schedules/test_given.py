"""Schedules given to a run: changed ones run, and what cannot be is refused with its path."""

from __future__ import annotations

import json
import re

import pytest
import torch

from tests.lowering.graphs import noise
from tritonfuser import (
    ArgumentError,
    DataType,
    FusionDefinition,
    ParamsError,
    PointwiseParams,
    ReductionSplit,
    Schedule,
    SegmentSchedule,
)


def two_results():
    """A softmax, and a sum over columns of its input."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        e = fd.ops.exp(x)
        total = fd.ops.broadcast(fd.ops.sum(e, [1]), [False, True])
        fd.add_output(fd.ops.div(e, total))
        fd.add_output(fd.ops.sum(x, [0]))
    return fd


def product():
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Half) for _ in "ab")
        fd.add_output(fd.ops.relu(fd.ops.matmul(a, b)))
    return fd


X = noise(64, 48)


def expected(x):
    return [torch.exp(x) / torch.exp(x).sum(1, keepdim=True), x.sum(0)]


def check(fd, data, x=X):
    for out, wanted in zip(fd.run([x], schedule=data), expected(x), strict=True):
        # Sums of up to 1024 numbers of a variance of 1, in any order.
        torch.testing.assert_close(out, wanted, rtol=1e-5, atol=1e-4)


def exported(fd, x=X, **options):
    return json.loads(json.dumps(fd.schedule([x], **options).to_dict()))


def test_what_was_exported_runs():
    fd = two_results()
    data = exported(fd)
    assert data["version"] == 1
    check(fd, data)
    check(fd, Schedule.from_dict(data))
    assert fd.schedule([X], schedule=data) == Schedule.from_dict(data)


def test_a_reduction_in_two_steps():
    """A split that nobody proposed: the second kernel combines eight partial sums."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(x, [0]))
    data = fd.schedule([X]).to_dict()
    (piece,) = data["segments"]
    (value,) = piece["computes"]
    data["splits"] = [{"value": value, "parts": 8}]
    with pytest.raises(ParamsError, match=r"segments: (tv\d+) is in none of them") as caught:
        fd.run([X], schedule=data)
    partial = caught.value.message.split()[1]
    data["segments"] = [{**piece, "computes": [name]} for name in (partial, value)]
    torch.testing.assert_close(fd.run([X], schedule=data), [X.sum(0)])
    assert len(fd.kernels([X], schedule=data)) == 2


def test_kernels_can_be_cut_otherwise():
    """Everything in a kernel of its own."""
    fd = two_results()
    data = exported(fd)
    row = {"block_x": 1, "block_r": 64, "persistent": True}
    flat = {"scheduler": "pointwise", "params": {"block_x": 256}}
    names = [name for piece in data["segments"] for name in piece["computes"]]
    stores = [name for piece in data["segments"] for name in piece["stores"]]
    assert len(names) == 2
    assert len(stores) == 1
    pieces = [{"scheduler": "reduction", "computes": [n], "params": row} for n in names]
    check(fd, {"version": 1, "segments": [*pieces, {**flat, "stores": stores}]})
    cut = fd.kernels(
        [X], schedule={"version": 1, "segments": [*pieces, {**flat, "stores": stores}]}
    )
    assert len(cut) == 3


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("op, identity", [("sum", 0.0), ("prod", 1.0)])
def test_reductions_of_nothing_need_a_kernel(op, identity, shape):
    """Their results have elements, which no kernel would write."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(getattr(fd.ops, op)(x, [0, 1]))
    inputs = [torch.empty(shape)]
    data = exported(fd, inputs[0])
    (piece,) = data["segments"]
    none = {"version": 1, "segments": [{**piece, "scheduler": "no_op", "params": {}}]}
    for given in (data, none):
        (out,) = fd.run(inputs, schedule=given)
        assert out.item() == identity


def test_params_change_the_kernel():
    fd = two_results()
    data = exported(fd)
    data["segments"][0]["params"]["num_warps"] = 16
    plan = fd.plan([X], schedule=data)
    assert plan.params[0].num_warps == 16
    assert "num_warps=16" in fd.kernels([X], schedule=data)[0].text
    assert "num_warps=16" in str(fd.explain([X], measure=False, schedule=data))


def test_it_compiles_for_a_gpu_that_is_not_here():
    fd = product()
    meta = [torch.empty(256, 256, dtype=torch.float16, device="meta") for _ in "ab"]
    data = fd.schedule(meta, arch="sm_90", _enable_options=["fuse_matmul"]).to_dict()
    assert data["products"]
    (report,) = fd.compile_for("sm_90", meta, schedule=data)
    assert report.spill_bytes == 0


def test_sizes_stay_open():
    fd = two_results()
    data = exported(fd)
    for rows in (64, 128, 256, 512, 1024):
        check(fd, data, noise(rows, 48))
    assert len(fd.explain_recompiles()) <= 3


def first(data):
    return data["segments"][0]


def both(data):
    """The two reductions."""
    return [name for piece in data["segments"] for name in piece["computes"]]


BAD = {
    "version: expected 1 to 1, got 2": lambda d: d.update(version=2),
    "version: expected 1 to 1, got None": lambda d: d.pop("version"),
    "segments: expected a list of dicts, got None": lambda d: d.pop("segments"),
    "unknown key 'colour', expected version, values, segments,": lambda d: d.update(colour=1),
    "segments[0]: unknown key 'colour', expected scheduler, params, computes,": lambda d: first(
        d
    ).update(colour=1),
    "segments[0]: missing key 'scheduler'": lambda d: first(d).pop("scheduler"),
    "segments[0]: missing key 'params'": lambda d: first(d).pop("params"),
    "segments[0].scheduler: expected one of": lambda d: first(d).update(scheduler="x"),
    "segments[0].params.block_r: expected a power of two, 1 to 1048576, got 96": lambda d: first(d)[
        "params"
    ].update(block_r=96),
    "segments[0].params: missing key 'block_r'": lambda d: first(d)["params"].pop("block_r"),
    "segments[0].params.num_warps: expected int": lambda d: first(d)["params"].update(num_warps=""),
    "segments[0].stores[0]: expected str, got 3": lambda d: first(d).update(stores=[3]),
    " is in none of them": lambda d: d["segments"].pop(),
    "segments[0].stores[1]: this definition computes no tv99": lambda d: first(d)["stores"].append(
        "tv99"
    ),
    "segments[0].computes[0]: this definition computes no sums": lambda d: first(d).update(
        computes=["sums"]
    ),
    "is in segments[0].computes[0] already": lambda d: d["segments"].append(first(d)),
    "segments[0].loads: expected values that kernels compute, got 'tv0'": lambda d: first(d).update(
        loads=["tv0"]
    ),
    "segments[0].scheduler: pointwise cannot be: the kernel has reductions": lambda d: first(
        d
    ).update(scheduler="pointwise", params={"block_x": 64}),
    "splits[0].value: expected a reduction, a scan or a matrix product": lambda d: d.update(
        splits=[{"value": "tv99", "parts": 2}]
    ),
    "splits[0].parts: expected 2 or more, got 1": lambda d: d.update(
        splits=[{"value": first(d)["computes"][0], "parts": 1}]
    ),
    "splits[0].parts: expected a divisor of 48, got 7": lambda d: d.update(
        splits=[{"value": first(d)["computes"][0], "parts": [7]}]
    ),
    "splits[0].parts: expected parts of the reduced extents [48] that leave something": lambda d: (
        d.update(splits=[{"value": first(d)["computes"][0], "parts": [48]}])
    ),
    "splits[1].value: ": lambda d: d.update(
        splits=[{"value": first(d)["computes"][0], "parts": 4} for _ in "ab"]
    ),
    "splits[0].interleave: expected 0 where parts are not a number": lambda d: d.update(
        splits=[{"value": first(d)["computes"][0], "parts": [4], "interleave": 2}]
    ),
    "splits[0].parts: expected a maximum that is split": lambda d: d.update(
        splits=[{"value": n, "parts": p} for n, p in zip(both(d), [both(d)[1], 4], strict=True)]
    ),
    "products[0]: expected a matrix product": lambda d: d.update(products=["tv0"]),
    "materialized[0]: expected a value": lambda d: d.update(materialized=["tv1"]),
    "recomputed[0]: expected a value": lambda d: d.update(recomputed=["tv1"]),
    "invariants[0]: expected a tensor that kernels": lambda d: d.update(invariants=["tv99"]),
    "segments[0].co_reduced[0]: tv1 reduces no": lambda d: first(d).update(co_reduced=["tv1"]),
    "segments[0].params: segment s0 (inner_outer_persistent) keeps rows of 48": lambda d: first(d)[
        "params"
    ].update(block_r=32),
}


@pytest.mark.parametrize("text", BAD)
def test_others_are_refused_with_their_path_and_the_users_line(text):
    fd = two_results()
    data = exported(fd)
    BAD[text](data)
    with pytest.raises(ParamsError, match=re.escape(text)) as caught:
        fd.run([X], schedule=data)
    assert f"at {__file__}:" in str(caught.value)


@pytest.mark.parametrize("given", [3, "softmax", [{}]])
def test_what_is_no_schedule(given):
    with pytest.raises(ParamsError, match="schedule: expected a dict"):
        two_results().run([X], schedule=given)


def test_params_or_a_schedule():
    fd = two_results()
    with pytest.raises(TypeError, match="together with params"):
        fd.run([X], schedule=exported(fd), params=fd.heuristics([X]))


def test_a_circle_is_refused():
    fd = two_results()
    data = exported(fd)
    row = {"block_x": 1, "block_r": 64, "persistent": True}
    names = [name for piece in data["segments"] for name in piece["computes"]]
    stores = [name for piece in data["segments"] for name in piece["stores"]]
    pieces = [{"scheduler": "reduction", "computes": [n], "params": row} for n in names]
    pieces[0]["loads"] = stores
    flat = {"scheduler": "pointwise", "params": {"block_x": 256}, "stores": stores}
    with pytest.raises(ParamsError, match="depend on each other"):
        fd.run([X], schedule={"version": 1, "segments": [*pieces, flat]})


def test_a_sum_is_not_split_as_a_maximum_that_it_has_nothing_to_do_with():
    """It would be a sum of exponentials."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.max(x, [1]))
        fd.add_output(fd.ops.sum(x, [1]))
    data = fd.schedule([X]).to_dict()
    top, total = both(data)
    data["splits"] = [{"value": top, "parts": 4}, {"value": total, "parts": top}]
    with pytest.raises(ParamsError, match=r"splits\[1\].parts: expected a maximum that is split"):
        fd.run([X], schedule=data)


def test_loads_that_the_kernel_does_not_read():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.exp(x))
        fd.add_output(fd.ops.sum(fd.ops.neg(x), [0]))
    flat, rows = {"block_x": 256}, {"block_x": 16, "block_r": 64, "persistent": True}
    (total,) = both(fd.schedule([X]).to_dict())
    (power,) = [n for p in fd.schedule([X]).segments for n in p.stores]
    segments = [
        {"scheduler": "pointwise", "stores": [power], "params": flat},
        {"scheduler": "reduction", "computes": [total], "params": rows},
    ]
    found = fd.run([X], schedule={"version": 1, "segments": segments})
    torch.testing.assert_close(found, [torch.exp(X), -X.sum(0)])
    segments[1]["loads"] = [power]
    with pytest.raises(ParamsError, match=r"segments\[1\].loads\[0\]: the kernel reads no tv"):
        fd.run([X], schedule={"version": 1, "segments": segments})


def test_a_large_result_rides_in_a_larger_kernel():
    """Whether that pays is the heuristics' to say: a schedule may have it."""
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1], contiguity=True) for _ in "ab")
        fd.add_output(fd.ops.exp(x))
        fd.add_output(fd.ops.neg(y))
    given = [noise(1 << 20), noise(1 << 19)]
    data = fd.schedule(given).to_dict()
    assert len(data["segments"]) == 2
    one, other = data["segments"]
    one["stores"] += other["stores"]
    found = fd.run(given, schedule={**data, "segments": [one]})
    torch.testing.assert_close(found, [torch.exp(given[0]), -given[1]])


def two_steps():
    """Two sums, and what is computed from one of them: three kernels."""
    fd = two_results()
    data = exported(fd)
    row = {"block_x": 1, "block_r": 64, "persistent": True}
    flat = {"scheduler": "pointwise", "params": {"block_x": 256}}
    stores = [name for piece in data["segments"] for name in piece["stores"]]
    pieces = [{"scheduler": "reduction", "computes": [n], "params": row} for n in both(data)]
    return fd, {"version": 1, "segments": [*pieces, {**flat, "stores": stores}]}


def test_segments_run_in_their_order():
    fd, data = two_steps()
    first = [kernel.text for kernel in fd.kernels([X], schedule=data)]
    one, other, last = data["segments"]
    data["segments"] = [other, one, last]
    check(fd, data)
    second = [kernel.text for kernel in fd.kernels([X], schedule=data)]
    assert [piece["computes"] for piece in exported(fd, schedule=data)["segments"]] == [
        other["computes"],
        one["computes"],
        [],
    ]
    assert ["tl.sum" in text and text.count("tl.load") for text in first[:2]] == [1, 1]
    assert first != second
    data["segments"] = [last, one, other]
    with pytest.raises(ParamsError, match=r"segments\[0\]: it needs results of segments\[1\]"):
        fd.run([X], schedule=data)
    data["segments"] = [one, other, last, {**last, "stores": []}]
    with pytest.raises(ParamsError, match=r"segments\[3\]: expected names under computes or st"):
        fd.run([X], schedule=data)


def test_whether_a_kernel_starts_before_the_one_before_it_ends():
    fd, data = two_steps()

    def waiting():
        found = fd.kernels([X], schedule=data, arch="sm_90")
        texts = [kernel.text.split("@triton.jit")[-1] for kernel in found]
        assert [kernel.follows for kernel in found] == ["wait_for_previous()" in t for t in texts]
        return [(k.follows, "launch_dependents()" in t) for k, t in zip(found, texts, strict=True)]

    assert waiting() == [(False, True), (True, True), (True, False)]
    data["segments"][1]["overlap"] = False
    assert waiting() == [(False, False), (False, True), (True, False)]
    check(fd, data)
    assert not fd.schedule([X], schedule=data).segments[1].overlap
    data["segments"][1]["overlap"] = 1
    with pytest.raises(ParamsError, match=r"segments\[1\].overlap: expected bool, got 1"):
        fd.run([X], schedule=data)


def test_made_by_hand_it_is_checked_too():
    with pytest.raises(ParamsError, match=r"segment.computes: expected a list, got 'tv1'"):
        SegmentSchedule(computes="tv1", params=PointwiseParams(block_x=64))
    with pytest.raises(ParamsError, match=r"segment.params: expected"):
        SegmentSchedule(params={})
    with pytest.raises(ParamsError, match=r"split.interleave: expected 0 or more, got -1"):
        ReductionSplit(value="tv1", parts=2, interleave=-1)
    made = Schedule(segments=[SegmentSchedule(stores=["tv1"], params=PointwiseParams(block_x=64))])
    assert hash(made) == hash(Schedule.from_dict(made.to_dict()))


@pytest.mark.parametrize("row", range(4, 20))
def test_rows_that_begin_inside_vectors(row):
    """A row shorter than a vector has no tile of whole ones."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [1]))
    given = noise(6, row)
    data = fd.schedule([given]).to_dict()
    tile = {"block_x": 8, "block_r": 16, "persistent": True, "tails": [32], "align": 8}
    first(data)["params"] = tile
    if row >= 8:
        torch.testing.assert_close(fd.run([given], schedule=data), [given.exp().sum(1)])
        return
    refused = rf"segments\[0\].params: .* rows of {row} elements have no whole vector"
    with pytest.raises(ParamsError, match=refused):
        fd.run([given], schedule=data)


def test_a_product_is_not_split_as_a_reduction():
    fd = product()
    meta = [torch.empty(256, 256, dtype=torch.float16, device="meta") for _ in "ab"]
    data = fd.schedule(meta, arch="sm_90", _enable_options=["fuse_matmul"]).to_dict()
    (name,) = both(data)
    for parts in (name, [4], []):
        data["splits"] = [{"value": name, "parts": parts}]
        with pytest.raises(ParamsError, match=r"splits\[0\].parts: expected a"):
            fd.kernels(meta, arch="sm_90", schedule=data)


def test_a_wrong_varying_is_refused_as_everywhere():
    with pytest.raises(ArgumentError, match="varying"):
        two_results().schedule([X], varying=3)


def normalized_rows():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        e = fd.ops.exp(x)
        fd.add_output(fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True)))
        fd.add_output(fd.ops.neg(fd.ops.sum(x, [1])))
        fd.add_output(fd.ops.cat([fd.ops.relu(x), fd.ops.neg(x)], 0))
    return fd


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)], ids=str)
def test_a_schedule_of_other_sizes_is_not_needed_where_there_are_no_elements(shape):
    """What it names is not computed; the results are known all the same."""
    fd = normalized_rows()
    x = torch.ones(shape)
    for arch in (None, "sm_90"):
        like = x if arch is None else x.to("meta")
        data = fd.schedule([torch.ones(40, 64, device=like.device)], arch=arch).to_dict()
        assert fd.is_legal(data, [like], arch=arch)
        assert fd.schedule([like], arch=arch, schedule=data) == fd.schedule([like], arch=arch)
        fd.kernels([like], arch=arch, schedule=data)
        wanted = [x, torch.zeros(shape[0]), torch.ones(2 * shape[0], shape[1])]
        torch.testing.assert_close(fd.run([x], schedule=data), wanted)
        torch.testing.assert_close(fd.plan([x], schedule=data)([x]), wanted)
        shown = str(fd.explain([x], schedule=data))
        assert "schedule: chosen here, since tensors have no elements: segments" in shown


def columns_of_rows():
    """Maxima over the rows of what is computed of sums along them, in one kernel."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        low = fd.ops.sub(fd.ops.neg(x), fd.ops.sum(fd.ops.exp(x), [1], keepdim=True))
        fd.add_output(fd.ops.max(low, [0]))
        fd.add_output(low)
    return fd


@pytest.mark.parametrize("shape", [(1, 9), (33, 1), (1, 1)], ids=str)
def test_nor_is_it_where_a_reduction_has_one_element(shape):
    fd, x = columns_of_rows(), torch.randn(shape)
    schedule = fd.schedule([torch.randn(70, 50)])
    assert len(schedule.segments) == 1 and fd.is_legal(schedule, [x])
    low = -x - x.exp().sum(1, keepdim=True)
    torch.testing.assert_close(fd.run([x], schedule=schedule), [low.amax(0), low])
    shown = str(fd.explain([x], schedule=schedule))
    assert "schedule: chosen here, since segments[0].computes" in shown
    assert "a reduction has one element" in shown


def test_other_faults_of_a_schedule_are_refused_there_too():
    fd, x = columns_of_rows(), torch.randn(1, 9)
    data = fd.schedule([x]).to_dict()
    data["segments"][0]["stores"].append("tv99")
    with pytest.raises(ParamsError, match="tv99"):
        fd.run([x], schedule=data)
    assert not fd.is_legal(data, [x])
