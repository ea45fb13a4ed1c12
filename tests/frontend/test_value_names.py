"""A value has the name of ``print(fd)`` everywhere; through compat, nvFuser's."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import DataType, FusionDefinition, InputError, options
from tritonfuser.compat import nvfuser, nvfuser_direct


def recorded(definition=FusionDefinition):
    with definition() as fd:
        x = fd.define_tensor([-1, 4, 1], contiguity=True, dtype=DataType.Half)
        s = fd.define_scalar()
        y = fd.ops.mul(x, s)
        fd.add_output(y)
    return fd, x, s, y


def test_handles_have_the_names_of_the_printed_definition():
    fd, x, s, y = recorded()
    lines = repr(fd).splitlines()
    assert lines[1].startswith("    tv0 = ") and lines[2].startswith("    c0 = ")
    assert lines[3] == "    tv1 = fd.ops.mul(tv0, c0)"
    assert str(x) == x.str() == repr(x) == "tv0: Half[i0, 4, 1]"
    assert str(s) == "c0: Double" and str(y) == "tv1: Float[i0, 4, 1]"
    assert str(y.definition()) == "tv1 = mul(tv0, c0)"
    assert "tv1: Float[i0, 4, 1] = mul(tv0, c0)" in str(fd.fusion)


@pytest.mark.parametrize("way", ["run", "run_kernel", "kernels", "plan", "explain"])
def test_errors_have_them(way):
    fd, *_ = recorded()
    x = torch.randn(3, 4, 1).half()
    with pytest.raises(InputError, match=r"^Expected input 0, tv0, to be an at::Tensor but got"):
        getattr(fd, way)([2, 1.0])
    with pytest.raises(InputError, match=r"^Expected input 1, c0, to be a scalar but got float"):
        getattr(fd, way)([x, torch.ones(2)])
    with pytest.raises(InputError, match=r"in order: tv0: Half\[i0, 4, 1\], c0: Double\."):
        getattr(fd, way)([x])


def test_plans_have_them():
    fd, *_ = recorded()
    x = torch.randn(3, 4, 1).half()
    with pytest.raises(InputError, match=r"^Expected input 0, tv0, to have shape \[3, 4, 1\]"):
        fd.plan([x, 1.0])([torch.randn(5, 4, 1).half(), 1.0])
    with pytest.raises(InputError, match=r"^Expected input 0, tv0, to have no memory"):
        with FusionDefinition() as two:
            a, b = two.define_tensor([-1]), two.define_tensor([-1])
            two.add_output(two.ops.add(a, b))
        two.run([torch.ones(2), torch.ones(2, device="meta")])


@pytest.mark.parametrize("module", [nvfuser_direct, nvfuser])
def test_through_compat_they_are_nvfusers(module, monkeypatch):
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "1")
    options.refresh()
    fd, x, s, y = recorded(module.FusionDefinition)
    assert str(x) == "T0_g___half[iS0{i0}, iS1{4}, bS2{1}]"
    assert str(y) == "T1_g_float[iS0{i0}, iS1{4}, bS2{1}]"
    assert str(s) == "d0"
    text = r"^Expected input 0, T0_g___half\[iS0\{i0\}, iS1\{4\}, bS2\{1\}\], to be an at::Tensor"
    for call in (fd.execute, fd.fusion.execute, fd.kernels):
        with pytest.raises(RuntimeError, match=text):
            call([2, 1.0])
    with pytest.raises(RuntimeError, match=r"^Expected input 1, d4, to be a scalar"):
        fd.execute([torch.ones(3, 4, 1).half(), torch.ones(2)])


def test_scalars_are_numbered_with_the_extents_the_zero_and_the_one(monkeypatch):
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "1")
    options.refresh()
    with nvfuser_direct.FusionDefinition() as fd:
        fd.define_tensor([-1])
        fd.define_scalar()
        fd.define_tensor([1, -1])
        fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.full([2], 1.0, DataType.Float))
    a, b = torch.ones(2), torch.ones(1, 2)
    with pytest.raises(RuntimeError, match="Expected input 1, d2, to be a scalar"):
        fd.run([a, a, b, 1])
    with pytest.raises(RuntimeError, match="Expected input 3, i5, to be a scalar"):
        fd.run([a, 1.0, b, a])
    with pytest.raises(RuntimeError, match=r"Expected input 2, T1_g_float\[bS1\{1\}, iS2\{i4\}\]"):
        fd.run([a, 1.0, 3, 1])


@pytest.fixture(autouse=True)
def settings():
    yield
    options.refresh()


def test_the_dump_has_them(monkeypatch, capsys):
    monkeypatch.setenv("TRITONFUSER_DUMP", "python_definition,kernel")
    options.refresh()
    fd, *_ = recorded()
    fd.run([torch.ones(2, 4, 1).half(), 1.0])
    printed = capsys.readouterr().out
    assert printed.startswith(repr(fd))
    assert "tv1 = " in printed.partition("# ---- kernel")[2]


def test_nvfusers_variable_prints_what_its_first_frontend_printed(monkeypatch, capsys):
    monkeypatch.setenv("PYTORCH_NVFUSER_DUMP", "python_definition")
    options.refresh()
    fd, *_ = recorded()
    fd.run([torch.ones(2, 4, 1).half(), 1.0])
    assert capsys.readouterr().out.startswith("def nvfuser_fusion_id")
