"""compat.nvfuser_direct: nvFuser's module, its names and its rules."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from packaging.version import Version as PackagingVersion

import tritonfuser
from tritonfuser import compat, options
from tritonfuser.compat import nvfuser_direct
from tritonfuser.compat.nvfuser_direct import benchmark_utils, pytorch_utils
from tritonfuser.compat.nvfuser_direct.nvfuser_direct_version import Version


def environment():
    root = str(Path(tritonfuser.__file__).parent.parent)
    return {**os.environ, "NVF_CPU_AS_CUDA": "1", "PYTHONPATH": root}


def negation(namespace=nvfuser_direct):
    with namespace.FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1], contiguity=True)))
    return fd


def test_it_offers_the_same_names():
    for name in tritonfuser.__all__:
        assert hasattr(nvfuser_direct, name)
    assert nvfuser_direct.DataType is tritonfuser.DataType
    assert nvfuser_direct.ops is tritonfuser.ops
    assert issubclass(nvfuser_direct.FusionDefinition, tritonfuser.FusionDefinition)


def test_the_version_compares():
    version = nvfuser_direct.version()
    assert isinstance(version, str)
    assert version == "0.2.36+tritonfuser" == nvfuser_direct.__version__
    assert version >= "0.2.34"
    assert version > "0.2.4"
    assert version < "0.2.100"
    assert version <= "0.3"
    assert version != "0.2.36"
    assert not version < PackagingVersion("0.2.34")
    assert version >= PackagingVersion("0.2.34")
    assert PackagingVersion("0.2.34") <= version
    assert PackagingVersion("0.2.37") > version
    assert PackagingVersion(version) > PackagingVersion("0.2.36")
    assert Version("1.0") == "1.0.0"
    assert hash(Version("1.0")) == hash(Version("1.0.0"))


def test_modules_are_found_under_nvfusers_paths_once_installed():
    compat.install()
    try:
        assert importlib.import_module("nvfuser_direct") is nvfuser_direct
        assert importlib.import_module("nvfuser_direct.pytorch_utils") is pytorch_utils
        assert importlib.import_module("nvfuser_direct.benchmark_utils") is benchmark_utils
        module = importlib.import_module("nvfuser_direct.nvfuser_direct_version")
        assert module.Version is Version
        module = importlib.import_module("nvfuser_direct.multidevice")
        assert module is nvfuser_direct.multidevice
        assert importlib.import_module("nvfuser").FusionDefinition
        compat.install()
    finally:
        compat.uninstall()
    assert "nvfuser_direct" not in sys.modules


def test_install_does_not_displace_another_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvfuser_direct", sys)
    with pytest.raises(ImportError, match="nvfuser_direct is imported already"):
        compat.install()
    assert sys.modules["nvfuser_direct"] is sys
    assert "nvfuser" not in sys.modules


# --- CPU tensors -------------------------------------------------------------------------------

TEXT = "Found unsupported device cpu, only scalar CPU or CUDA tensors are supported"


def test_cpu_tensors_are_refused():
    with nvfuser_direct.FusionDefinition() as fd:
        fd.from_pytorch(torch.tensor(1.0))
        with pytest.raises(ValueError, match=TEXT):
            fd.from_pytorch(torch.ones(2))
    for method in ("execute", "run", "manual_execute", "heuristics", "kernels"):
        with pytest.raises(ValueError, match=TEXT):
            getattr(negation(), method)([torch.ones(2)])


def test_cpu_tensors_are_refused_after_the_first_run_too(cpu_as_cuda, monkeypatch):
    with nvfuser_direct.FusionDefinition() as fd:
        s = fd.define_scalar()
        fd.add_output(fd.ops.mul(fd.define_tensor([-1], contiguity=True), s))
    x = torch.ones(3)
    (out,) = fd.execute([2.0, x])
    assert torch.equal(out, 2 * x)
    monkeypatch.setenv("NVF_CPU_AS_CUDA", "0")
    options.refresh()
    fd.fec = fd.fec
    with pytest.raises(ValueError, match=TEXT):
        fd.execute([2.0, x])
    with pytest.raises(ValueError, match=TEXT):
        fd.execute([2.0, [x]])


def test_a_kernel_can_be_compiled_for_a_gpu_from_cpu_tensors():
    (report,) = negation().compile_for("sm_90", [torch.ones(64)])
    assert report.spill_bytes == 0


def test_nvfusers_names_do_not_warn(cpu_as_cuda):
    x = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fd = negation()
        for _ in range(2):
            assert torch.equal(fd.execute([x])[0], -x)
            assert torch.equal(fd.execute([x], save_repro_inputs=True)[0], -x)
        fd = negation()
        assert torch.equal(fd.manual_execute([x], heuristic_params=None)[0], -x)
        assert fd.ke.is_compiled()


def test_execute_costs_what_run_costs():
    ours = nvfuser_direct.FusionDefinition
    assert ours.execute is ours.run


def test_the_repro_script_imports_nvfuser_direct(cpu_as_cuda):
    fd = negation()
    script = fd.repro_script_for([torch.ones(2)])
    assert (
        "import torch\n"
        "from nvfuser_direct import FusionDefinition, DataType\n"
        "def nvfuser_fusion(fd : FusionDefinition) -> None :\n"
    ) in script
    assert "\n\nwith FusionDefinition() as fd:\n    nvfuser_fusion(fd)\n\ninputs = [\n" in script
    head = "import tritonfuser.compat\ntritonfuser.compat.install()\n"
    subprocess.run([sys.executable, "-c", head + script], check=True, env=environment())


def test_the_lru_decorator_keeps_the_rules(cpu_as_cuda):
    @nvfuser_direct.LruFusionCache(max_fusions=4)
    def made():
        return negation()

    assert torch.equal(made().execute([torch.ones(2)])[0], -torch.ones(2))
    assert made.num_fusions() == 1


# --- submodules --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float32, "Float"),
        (torch.bfloat16, "BFloat16"),
        (torch.int32, "Int32"),
        (torch.complex128, "ComplexDouble"),
        (torch.float8_e4m3fn, "Float8_e4m3fn"),
        (int, "Int"),
        (float, "Double"),
        (bool, "Bool"),
        (complex, "ComplexDouble"),
    ],
)
def test_torch_dtypes_as_datatypes(dtype, expected):
    found = pytorch_utils.torch_dtype_to_nvfuser_dtype(dtype)
    assert found is nvfuser_direct.DataType[expected]


def test_dtypes_without_a_datatype():
    for dtype in (torch.int16, str):
        with pytest.raises(TypeError, match="to a Fusion data type is not supported"):
            pytorch_utils.torch_dtype_to_nvfuser_dtype(dtype)
    assert pytorch_utils.python_scalar_to_nvfuser_dtype(2.0) is tritonfuser.DataType.Double
    assert pytorch_utils.python_scalar_to_nvfuser_dtype(True) is tritonfuser.DataType.Bool
    with pytest.raises(TypeError, match="Unsupported dtype"):
        pytorch_utils.python_scalar_to_nvfuser_dtype("2")


def test_a_test_is_tried_again_when_memory_ran_out():
    calls = []

    @pytorch_utils.retry_on_oom_or_skip_test
    def once(failures):
        calls.append(failures)
        if len(calls) <= failures:
            raise torch.OutOfMemoryError("full")
        return len(calls)

    assert once(1) == 2
    calls.clear()
    with pytest.raises(BaseException, match="out of memory: full") as error:
        once(2)
    assert error.typename == "SkipTest"


def test_device_properties_have_nvfusers_keys(monkeypatch):
    gpu = SimpleNamespace(
        name="NVIDIA H200",
        major=9,
        minor=0,
        total_memory=1 << 37,
        multi_processor_count=132,
        max_threads_per_multi_processor=2048,
        memory_clock_rate=3_201_000,
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: gpu)
    found = pytorch_utils.DEVICE_PROPERTIES
    assert found["gpu_peak_bandwidth_gbps"] == pytest.approx(4270)
    assert found["gpu_peak_bandwidth_bps"] == pytest.approx(4.27e12)
    assert (found["gpu_clock_rate_khz"], found["gpu_mem_clock_khz"]) == (0, 3_201_000)
    assert (found["gpu_name"], found["gpu_sm_count"], found["gpu_gmem_bytes"]) == (
        *("NVIDIA H200", 132, 1 << 37),
    )


def test_device_properties_without_a_gpu():
    if torch.cuda.is_available():
        assert pytorch_utils.DEVICE_PROPERTIES["gpu_sm_count"] > 0
    else:
        assert pytorch_utils.DEVICE_PROPERTIES is None
    with pytest.raises(AttributeError):
        pytorch_utils.NO_SUCH_NAME  # noqa: B018


def test_timers_count_seconds():
    for timer in (benchmark_utils.CuptiTimer(), benchmark_utils.FusionProfileTimer()):
        try:
            assert timer() == 0.0
            assert timer() >= 0.0
        finally:
            timer.cleanup()


def test_a_program_written_for_nvfuser_runs_unchanged(tmp_path):
    program = """
        import torch
        from nvfuser_direct import FusionDefinition, DataType

        def nvfuser_fusion(fd : FusionDefinition) -> None :
            tv0 = fd.define_tensor(shape=[-1, 1], contiguity=[True, None], dtype=DataType.Float)
            tv1 = fd.ops.mul(tv0, 3.00000)
            tv2 = fd.ops.expand(tv1, shape=[-1, 4])
            fd.add_output(tv2)

        with FusionDefinition() as fd:
            nvfuser_fusion(fd)
        x = torch.ones(2, 1)
        (out,) = fd.execute([x])
        assert torch.equal(out, torch.full((2, 4), 3.0))
    """
    path = tmp_path / "program.py"
    path.write_text(
        "import tritonfuser.compat\ntritonfuser.compat.install()\n" + textwrap.dedent(program)
    )
    subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        check=True,
        env=environment(),
    )
