"""Loads before all else, where a thread loads little."""

from __future__ import annotations

import re
from functools import reduce

import pytest
import torch

from tests.lowering.graphs import layer_norm, noise
from tests.lowering.harness import H200, check, lowered, record, texts
from tests.lowering.sass import disassembled
from tritonfuser import DataType
from tritonfuser.lowering.build import compile_kernel
from tritonfuser.lowering.emit.lines import Line
from tritonfuser.lowering.emit.load_order import in_loop_bodies, loads_first

BESIDES = ("x = ", "r = ", "x_mask = ", "r_mask = ", "x0 = ", "x1 = ")


def body(text):
    """The lines of the kernel that name something, without comments."""
    inside = text.split("@triton.jit")[1].split("\ndef launch")[0]
    lines = [line.strip() for line in inside.splitlines() if line.startswith("    ")]
    return [line for line in lines if " = " in line]


def loads_and_others(text):
    """The lines of all loads, and those before the last of them that need not come before it."""
    lines = body(text)
    last = max(n for n, line in enumerate(lines) if "tl.load" in line)
    loads = [line for line in lines if "tl.load" in line]
    return loads, [s for s in lines[:last] if s not in loads and not s.startswith(BESIDES)]


def branching(fd, x, y):
    """Quotients and powers have branches."""
    return fd.ops.mul(fd.ops.div(fd.ops.pow(x, 0.3), fd.ops.sin(x)), fd.ops.cos(y))


def widened(fd, x, weight):
    x, weight = (fd.ops.cast(given, DataType.Float) for given in (x, weight))
    return fd.ops.cast(layer_norm(fd, x, weight, weight), DataType.BFloat16)


def norm_inputs(rows):
    return noise(rows, 192), noise(192, seed=1), noise(192, seed=2)


@pytest.mark.parametrize("norm", [True, False])
def test_loads_come_first_where_a_thread_has_few_elements(norm):
    inputs = norm_inputs(6) if norm else (noise(6, 192).abs(), noise(6, 192, seed=1))
    (text,) = texts(check(layer_norm if norm else branching, *inputs, tolerance=1e-5))
    loads, others = loads_and_others(text)
    assert len(loads) == len(inputs)
    assert others == []


def test_many_programs_load_first_too():
    given = [torch.empty(8192, 4096, device="meta") for _ in range(2)]
    (text,) = texts(lowered(branching, given, H200))
    assert loads_and_others(text)[1] == []


def summed(fd, *given):
    """Exponentials, so that no load is moved before what it follows."""
    return reduce(fd.ops.add, map(fd.ops.exp, given))


@pytest.mark.parametrize(("count", "first"), [(4, True), (60, False)])
def test_loads_that_would_fill_the_registers_wait(count, first):
    inputs = [torch.empty(4096, 4096, device="meta") for _ in range(count)]
    (text,) = texts(lowered(summed, inputs, H200))
    loads, others = loads_and_others(text)
    assert len(loads) == count
    assert (not others) == first


def test_each_load_of_a_tensor_counts():
    """Sixty parts of one tensor."""

    def parts(fd, x):
        return summed(fd, *(fd.ops.slice(x, [n, 0], [n + 512, 1024]) for n in range(60)))

    (text,) = texts(lowered(parts, [torch.empty(600, 1024, device="meta")], H200))
    loads, others = loads_and_others(text)
    assert len(loads) == 60 and others


def test_what_is_behind_a_loop_is_not_held_through_it():
    """32 elements a thread spilled 296 bytes."""
    rows = [torch.empty(n, dtype=torch.bfloat16, device="meta") for n in [(128, 262144), 262144]]
    (text,) = texts(lowered(widened, rows))
    assert "TBLOCK=32768" in text
    assert text.index("for r_start in") < re.search(r"tl\.load\(.* \+ t[,)]", text).start()


def test_no_barrier_comes_before_a_load(tmp_path):
    inputs = noise(16, 1024), noise(1024, seed=1), noise(1024, seed=2)
    (source,) = lowered(layer_norm, inputs, H200).sources
    binary = compile_kernel(source, "sm_90", (True,) * len(source.args)).binary
    code = disassembled(binary.asm["cubin"], tmp_path)
    loads = [m.start() for m in re.finditer(r"\bLDG\b", code)]
    assert len(loads) >= 3
    assert code.index("BAR.SYNC") > max(loads)


def test_what_is_loaded_at_loaded_places_waits_for_them():
    def gathered(fd, x, index, y):
        found = fd.ops.index_select(x, index, 0)
        return fd.ops.mul(fd.ops.exp(found), y)

    index = torch.tensor([3, 0, 6, 2, 2])
    (text,) = texts(check(gathered, noise(7, 24), index, noise(5, 24)))
    names = [re.search(r"tl\.load\((\w+)_ptr", line)[1] for line in body(text) if "tl.load" in line]
    assert names == ["tv1", "tv2", "tv0"]


LOOPS = """
x = tl.program_id(0)
acc = tl.full([4], 0.0, tl.float32)
for r_start in range(0, 8, 4):
|r = r_start + x
|a = tl.load(a_ptr + r)
|acc = acc + a
s = tl.sum(acc, 0)
b, c = found(s)
d = tl.load(d_ptr + b)
e = tl.load(e_ptr + x)
tl.store(o_ptr + x, d + e + c)
"""


def test_loops_and_what_depends_on_them_stay():
    given = [
        Line(text.lstrip("|"), depth=text.startswith("|")) for text in LOOPS.split("\n") if text
    ]
    found = [line.text for line in loads_first(given)]
    others = [line.text for line in given if line.text[0] not in "xe"]
    assert found == ["x = tl.program_id(0)", "e = tl.load(e_ptr + x)", *others]


STEPS = """
acc = tl.full([4], 0.0, tl.float32)
for r_start in range(0, 8, 4):
|r = r_start + x
|a = tl.load(a_ptr + r)
|b = tl.div_rn(a, acc)
|r0 = r // 2
|c = tl.load(c_ptr + r0)
|d = tl.load(d_ptr + c)
|e = tl.load(e_ptr + acc)
|acc = acc + b * c * d * e
z = tl.load(z_ptr + x)
"""


def test_loads_of_each_step_come_before_what_it_computes():
    """But not those whose places are loaded, or known when the step before has ended."""
    given = [
        Line(text.lstrip("|"), depth=text.startswith("|")) for text in STEPS.split("\n") if text
    ]
    found = [line.text.split(" = ")[0] for line in in_loop_bodies(loads_first, given)]
    loop = "for r_start in range(0, 8, 4):"
    assert found == ["acc", loop, "r", "a", "r0", "c", "b", "d", "e", "acc", "z"]


def norms_of(tensors, weights, columns=80):
    """RMS norms one of the other, and inputs by their number of rows."""

    def body(fd, *given):
        rows, scales = given[:tensors], given[tensors:]
        x = fd.ops.cast(rows[0], DataType.Float)
        for scale in scales:
            square = fd.ops.sum(fd.ops.mul(x, x), [1], True)
            x = fd.ops.mul(fd.ops.mul(x, fd.ops.rsqrt(square)), fd.ops.cast(scale, DataType.Float))
        for other in rows[1:]:
            x = fd.ops.add(x, fd.ops.cast(other, DataType.Float))
        return fd.ops.cast(x, DataType.BFloat16)

    def sized(rows):
        kind = {"dtype": torch.bfloat16, "device": "meta"}
        full = (torch.empty(rows, columns, **kind) for _ in range(tensors))
        return [*full, *(torch.empty(columns, **kind) for _ in range(weights))]

    return body, sized


@pytest.mark.parametrize(
    ("norms", "tensors", "first"), [(1, 1, False), (2, 1, True), (2, 2, False)]
)
@pytest.mark.parametrize("varying", [False, True])
def test_weights_come_before_the_reductions_that_they_wait_for(norms, tensors, first, varying):
    """H200, two RMS norms in bfloat16 of rows of 80, with weight and bias: 242 us, and 158. Not of
    two tensors, of which the second would be held as well."""
    body, sized = norms_of(tensors, norms)
    given = sized(1 << 20)
    options = {"arch": "sm_90", "varying": [sized(700_000), sized(900_000)] * varying}
    fd = record(body, given)
    schedule = fd.schedule(given, **options).to_dict()
    (segment,) = schedule["segments"]
    segment["params"] |= {"block_x": 16, "block_r": 128, "num_warps": 2, "staged": False}
    (kernel,) = fd.kernels(given, schedule=schedule, **options)
    loads, others = loads_and_others(kernel.text)
    assert len(loads) == tensors + norms
    assert (not [line for line in others if "tl.sum" in line]) == first


@pytest.mark.parametrize(("rows", "first"), [(1, False), (2, True)])
def test_weights_of_one_row_wait_as_they_have_its_layout(rows, first):
    """H200, a layer norm in bfloat16 of rows of 8194, one a program: 99 us, 83 with them behind."""
    body, sized = norms_of(1, 2, columns=2048)
    given = sized(1 << 14)
    fd = record(body, given)
    schedule = fd.schedule(given, arch="sm_90").to_dict()
    (segment,) = schedule["segments"]
    own = {"block_x": rows, "block_r": 2048, "tails": [], "align": 1, "staged": False}
    segment["params"] |= own | {"num_warps": 2 * rows}
    (kernel,) = fd.kernels(given, arch="sm_90", schedule=schedule)
    others = loads_and_others(kernel.text)[1]
    assert (not [line for line in others if "tl.sum" in line]) == first
