"""Matrix products as generated kernels, with what comes before and after, against torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition
from tritonfuser.heuristics.params import MatmulParams

BF16, HALF = DataType.BFloat16, DataType.Half
Body = Callable[[FusionDefinition, list[Any]], Any]


def record(body: Body, inputs: list[torch.Tensor]) -> FusionDefinition:
    with FusionDefinition() as fd:
        tensors = [fd.from_pytorch(t) for t in inputs]
        results = body(fd, tensors)
        for result in results if isinstance(results, list) else [results]:
            fd.add_output(result)
    return fd


def random(*shape: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def check(fd: FusionDefinition, inputs: list[torch.Tensor], *wanted: torch.Tensor) -> None:
    outputs = fd.execute(inputs, _enable_options=["fuse_matmul"])
    assert len(outputs) == len(wanted)
    for actual, expected in zip(outputs, wanted, strict=True):
        assert actual.dtype == expected.dtype and actual.shape == expected.shape
        torch.testing.assert_close(actual.double(), expected.double(), atol=2e-2, rtol=2e-2)


def schedulers(fd: FusionDefinition) -> list[str]:
    """Those of the newest plan."""
    plan = fd.fec.core.newest()
    return [s.scheduler for s in plan.lowered.segmented.segments]


def silu_after(fd: FusionDefinition, product: Any) -> Any:
    wide = fd.ops.cast(product, DataType.Float)
    return fd.ops.cast(fd.ops.mul(wide, fd.ops.sigmoid(wide)), BF16)


SHAPES = {
    "plain": ((64, 48), (48, 32)),
    "tails": ((70, 50), (50, 33)),
    "one row": ((1, 64), (64, 40)),
    "one column": ((40, 64), (64, 1)),
    "one of K": ((40, 1), (1, 24)),
    "rows of a batch": ((2, 35, 40), (40, 24)),
    "batches": ((3, 20, 40), (3, 40, 24)),
    "batches that broadcast": ((2, 1, 20, 40), (3, 40, 24)),
    "long K": ((20, 700), (700, 24)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_what_follows_a_product_of_any_ranks_joins_it(shapes: Any) -> None:
    x, y = (random(*shape) for shape in shapes)
    fd = record(lambda fd, t: silu_after(fd, fd.ops.matmul(*t)), [x, y])
    wide = torch.matmul(x.float(), y.float()).bfloat16().float()
    check(fd, [x, y], F.silu(wide).bfloat16())
    assert schedulers(fd) == ["matmul"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [(33,), (2, 17)])
def test_linear_with_bias_activation_scale_and_residual(
    dtype: torch.dtype, rows: tuple[int, ...]
) -> None:
    x, w, b = random(*rows, 40, dtype=dtype), random(24, 40, dtype=dtype), random(24, dtype=dtype)
    scale, rest = random(24, dtype=torch.float32), random(*rows, 24, dtype=dtype)

    def body(fd: FusionDefinition, t: list[Any]) -> list[Any]:
        product = fd.ops.linear(t[0], t[1], t[2])
        active = fd.ops.relu(fd.ops.cast(product, DataType.Float))
        last = fd.ops.add(fd.ops.mul(active, t[3]), t[4])
        return [product, fd.ops.cast(last, BF16 if dtype is torch.bfloat16 else HALF)]

    inputs = [x, w, b, scale, rest]
    product = F.linear(x.double(), w.double(), b.double()).to(dtype)
    last = product.relu().double() * scale.double() + rest.double()
    fd = record(body, inputs)
    check(fd, inputs, product, last.to(dtype))
    assert schedulers(fd) == ["matmul"]


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_operands_lie_as_they_are_given(turned: tuple[bool, bool]) -> None:
    x = random(40, 36).t() if turned[0] else random(36, 40)
    y = random(20, 40).t() if turned[1] else random(40, 20)
    fd = record(lambda fd, t: silu_after(fd, fd.ops.matmul(*t)), [x, y])
    wide = (x.float() @ y.float()).bfloat16().float()
    check(fd, [x, y], F.silu(wide).bfloat16())


def test_what_comes_before_a_product_joins_it() -> None:
    x, y = random(36, 50, dtype=torch.float32), random(50, 20)

    def body(fd: FusionDefinition, t: list[Any]) -> Any:
        # 0 becomes 1, so what lies past K's end must be put to 0 behind it.
        left = fd.ops.cast(fd.ops.exp(t[0]), BF16)
        return fd.ops.matmul(left, fd.ops.cast(fd.ops.cos(t[1]), BF16))

    fd = record(body, [x, y])
    left, right = x.exp().bfloat16(), y.float().cos().bfloat16()
    check(fd, [x, y], (left.double() @ right.double()).bfloat16())
    assert schedulers(fd) == ["matmul"]


def test_a_matrix_times_itself() -> None:
    x = random(48, 48)
    fd = record(lambda fd, t: fd.ops.matmul(t[0], t[0]), [x])
    check(fd, [x], (x.double() @ x.double()).bfloat16())
    turned = record(lambda fd, t: fd.ops.matmul(t[0], fd.ops.permute(t[0], [1, 0])), [x])
    check(turned, [x], (x.double() @ x.double().t()).bfloat16())


def test_products_of_products() -> None:
    x, w, v = random(34, 40), random(24, 40) / 6, random(16, 24) / 5

    def body(fd: FusionDefinition, t: list[Any]) -> Any:
        return fd.ops.linear(silu_after(fd, fd.ops.linear(t[0], t[1])), t[2])

    inner = F.silu((x.double() @ w.double().t()).bfloat16().float()).bfloat16()
    fd = record(body, [x, w, v])
    check(fd, [x, w, v], (inner.double() @ v.double().t()).bfloat16())
    assert schedulers(fd) == ["matmul", "matmul"]


def test_a_product_of_two_products_joins_the_second() -> None:
    x, w, v = random(34, 40), random(24, 40), random(24, 40, seed=1)

    def body(fd: FusionDefinition, t: list[Any]) -> Any:
        gate, up = fd.ops.linear(t[0], t[1]), fd.ops.linear(t[0], t[2])
        return fd.ops.cast(fd.ops.mul(silu_after(fd, gate), up), BF16)

    gate = F.silu((x.double() @ w.double().t()).bfloat16().float()).bfloat16()
    up = (x.double() @ v.double().t()).bfloat16()
    fd = record(body, [x, w, v])
    check(fd, [x, w, v], (gate.double() * up.double()).bfloat16())
    assert schedulers(fd) == ["matmul", "matmul"]


def test_a_reduction_behind_a_product() -> None:
    x, w = random(34, 40), random(24, 40)

    def body(fd: FusionDefinition, t: list[Any]) -> list[Any]:
        wide = fd.ops.cast(fd.ops.linear(t[0], t[1]), DataType.Float)
        return [fd.ops.sum(wide, [1]), fd.ops.max(wide, [0])]

    product = (x.double() @ w.double().t()).bfloat16().float()
    fd = record(body, [x, w])
    check(fd, [x, w], product.sum(1), product.amax(0))


def test_dropout_behind_a_product_draws_what_it_draws_elsewhere() -> None:
    x, w = random(32, 40), random(24, 40)

    def body(fd: FusionDefinition, t: list[Any]) -> Any:
        seed, offset = fd.define_scalar(7), fd.define_scalar(0)
        one, zero = fd.define_scalar(1.0), fd.define_scalar(0.0)
        draw = fd.ops.uniform(zero, one, [32, 24], rng_seed=seed, rng_offset=offset)
        kept = fd.ops.lt(draw, 0.5)
        return fd.ops.where(kept, fd.ops.cast(fd.ops.linear(t[0], t[1]), DataType.Float), 0.0)

    fd = record(body, [x, w])
    fused = fd.execute([x, w], _enable_options=["fuse_matmul"])
    apart = fd.execute([x, w])
    assert schedulers(fd) != ["matmul"]
    torch.testing.assert_close(fused[0], apart[0], atol=2e-2, rtol=2e-2)
    assert torch.equal(fused[0] == 0, apart[0] == 0)


def test_an_empty_product_is_left_to_torch() -> None:
    x, w = random(4, 0), random(6, 0)
    fd = record(lambda fd, t: silu_after(fd, fd.ops.linear(*t)), [x, w])
    check(fd, [x, w], torch.zeros(4, 6).bfloat16())


@pytest.mark.covering
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("programs", [0, 3])
@pytest.mark.parametrize("descriptors", [False, True])
def test_params_change_the_kernel_and_not_its_results(
    parts: int, programs: int, descriptors: bool
) -> None:
    x, w, b, rest = random(100, 72), random(80, 72), random(80), random(100, 80)

    def body(fd: FusionDefinition, t: list[Any]) -> Any:
        product = fd.ops.cast(fd.ops.linear(t[0], t[1], t[2]), DataType.Float)
        return fd.ops.cast(fd.ops.add(fd.ops.relu(product), t[3]), BF16)

    inputs = [x, w, b, rest]
    fd = record(body, inputs)
    fd.execute(inputs, _enable_options=["fuse_matmul"])
    (chosen,) = (s.params for s in fd.fec.core.newest().lowered.segmented.segments)
    assert isinstance(chosen, MatmulParams)
    changed = replace(
        chosen,
        block_m=32,
        block_n=32,
        block_k=16,
        group_m=2,
        parts=parts,
        programs=programs,
        descriptors=descriptors,
    )
    (out,) = fd.execute(inputs, params=[changed], _enable_options=["fuse_matmul"])
    wanted = F.linear(x.double(), w.double(), b.double()).bfloat16().relu().double() + rest.double()
    torch.testing.assert_close(out.double(), wanted, atol=5e-2, rtol=2e-2)


def test_float_products_cannot_be_kernels_and_say_so() -> None:
    x, w = random(8, 8, dtype=torch.float32), random(8, 8, dtype=torch.float32)
    fd = record(lambda fd, t: fd.ops.matmul(*t), [x, w])
    text = "Can not find a scheduler to schedule fusion segment"
    with pytest.raises(RuntimeError, match=text) as raised:
        fd.execute([x, w], _enable_options=["fuse_matmul"], _disable_options=["matmul_expr_eval"])
    assert "test_products.py" in str(raised.value)
    (out,) = fd.execute([x, w], _enable_options=["fuse_matmul"])
    assert torch.equal(out, x @ w)
