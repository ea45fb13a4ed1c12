"""compat.nvfuser: the first frontend's forms, its cache and its printed text."""

from __future__ import annotations

import re
import threading
import time

import pytest
import torch

import tritonfuser
from tritonfuser import options
from tritonfuser.compat import nvfuser, nvfuser_direct
from tritonfuser.compat.nvfuser import DataType, Fusion, FusionCache, FusionDefinition

pytestmark = pytest.mark.usefixtures("empty_fusion_cache")


def example(fs=None, factor=3.0):
    with FusionDefinition(fs) as fd:
        a = fd.define_tensor(symbolic_sizes=[-1, 1, -1], contiguous=[True, True, True])
        b = fd.define_tensor(3)
        c = fd.define_constant(factor)
        d = fd.ops.mul(fd.ops.add(a, b), c)
        fd.add_output(fd.ops.sum(d, [-1], False, DataType.Float))
    return fd


@pytest.fixture
def inputs():
    return [torch.randn(2, 1, 5), torch.randn(2, 4, 5)]


def test_a_fusion_is_defined_and_executed(inputs):
    fs = Fusion()
    example(fs)
    a, b = inputs
    (out,) = fs.execute(inputs)
    torch.testing.assert_close(out, ((a + b) * 3.0).sum(-1))
    assert fs.defined()
    assert Fusion(fs.id()) is fs
    found = FusionDefinition(fs.id())
    assert torch.equal(found.execute(inputs)[0], out)


def test_definitions_go_into_the_cache(inputs, capsys):
    cache = FusionCache.get(max_fusions=2)
    assert FusionCache.get() is cache
    cache.print_stats()
    assert capsys.readouterr().out == "Max Fusions Allowed: 2\nThe fusion cache is empty.\n"
    first, second = example(), example()
    assert cache.num_fusions() == 1
    assert torch.equal(first.execute(inputs)[0], second.execute(inputs)[0])
    assert first.fec is second.fec
    example(factor=4.0)
    assert cache.num_fusions() == 2
    with pytest.raises(RuntimeError, match="the FusionCache is full: 2 fusions"):
        example(factor=5.0)
    example()
    assert "Cache Hits: 2\n" in cache.stats()
    FusionCache.reset()
    assert FusionCache.get().num_fusions() == 0


def _together(count, call):
    """What threads that begin at once are given."""
    begin, found = threading.Barrier(count), []

    def run(number):
        begin.wait()
        found.append(call(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_make_one_cache(monkeypatch):
    read = FusionCache.deserialize

    def slowly(self, filename):
        time.sleep(0.05)
        read(self, filename)

    monkeypatch.setattr(FusionCache, "deserialize", slowly)
    found = _together(6, lambda _: FusionCache.get())
    assert len(found) == 6 and len(set(map(id, found))) == 1


def test_threads_do_not_overfill_the_cache(monkeypatch):
    count = nvfuser_direct.LRUCache.num_fusions

    def slowly(self):
        found = count(self)
        time.sleep(0.05)
        return found

    monkeypatch.setattr(nvfuser_direct.LRUCache, "num_fusions", slowly)
    FusionCache.get(max_fusions=2)
    definitions = [example().fusion] + [_scaled(factor) for factor in range(4)]

    def add(number):
        try:
            FusionCache.get().add(definitions[number])
        except RuntimeError as error:
            return str(error)
        return None

    found = _together(len(definitions), add)
    assert FusionCache.get().num_fusions() == 2
    assert sum(one is not None and "is full" in one for one in found) == 3


def _scaled(factor):
    with nvfuser_direct.FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1], contiguity=True)
        fd.add_output(fd.ops.mul(a, float(factor)))
    return fd.fusion


CACHES = {
    "FusionCache.get": FusionCache.get,
    "LRUCache": nvfuser_direct.LRUCache,
    "LruFusionCache": nvfuser_direct.LruFusionCache,
}


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "8"])
@pytest.mark.parametrize("name", CACHES)
def test_a_cache_of_no_count_is_refused_by_its_name(name, count):
    text = f"{name}: max_fusions must be an int of 1 or more, got {count!r}"
    with pytest.raises(TypeError, match=f"^{re.escape(text)}"):
        CACHES[name](max_fusions=count)


def test_a_failed_definition_is_not_kept():
    with pytest.raises(KeyError), FusionDefinition() as fd:
        fd.add_output(fd.define_tensor(1))
        raise KeyError
    assert FusionCache.get().num_fusions() == 0


@pytest.mark.parametrize("variable", ["PYTORCH_NVFUSER_DUMP", "TRITONFUSER_DUMP"])
def test_the_definition_is_printed_at_execution(monkeypatch, capsys, inputs, variable):
    monkeypatch.setenv(variable, "python_definition")
    options.refresh()
    fs = Fusion()
    fd = example(fs)
    assert capsys.readouterr().out == ""
    fd.execute(inputs)
    expected = (
        f"def nvfuser_fusion_id{fs.id()}(fd : FusionDefinition) -> None :\n"
        "    T0 = fd.define_tensor(symbolic_sizes=[-1, 1, -1], contiguous=[True, True, True], "
        "dtype=DataType.Float)\n"
        "    T1 = fd.define_tensor(symbolic_sizes=[-1, -1, -1], contiguous=[False, False, False], "
        "dtype=DataType.Float)\n"
        "    S2 = fd.define_constant(3.00000)\n"
        "    T3 = fd.ops.add(T0, T1)\n"
        "    T4 = fd.ops.mul(T3, S2)\n"
        "    T5 = fd.ops.sum(T4, axes=[-1], keepdim=False, dtype=DataType.Float)\n"
        "    fd.add_output(T5)\n"
    )
    assert capsys.readouterr().out == expected
    fd.execute(inputs)
    assert capsys.readouterr().out == ""
    fs.execute(inputs)
    assert capsys.readouterr().out == expected


def test_the_last_run_as_text(inputs):
    fd = example()
    for query in (fd.last_cuda_code, fd.last_scheduled_fusion_ir):
        with pytest.raises(RuntimeError, match="nothing was executed yet"):
            query()
    assert fd.fusion_ir() == str(fd.fusion.ir)
    fd.execute(inputs)
    fd.execute([torch.randn(3, 1, 7), torch.randn(3, 2, 7)])
    fd.execute(inputs)
    assert fd.last_cuda_code(intrinsic_code=True) == fd.fec.get_cuda_kernel(inputs)
    assert fd.fec.get_cuda_kernel(inputs, intrinsic_code=False) == fd.last_cuda_code()
    assert fd.last_scheduled_fusion_ir(tensor_transforms=True) == fd.fec.get_scheduled_ir(inputs)
    by_hand = example()
    by_hand.manual_execute(inputs)
    assert "@triton.jit" in by_hand.last_cuda_code()
    assert "sum" in by_hand.last_scheduled_fusion_ir()


def test_a_fusion_refuses_what_its_definition_refuses(inputs, monkeypatch):
    fs = Fusion()
    fd = example(fs)
    fec = nvfuser.FusionExecutorCache(fs)
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "0")
    options.refresh()
    refusal = "Found unsupported device cpu, only scalar CPU or CUDA tensors are supported"
    for call in (fd.execute, fs.execute, fs.plan, fec.execute, fec.plan):
        with pytest.raises(ValueError, match=refusal):
            call(inputs)
    with tritonfuser.FusionDefinition(Fusion()) as ours:
        ours.add_output(ours.ops.neg(ours.define_tensor(1)))
    assert torch.equal(ours.fusion.execute([torch.ones(2)])[0], -torch.ones(2))
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "1")
    options.refresh()
    assert torch.equal(fs.execute(inputs)[0], fd.execute(inputs)[0])


def test_the_repro_script_is_in_the_direct_frontends_words(inputs):
    script = example().repro_script_for(inputs)
    assert "from nvfuser_direct import FusionDefinition, DataType\n" in script
    assert "with FusionDefinition() as fd:\n    nvfuser_fusion(fd)\n" in script


def test_manual_execution_is_there_too(inputs):
    fd = example()
    a, b = inputs
    torch.testing.assert_close(fd.manual_execute(inputs)[0], ((a + b) * 3.0).sum(-1))


def test_the_names_of_the_first_frontend():
    with FusionDefinition() as fd:
        assert isinstance(fd.define_tensor(1), nvfuser.Tensor)
        assert isinstance(fd.define_scalar(1.0), nvfuser.Scalar)
        fd.add_output(fd.define_tensor(1))
    assert nvfuser.version() >= "0.2.34"
    assert nvfuser.compute_tensor_descriptor([2, 3], [3, 1]) == ([True, True], [1, 0])


def test_every_name_of_the_direct_frontend_is_here_too():
    for name in (*nvfuser_direct.__all__, "compute_contiguity", "FusionCache"):
        assert hasattr(nvfuser, name)
    assert nvfuser._C is nvfuser
    assert nvfuser.compute_contiguity([2, 1, 3], [3, 3, 1]) == [True, None, True]
    assert nvfuser.FusionDefinition is not nvfuser_direct.FusionDefinition


def test_the_printed_text_records_the_same(monkeypatch, capsys):
    """Axes as they were written; `_` for results that are not there."""
    monkeypatch.setenv("PYTORCH_NVFUSER_DUMP", "python_definition")
    options.refresh()
    x, y = torch.randn(3, 4), torch.randn(3, 16).to(torch.float8_e4m3fn)
    with FusionDefinition() as fd:
        t, n, u = fd.define_tensor(2), fd.define_scalar(dtype=DataType.Int), fd.from_pytorch(y)
        one = fd.define_tensor(0)
        fd.add_output(fd.ops.var_mean(t, [-1, 0], 1, False)[1])
        fd.add_output(fd.ops.sum(t, -1, True))
        fd.add_output(fd.ops.sum(t))
        fd.add_output(fd.ops.max(fd.ops.permute(t, [-1, 0]), [-2]))
        fd.add_output(fd.ops.welford(t, axes=[-2])[0])
        fd.add_output(fd.ops.where(fd.ops.gt(t, 0.0), t, n))
        fd.add_output(fd.ops.mul(t, fd.define_scalar(2.0, dtype=DataType.Half)), t)
        fd.add_output(fd.ops.scaled_mm(u, fd.ops.permute(u, [1, 0]), one, one)[0])
    inputs = [x, 2, y, torch.tensor(2.0)]
    before = [x.clone(), *inputs[1:]]
    outputs = fd.execute(inputs)
    text = capsys.readouterr().out
    for line in (
        "fd.ops.var_mean(T0, axes=[-1, 0], correction=1, keepdim=False)",
        "fd.ops.sum(T0, axes=[-1], keepdim=False, dtype=DataType.Float)",
        "fd.ops.sum(T0, axes=[0, 1], keepdim=False, dtype=DataType.Float)",
        "axes=[-2], keepdim=False, dtype=DataType.Null)",
        "fd.ops.welford(T0, axes=[-2])",
        ", _, _ = fd.ops.scaled_mm(",
    ):
        assert line in text
    scope = {"FusionDefinition": FusionDefinition, "DataType": DataType}
    exec(text, scope)
    (program,) = (value for name, value in scope.items() if name.startswith("nvfuser_fusion_id"))
    with FusionDefinition() as again:
        program(again)
    for one, other in zip(again.execute(before), outputs, strict=True):
        assert torch.equal(one, other)
