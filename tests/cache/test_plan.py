"""The function that runs a plan: what it allocates, frees, launches and hands out."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, lowered, planned, record, small
from tritonfuser import DataType, FusionDefinition, options
from tritonfuser.cache.kernels import LoadedKernel
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan import launches
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.cache.plan.random_state import draw
from tritonfuser.lowering.backend.launch import PreparedLaunch
from tritonfuser.lowering.pipeline import lower

PRINTED = LoadedKernel(PreparedLaunch(print, (), ()))


def chained(fd, x):
    """Three kernels, each of what the one before it stored."""
    for dim in (0, 0):
        x = fd.ops.sum(fd.ops.exp(x), [dim])
    return fd.ops.sum(x, [0])


def test_buffers_go_when_nothing_needs_them():
    inputs = [noise(9, 10, 11)]
    text = planned(lowered(chained, inputs, CPU), inputs, CPU).text
    lines = [line.strip() for line in text.splitlines()]
    freed = [line for line in lines if line.startswith("del ")]
    assert len(freed) == 2
    results = next(line for line in lines if line.startswith("return"))
    for line in freed:
        name = line.split()[1]
        assert lines.index(line) < lines.index(results)
        assert not any(name in later.split("#")[0] for later in lines[lines.index(line) + 1 :])


def test_a_plan_is_called_like_a_function():
    inputs = [noise(4)]
    found = planned(lowered(lambda fd, x: fd.ops.neg(x), inputs, CPU), inputs, CPU)
    (out,) = found(inputs)
    assert torch.equal(out, -inputs[0])
    with pytest.raises(ValueError, match="values to unpack"):
        found([])


def test_nothing_of_a_call_is_kept():
    """Results of two calls do not share memory."""
    inputs = [noise(4)]
    found = planned(lowered(lambda fd, x: fd.ops.exp(x), inputs, CPU), inputs, CPU)
    (first,), (second,) = found(inputs), found(inputs)
    first.zero_()
    torch.testing.assert_close(second, inputs[0].exp())


def test_each_stage_is_dumped_in_order(capsys, monkeypatch):
    stages = ("concretize", "simplify", "segment", "params", "kernel", "plan")
    monkeypatch.setenv("TRITONFUSER_DUMP", ",".join(stages))
    options.refresh()
    try:
        inputs = [noise(4)]
        planned(lowered(lambda fd, x: fd.ops.exp(x), inputs, CPU), inputs, CPU)
    finally:
        monkeypatch.undo()
        options.refresh()
    text = capsys.readouterr().out
    places = [text.index(f"# ---- {stage} ----") for stage in stages]
    assert places == sorted(places)
    assert "tv1 = libdevice.exp(tv0)" in text
    assert "PointwiseParams(" in text
    assert "def run(inputs):" in text


# --- random numbers ----------------------------------------------------------------------


def random_body(fd):
    return [fd.ops.uniform(0.0, 1.0, [64], dtype=DataType.Float) for _ in range(2)]


def test_random_numbers_follow_torch_s_seed():
    found = planned(lowered(random_body, [], CPU), [], CPU)
    torch.manual_seed(7)
    first = found([])
    other = found([])
    torch.manual_seed(7)
    again = found([])
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], other[0])


def test_the_cpu_s_seed_is_drawn_anew():
    torch.manual_seed(7)
    seeds = {draw(torch.device("cpu"), 1) for _ in range(5)}
    assert len(seeds) == 5
    assert all(offset == 0 for _, offset, _ in seeds)


def test_kernels_that_share_random_numbers_agree():
    """The mask is computed twice, from one seed."""

    def body(fd, x):
        kept = fd.ops.lt(fd.ops.uniform(0.0, 1.0, [8, 6], dtype=DataType.Float), 0.5)
        dropped = fd.ops.mul(x, kept)
        return fd.ops.sum(dropped, [0]), fd.ops.sum(dropped, [1]), kept

    inputs = [noise(8, 6)]
    for facts in (CPU, H200, small(2)):
        columns, rows, kept = planned(lowered(body, inputs, facts), inputs, facts)(inputs)
        torch.testing.assert_close(columns, (inputs[0] * kept).sum(0))
        torch.testing.assert_close(rows, (inputs[0] * kept).sum(1))


# --- tensors whose memory holds other numbers --------------------------------------------


@pytest.mark.parametrize("name", ["row", "rows", "transposed", "0-dim"])
def test_imaginary_parts_of_conjugated_tensors(name):
    """torch marks them as negated and leaves the memory alone."""
    z = {
        "row": torch.view_as_complex(noise(8, 2)),
        "rows": torch.view_as_complex(noise(4, 5, 2)),
        "transposed": torch.view_as_complex(noise(4, 5, 2)).t(),
        "0-dim": torch.view_as_complex(noise(2)),
    }[name]
    negated, plain = z.conj().imag, z.imag
    assert negated.is_neg()
    dims = list(range(z.dim()))

    def body(fd, x):
        total = fd.ops.sum(x, dims) if dims else fd.ops.neg(x)
        return fd.ops.add(x, x), total, x, fd.ops.broadcast(x, [True, *[False for _ in dims]])

    found = planned(lowered(body, [plain], CPU), [plain], CPU)
    for x in (negated, plain, negated):
        added, total, same, view = found([x])
        assert torch.equal(added, x + x)
        torch.testing.assert_close(total, x.sum() if dims else -x)
        assert same is x
        assert torch.equal(view, x[None])


@pytest.mark.parametrize("name", ["rows", "columns", "windows", "nothing"])
def test_imaginary_parts_whose_elements_share_memory(name):
    """A copy without the mark is laid out the same, though nothing can be copied into that."""
    z = torch.view_as_complex(noise(9, 2)).conj().imag
    x = {
        "rows": z.expand(3, 9),
        "columns": z[:, None].expand(9, 3),
        "windows": z.unfold(0, 4, 1),
        "nothing": z[:0].expand(3, 0),
    }[name]
    assert x.is_neg()
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, 1.0))
        fd.add_output(fd.ops.sum(t, [0]))
    added, total = fd.run([x])
    assert torch.equal(added, x + 1)
    torch.testing.assert_close(total, x.sum(0))


def test_contiguous_inputs_are_not_looked_at():
    inputs = [noise(4, 6), noise(8, 6)[:4]]
    body = lambda fd, x, y: fd.ops.add(x, y)  # noqa: E731
    assert "resolve_neg" not in planned(lowered(body, inputs, CPU), inputs, CPU).text


# --- what a GPU would be given -----------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch):
    """Plans for a GPU, written but not launched."""
    monkeypatch.setattr(launches, "loaded", lambda wanted, *_: [PRINTED] * len(wanted))
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda i: 0, raising=False)
    guards = torch._C._dynamo.guards
    monkeypatch.setattr(guards, "_empty_strided_cuda", torch.empty_strided, raising=False)
    device = torch.device("cuda", 0)

    def text(fd, inputs):
        ir = fd.fusion.ir
        found = lower(ir, signature(ir, inputs, device), H200)
        return make_plan(found, inputs, device, H200).text

    return text


def test_a_plan_for_a_gpu(gpu):
    text = gpu(record(lambda fd, x: fd.ops.exp(x), [noise(4)]), [torch.empty(4, device="meta")])
    assert "if get_device() != 0:" in text
    assert "stream = get_stream(0)" in text
    assert "tv1 = empty((4,), (1,), torch_float32)" in text
    assert "tv0_at, tv1.data_ptr()" in text


def with_cpu_scalar(body):
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        scale = fd.define_tensor(shape=[], contiguity=[], is_cpu=True)
        body(fd, x, scale)
    return fd


def test_a_cpu_scalar_is_copied_and_handed_out_as_it_is(gpu):
    def body(fd, x, scale):
        fd.add_output(fd.ops.mul(x, scale))
        fd.add_output(scale)

    text = gpu(with_cpu_scalar(body), [torch.empty(4, device="meta"), torch.tensor(2.0)])
    assert "tv1 = to_device(tv1, device)" in text
    assert "out1 = tv1_given" in text


def test_a_cpu_scalar_that_is_written_is_the_one_on_the_cpu(gpu):
    def body(fd, x, scale):
        fd.add_output(fd.ops.add(fd.ops.sum(x, [0]), scale), scale)

    text = gpu(with_cpu_scalar(body), [torch.empty(4, device="meta"), torch.tensor(2.0)])
    assert "to_cpu(tv1_given, out0)" in text


def test_a_cpu_scalar_that_no_kernel_reads_stays(gpu):
    def body(fd, x, scale):
        fd.add_output(fd.ops.exp(x))
        fd.add_output(scale)

    text = gpu(with_cpu_scalar(body), [torch.empty(4, device="meta"), torch.tensor(2.0)])
    assert "to_device(" not in text
    assert "out1 = tv1\n" in text


def test_misaligned_inputs_are_compiled_as_such(gpu, monkeypatch):
    seen = []
    monkeypatch.setattr(
        launches,
        "loaded",
        lambda wanted, *_: [seen.append(aligned) or PRINTED for _, aligned in wanted],
    )
    whole = torch.empty(64, device="meta")
    body = lambda fd, x, y, s: fd.ops.mul(fd.ops.add(x, y), s)  # noqa: E731
    fd = record(body, [whole[:8], whole[:8], 2.0])
    gpu(fd, [whole[1:9], whole[4:12], 2.0])
    assert seen == [(False, True, False, True)]
