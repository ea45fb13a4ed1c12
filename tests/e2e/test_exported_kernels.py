"""The text of a kernel runs alone, under ``TRITON_INTERPRET=1`` too: its ``launch`` on tensors."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, gpu
from tests.e2e.exported import Exports
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.opened import open_signature
from tests.e2e.ops import calls as many
from tests.e2e.ops.every_op import calls_of
from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import CPU as CPU_FACTS
from tests.lowering.harness import H200, lowered, record, small
from tests.lowering.tile.test_shared_rows import inputs_of, rms_norm
from tests.test_contract import GENERATED
from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.product_policy import ProductPolicy

D = DataType


def dropped(fd: FusionDefinition, x: Any, scale: Any, count: Any) -> Any:
    """Random numbers, a Double and an Int that each run is given."""
    kept = fd.ops.lt(fd.ops.uniform(0.0, 1.0, [9, 40]), 0.7)
    return fd.ops.mul(fd.ops.add(fd.ops.mul(x, kept), count), scale), fd.ops.full(
        [2], fd.ops.mul(count, count), D.Int
    )


def narrow(fd: FusionDefinition, x: Any) -> Any:
    """Bytes of an 8-bit float, in and out."""
    wide = fd.ops.cast(x, D.Float)
    return fd.ops.cast(fd.ops.mul(wide, 0.5), D.Float8_e5m2), fd.ops.sum(wide, [1])


def turned(fd: FusionDefinition, x: Any) -> Any:
    """Complex numbers, in and out."""
    return fd.ops.mul(x, 2j), fd.ops.sum(x, [0])


def scattered(fd: FusionDefinition, x: Any, index: Any, rows: Any) -> Any:
    return fd.ops.scatter(x, index, fd.ops.mul(rows, 2.0), 0)


def multiplied(fd: FusionDefinition, x: Any, y: Any) -> Any:
    return fd.ops.tanh(fd.ops.cast(fd.ops.matmul(x, y), D.Float))


def halves(*shape: int, seed: int = 0) -> torch.Tensor:
    return noise(*shape, seed=seed).bfloat16()


def index(rows: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, rows, shape, generator=torch.Generator().manual_seed(0))


DEFINITIONS: dict[str, tuple[Any, list[Any], dict[str, Any]]] = {
    "softmax": (softmax, [noise(7, 100)], {}),
    "a split sum": (lambda fd, x: fd.ops.sum(x, [0, 1]), [noise(64, 256)], {"facts": small(132)}),
    "numbers": (dropped, [noise(9, 40), 0.1, 100_000], {}),
    "one": (dropped, [noise(9, 40), 1.0, 1], {}),
    "floats of 8 bits": (narrow, [noise(5, 33).to(torch.float8_e4m3fn)], {}),
    "complex": (turned, [torch.complex(noise(5, 6), noise(5, 6, seed=1))], {}),
    "scatter": (scattered, [noise(20, 8), index(20, 6, 8), noise(6, 8, seed=1)], {}),
    "a product": (
        multiplied,
        [halves(64, 64), halves(64, 64, seed=1)],
        {"products": ProductPolicy.KERNELS, "descriptors": True},
    ),
    "scans": (lambda fd, x: fd.ops.cumsum(fd.ops.exp(x), 1), [noise(5, 70)], {"block_r": 16}),
    "a number's truth": (
        lambda fd, x, flags: fd.ops.logical_or(x, flags),
        [torch.tensor(0.5), noise(40) > 0],
        {},
    ),
    "rounded": (lambda fd, x: fd.ops.cast(fd.ops.cast(x, D.BFloat16), D.Int), [noise(40)], {}),
}


def shared_rows() -> Lowered:
    """Programs that wait for what others reduce."""
    fd = record(rms_norm, inputs := inputs_of(7, 128, torch.float32))
    first, *rest = fd.heuristics(inputs)
    params = [replace(first, block_m=1, parts=2, block_r=64), *rest]
    return lowered(fd, inputs, CPU_FACTS, params)


def test_definitions(tmp_path: Path) -> None:
    """All kernels of each: several of a split sum, drawn numbers, workspaces, descriptors."""
    exports = Exports(tmp_path)
    texts = []
    for body, inputs, options in DEFINITIONS.values():
        facts = options.get("facts", H200)
        found = lowered(record(body, inputs), inputs, **{"facts": facts, **options})
        texts += [source.text for source in found.sources if source is not None]
        exports.run(found, inputs, facts)
    found = shared_rows()
    texts.append(found.sources[0].text)
    exports.run(found, inputs_of(7, 128, torch.float32), CPU_FACTS)
    everything = "\n".join(texts)
    for part in ("drawn(", "scalar(", "wait_for(", "workspace = ", "libdevice", "torch.uint8"):
        assert part in everything, part
    assert "tl.make_tensor_descriptor" in everything
    exports.launch()


def test_sizes_that_vary(tmp_path: Path) -> None:
    """``launch`` takes the sizes."""
    exports = Exports(tmp_path)
    for body in (softmax, lambda fd, x: fd.ops.sum(x, [0]), lambda fd, x: fd.ops.var(x, [1])):
        with FusionDefinition() as fd:
            x = fd.define_tensor([-1, -1], True, D.Float)
            fd.add_output(body(fd, x))
        sizes = open_signature(fd, [noise(33, 70)], [[noise(20, 50)], [noise(40, 90)]])
        assert sizes is not None
        found = lower(fd.fusion.ir, sizes.signature, small(4), env=sizes.env)
        assert any(source.sizes for source in found.sources if source is not None)
        exports.run(found, [noise(33, 70)], small(4))
    exports.launch()


def test_functions_that_only_the_segments_of_a_shared_launch_call(tmp_path: Path) -> None:
    def body(fd: Any, x: Any, y: Any) -> Any:
        return fd.ops.max(fd.ops.tanh(x), [1]), fd.ops.sum(fd.ops.erf(y), [1])

    exports = Exports(tmp_path)
    inputs = [noise(3, 65), noise(5, 31)]
    found = lowered(record(body, inputs), inputs, small(4))
    (text,) = (source.text for source in found.sources if source is not None)
    assert "_and_s1(" in text
    exports.run(found, inputs, small(4))
    exports.launch()


def test_a_text_is_the_same_under_the_interpreter(tmp_path: Path) -> None:
    """What is exported where Triton interprets everything has the same imports."""
    program = (
        "import torch\nfrom tritonfuser import FusionDefinition\n"
        "with FusionDefinition() as fd:\n    x = fd.from_pytorch(torch.zeros(8, 100))\n"
        "    fd.add_output(fd.ops.max(fd.ops.tanh(x), [1]))\n"
        "print(fd.kernels([torch.zeros(8, 100)])[0].text)\n"
    )
    (tmp_path / "program.py").write_text(program)
    found = []
    for value in ("0", "1"):
        environment = {**os.environ, "TRITON_INTERPRET": value}
        command = [sys.executable, str(tmp_path / "program.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout)
    assert found[0] == found[1]
    assert "import reduce_max, tanh" in found[0]


# --- many ----------------------------------------------------------------------------------------


def export_graphs(exports: Exports, kind: str, numbers: range) -> None:
    for number in numbers:
        grown = KINDS[kind].grow(random.Random(f"{kind} {number}"))
        schedule = Schedule(gpu(4))
        exports.run(schedule.lowered(grown.fd, grown.inputs), grown.inputs, schedule.device)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_graphs(kind: str, tmp_path: Path) -> None:
    exports = Exports(tmp_path)
    export_graphs(exports, kind, range(25))
    exports.launch()


@pytest.mark.slow
def test_every_op(tmp_path: Path) -> None:
    """What each op that kernels compute is called on, as a GPU would run it."""
    exports = Exports(tmp_path)
    for name in GENERATED:
        recorded = many.record(name, calls_of(name))
        found = lowered(recorded.fd, recorded.inputs, small(4))
        exports.run(found, recorded.inputs, small(4))
    exports.launch()
