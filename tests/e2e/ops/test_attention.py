"""Attention, forward and backward: with bias and mask, of any rank and length, dropped out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.e2e.ops.library_calls import assert_near, definition, drawn, run
from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import DefinitionError, InputError

D = DataType
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def heads(
    dtype: torch.dtype, device: str, queries: int = 7, keys: int = 7, width: int = 16
) -> list[torch.Tensor]:
    """Query, key and value of [2, 3, L, E]; the query lies as [2, L, 3, E]."""
    query = drawn(2, queries, 3, width, dtype=dtype, device=device).transpose(1, 2)
    rest = (drawn(2, 3, keys, width, dtype=dtype, device=device, seed=s) for s in (1, 2))
    return [query, *rest]


def logsumexp(query: torch.Tensor, key: torch.Tensor, extra: torch.Tensor | float) -> torch.Tensor:
    scores = query.double() @ key.double().transpose(-1, -2) / math.sqrt(query.shape[-1])
    return (scores + extra).logsumexp(-1)


@pytest.mark.parametrize("is_causal", [None, False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention(dtype: torch.dtype, is_causal: bool | None, device: str) -> None:
    inputs = heads(dtype, device)
    found = run(lambda fd, q, k, v: fd.ops.sdpfa_fwd(q, k, v, is_causal=is_causal), inputs)
    wanted = F.scaled_dot_product_attention(*inputs, is_causal=bool(is_causal))
    assert_near(found[0], wanted)
    assert found[0].stride() == inputs[0].stride()
    hidden = torch.ones(7, 7).tril().log().double() if is_causal else 0.0
    assert found[1].dtype is torch.float32
    assert_near(found[1], logsumexp(*(x.cpu() for x in inputs[:2]), hidden), 30)
    assert [(x.dtype, tuple(x.shape)) for x in found[2:]] == [
        (torch.uint64, (2,)),
        (torch.uint64, ()),
    ]


@pytest.mark.parametrize("width", [8, 5, 64])
def test_widths(width: int, device: str) -> None:
    """Widths that a kernel pads, and as many queries as there are not keys."""
    for queries, keys in ((7, 7), (3, 9)):
        for is_causal in (False, True):
            inputs = heads(torch.bfloat16, device, queries, keys, width)
            found = run(
                lambda fd, *qkv, c=is_causal: fd.ops.sdpfa_fwd(
                    *qkv, dropout_p=0.0, is_causal=c, scale=None
                ),
                inputs,
            )
            wide = [x.float() for x in inputs]
            wanted = F.scaled_dot_product_attention(*wide, is_causal=is_causal)
            assert_near(found[0], wanted)


def test_options_given_to_a_run(device: str) -> None:
    """Also such as are computed: a scale that is half of what is given."""
    inputs = heads(torch.float16, device)

    def record(fd: Any, q: Any, k: Any, v: Any, p: Any, causal: Any, scale: Any) -> Any:
        half = fd.ops.mul(scale, 0.5)
        out, *_ = fd.ops.sdpfa_fwd(q, k, v, dropout_p=p, is_causal=causal, scale=half)
        again, *_ = fd.ops.sdpfa_fwd(q, k, out, dropout_p=p, scale=fd.ops.add(half, 0.25))
        return out, again

    fd = definition(record, [*inputs, 0.0, True, 0.5])
    for is_causal, scale in ((True, 0.5), (False, 0.5), (True, 0.25)):
        out, again = fd.run([*inputs, 0.0, is_causal, scale])
        wanted = F.scaled_dot_product_attention(*inputs, is_causal=is_causal, scale=scale / 2)
        assert_near(out, wanted)
        assert_near(
            again, F.scaled_dot_product_attention(*inputs[:2], wanted, scale=scale / 2 + 0.25), 2
        )


def five_dims(
    dtype: torch.dtype, device: str, queries: int = 7, keys: int = 7
) -> list[torch.Tensor]:
    """[2, 2, 3, L, E]: as ``heads``, of two devices; the query lies as [2, L, 2, 3, E]."""
    query = drawn(2, queries, 2, 3, 16, dtype=dtype, device=device).movedim(1, 3)
    rest = (drawn(2, 2, 3, keys, 16, dtype=dtype, device=device, seed=s) for s in (1, 2))
    return [query, *rest]


@pytest.mark.parametrize("extra", ["nothing", "bias", "mask"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_leading_dims(dtype: torch.dtype, is_causal: bool, extra: str, device: str) -> None:
    """Five dims: the first is one of devices; a bias and a mask may lack it."""
    inputs = five_dims(dtype, device)
    hidden = torch.zeros(7, 7, dtype=torch.float64)
    given: dict[str, torch.Tensor] = {}
    if extra == "bias":
        given["bias"] = drawn(2, 1, 3, 7, 7, dtype=dtype, device=device, seed=5)
        hidden = hidden + given["bias"].cpu().double()
    if extra == "mask":
        given["mask"] = drawn(2, 3, 7, 7, device=device, seed=6) > 0
        given["mask"][..., 0] = True
        hidden = hidden.masked_fill(~given["mask"].cpu(), -math.inf)
    if is_causal:
        hidden = hidden + torch.ones(7, 7).tril().log().double()

    def record(fd: Any, q: Any, k: Any, v: Any, *more: Any) -> Any:
        named = dict(zip(given, more, strict=True))
        return fd.ops.sdpfa_fwd(q, k, v, is_causal=is_causal, **named)

    found = run(record, [*inputs, *given.values()])
    wide = [x.cpu().double() for x in inputs]
    wanted = F.scaled_dot_product_attention(*wide, attn_mask=hidden.expand(2, 2, 3, 7, 7))
    assert_near(found[0], wanted, 1e4 if dtype is torch.float64 else 2)
    assert found[0].stride() == inputs[0].stride()
    assert found[1].shape == (2, 2, 3, 7) and found[1].dtype is torch.float32
    assert_near(found[1], logsumexp(*wide[:2], hidden), 30)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("which", ["bias", "mask", "both"])
def test_bias_and_mask(which: str, is_causal: bool, device: str) -> None:
    """A row that sees nothing is 0, not nan."""
    inputs = heads(torch.float32, device)
    bias = drawn(2, 3, 7, 7, device=device, seed=5)
    mask = drawn(2, 1, 7, 7, device=device, seed=6) > 0
    mask[0, 0, 2] = False
    extra = torch.zeros(2, 3, 7, 7, device=device)
    given: dict[str, torch.Tensor] = {}
    if which != "mask":
        extra, given["bias"] = extra + bias, bias
    if which != "bias":
        extra, given["mask"] = extra.masked_fill(~mask, -math.inf), mask
    if is_causal:
        extra = extra + torch.ones(7, 7, device=device).tril().log()

    def record(fd: Any, q: Any, k: Any, v: Any, *more: Any) -> Any:
        named = dict(zip(given, more, strict=True))
        return fd.ops.sdpfa_fwd(q, k, v, is_causal=is_causal, **named)

    found = run(record, [*inputs, *given.values()])
    wanted = F.scaled_dot_product_attention(*inputs, attn_mask=extra)
    assert_near(found[0], wanted.nan_to_num())
    assert_near(found[1], logsumexp(*(x.cpu() for x in inputs[:2]), extra.cpu()))
    if which != "bias":
        assert not found[0][0, :, 2].any()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention_backward(dtype: torch.dtype, is_causal: bool, device: str) -> None:
    inputs = [*heads(dtype, device), drawn(2, 3, 7, 16, dtype=dtype, device=device, seed=9)]

    def record(fd: Any, q: Any, k: Any, v: Any, grad: Any) -> Any:
        out, total, seed, offset = fd.ops.sdpfa_fwd(q, k, v, is_causal=is_causal)
        saved = (grad, q, k, v, out, total)
        return fd.ops.sdpfa_bwd(*saved, 0.0, is_causal, seed, offset, None)

    found = run(record, inputs)
    leaves = [x.detach().double().cpu().requires_grad_() for x in inputs[:3]]
    out = F.scaled_dot_product_attention(*leaves, is_causal=is_causal)
    out.backward(inputs[3].double().cpu())
    for one, leaf, given in zip(found, leaves, inputs, strict=False):
        # The logsumexp between the two is a Float.
        assert_near(one, leaf.grad, 1e6 if dtype is torch.float64 else 2)
        assert one.stride() == given.stride()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(3, 9), (9, 3), (1, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_more_keys_than_queries_or_fewer(
    dtype: torch.dtype, queries: int, keys: int, is_causal: bool, device: str
) -> None:
    """Forward and backward: the first query sees the first key, as torch has it; in five dims."""
    grad = drawn(2, 2, 3, queries, 16, dtype=dtype, device=device, seed=9)
    inputs = [*five_dims(dtype, device, queries, keys), grad]

    def record(fd: Any, q: Any, k: Any, v: Any, grad: Any) -> Any:
        out, total, seed, offset = fd.ops.sdpfa_fwd(q, k, v, is_causal=is_causal)
        saved = (grad, q, k, v, out, total)
        return out, *fd.ops.sdpfa_bwd(*saved, 0.0, is_causal, seed, offset, None)

    out, *grads = run(record, inputs)
    leaves = [x.detach().double().cpu().requires_grad_() for x in inputs[:3]]
    wanted = F.scaled_dot_product_attention(*leaves, is_causal=is_causal)
    wanted.backward(grad.double().cpu())
    assert_near(out, wanted.detach(), 2)
    for one, leaf in zip(grads, leaves, strict=True):
        assert_near(one, leaf.grad, 4)


def test_rows_that_do_not_lie_densely(device: str) -> None:
    """Operands whose last dim is not the fastest."""
    q, k, v = heads(torch.float16, device)
    turned = [x.transpose(-1, -2).contiguous().transpose(-1, -2) for x in (q, k, v)]
    found = run(lambda fd, *qkv: fd.ops.sdpfa_fwd(*qkv)[0], turned)
    assert_near(found[0], F.scaled_dot_product_attention(q, k, v))


def test_backward_of_what_was_saved(device: str) -> None:
    """Forward and backward in two definitions: the seeds are inputs, of UInt64."""
    dtype = torch.float16
    q, k, v = heads(dtype, device)
    grad = drawn(2, 3, 7, 16, dtype=dtype, device=device, seed=9)
    saved = run(lambda fd, *qkv: fd.ops.sdpfa_fwd(*qkv), [q, k, v])
    found = run(
        lambda fd, g, q, k, v, o, t, s, f, p, c: fd.ops.sdpfa_bwd(
            g, q, k, v, o, t, p, c, s, f, 0.25
        ),
        [grad, q, k, v, *saved, 0.0, False],
    )
    leaves = [x.detach().double().requires_grad_() for x in (q, k, v)]
    F.scaled_dot_product_attention(*leaves, scale=0.25).backward(grad.double())
    for one, leaf in zip(found, leaves, strict=True):
        assert_near(one, leaf.grad, 2)


def test_dropout_on_the_cpu() -> None:
    """Drawn by torch; what was dropped cannot be drawn again."""
    q, k, v = heads(torch.float32, "cpu")
    fd = definition(lambda fd, *qkv: fd.ops.sdpfa_fwd(*qkv, dropout_p=0.5), [q, k, v])
    torch.manual_seed(3)
    out, *saved = fd.run([q, k, v])
    torch.manual_seed(3)
    assert_near(out, F.scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    back = definition(
        lambda fd, g, q, k, v, o, t, s, f: fd.ops.sdpfa_bwd(
            g, q, k, v, o, t, 0.5, False, s, f, None
        ),
        [out, q, k, v, out, *saved],
    )
    with pytest.raises(InputError, match=r"(?s)sdpfa_bwd.*dropout_p of 0.*test_attention"):
        back.run([out, q, k, v, out, *saved])


@pytest.mark.gpu
@pytest.mark.parametrize("is_causal", [False, True])
def test_dropout_of_floats_on_a_gpu(is_causal: bool) -> None:
    """By torch's memory-efficient kernels: those of half take none."""
    q, k, v = heads(torch.float32, "cuda", 40, 72, 32)
    grad = torch.ones_like(q)

    def record(fd: Any, q: Any, k: Any, v: Any, grad: Any) -> Any:
        options = {"dropout_p": 0.5, "is_causal": is_causal}
        out, total, seed, offset = fd.ops.sdpfa_fwd(q, k, v, **options)
        saved = (grad, q, k, v, out, total)
        return out, *fd.ops.sdpfa_bwd(*saved, 0.5, is_causal, seed, offset, None)

    fd = definition(record, [q, k, v, grad])
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    torch.manual_seed(5)
    out, *grads = fd.run([q, k, v, grad])
    torch.manual_seed(5)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        wanted = F.scaled_dot_product_attention(*leaves, dropout_p=0.5, is_causal=is_causal)
    wanted.backward(grad)
    assert_near(out, wanted.detach())
    for one, leaf in zip(grads, leaves, strict=True):
        assert_near(one, leaf.grad, 10)


@pytest.mark.gpu
def test_dropout_on_a_gpu() -> None:
    """The backward drops what the forward dropped."""
    q, k, v = heads(torch.bfloat16, "cuda", 64, 64)
    grad = torch.ones_like(q)

    def record(fd: Any, q: Any, k: Any, v: Any, grad: Any) -> Any:
        out, total, seed, offset = fd.ops.sdpfa_fwd(q, k, v, dropout_p=0.5)
        saved = (grad, q, k, v, out, total)
        return out, *fd.ops.sdpfa_bwd(*saved, 0.5, False, seed, offset, None)

    fd = definition(record, [q, k, v, grad])
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    torch.manual_seed(5)
    out, *grads = fd.run([q, k, v, grad])
    torch.manual_seed(5)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        wanted = F.scaled_dot_product_attention(*leaves, dropout_p=0.5)
    wanted.backward(grad)
    assert torch.equal(out, wanted)
    for one, leaf in zip(grads, leaves, strict=True):
        assert_near(one, leaf.grad)


def test_attention_beside_kernels(device: str) -> None:
    """What is computed before and after is fused; results lie as torch lays them out."""
    q, k, v = heads(torch.float16, device)

    def record(fd: Any, q: Any, k: Any, v: Any) -> Any:
        scaled = fd.ops.cast(fd.ops.mul(q, 0.5), D.Half)
        out, *_ = fd.ops.sdpfa_fwd(scaled, k, v, is_causal=True)
        rows = fd.ops.reshape(fd.ops.permute(out, [0, 2, 1, 3]), [14, 48])
        return fd.ops.sum(fd.ops.cast(rows, D.Float), [1])

    (found,) = run(record, [q, k, v])
    out = F.scaled_dot_product_attention(q * 0.5, k, v, is_causal=True)
    assert_near(found, out.transpose(1, 2).reshape(14, 48).float().sum(1), 1e3)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((2, 3, 4), (2, 3, 4), (2, 3, 4)), "rank 3"),
        (((2, 3, 4, 8), (2, 3, 4, 16), (2, 3, 4, 8)), "a key of width 8"),
        (((2, 3, 4, 8), (2, 3, 4, 8), (2, 3, 5, 8)), "4 values"),
        (((2, 3, 4, 8), (2, 1, 4, 8), (2, 3, 4, 8)), r"batch and head sizes \[2, 3\]"),
    ],
)
def test_attention_of_shapes_that_do_not_fit(shapes: Any, text: str) -> None:
    with pytest.raises(DefinitionError, match=f"sdpfa_fwd: .*{text}"), FusionDefinition() as fd:
        fd.ops.sdpfa_fwd(*(fd.define_tensor(list(shape)) for shape in shapes))
