"""What nvFuser's frontend has under ``fd.ops``: each op with its parameters, as data.

Facts of nvFuser's direct bindings, version 0.2.36. ``signatures()`` gives, for each op, the forms
it is called in.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cache

ONE_OPERAND = """
    acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 erf erfc erfinv erfcinv lgamma log
    log10 log1p log2 reciprocal rsqrt sigmoid sin sinh sqrt tan tanh
    ceil floor frac relu round silu trunc
    neg abs sign logical_not bitwise_not signbit real imag set segment_set rand_like randn_like
    isfinite isinf isnan isneginf isposinf isreal
"""
"""Ops of ``x``."""

TWO_OPERANDS = """
    add sub mul pow minimum maximum div truediv atan2 fmod mod remainder nextafter gcd complex
    eq ne lt le gt ge
    logical_and logical_or
    bitwise_and bitwise_or bitwise_xor
    bitwise_left_shift bitwise_right_shift logical_right_shift
"""
"""Ops of ``lhs`` and ``rhs``."""

OTHERS = """
    where(condition, x, y)
    lerp(x, y, weight)
    clamp(input, min, max)
    threshold(input, threshold, value)
    addcmul(i1, i2, i3, alpha)
    sum(arg, dtype=Null)
    sum(arg, dim, keepdim=False, dtype=Null)
    sum(arg, dims, keepdim=False, dtype=Null)
    prod(arg, dtype=Null)
    prod(arg, dim, keepdim=False, dtype=Null)
    prod(arg, dims, keepdim=False, dtype=Null)
    max(arg, dtype=Null)
    max(arg, dim, keepdim=False, dtype=Null)
    max(arg, dims, keepdim=False, dtype=Null)
    min(arg, dtype=Null)
    min(arg, dim, keepdim=False, dtype=Null)
    min(arg, dims, keepdim=False, dtype=Null)
    var(arg, dims, correction=1, keepdim=False)
    var_mean(arg, dims, correction=1, keepdim=False) -> var, mean
    welford(arg, dims) -> avg, var_sum, n
    cumsum(arg, dim, init=None)
    cumprod(arg, dim, init=None)
    cummin(arg, dim, init=None)
    cummax(arg, dim, init=None)
    cast(arg, dtype)
    triu(arg, diagonal=0)
    matmul(arg1, arg2)
    linear(arg1, arg2, bias=None)
    grouped_mm(mat1, mat2, offsets)
    grouped_mm(mat1, mat2, offsets, scale1, scale2, alpha=None, bias=None, beta=None, \
dtype=BFloat16, output_block_scale_size=0, output_block_scale_dtype=BFloat16, \
output_gamma=False) -> out, block_scale, gamma
    scaled_mm(mat1, mat2, scale1, scale2, alpha=None, bias=None, beta=None, dtype=BFloat16, \
output_block_scale_size=0, output_block_scale_dtype=BFloat16, output_gamma=False) \
-> out, block_scale, gamma
    cutlass_nvfp4_grouped_mm(mat1, mat2, scale1, scale2, alpha, problem_sizes, expert_offsets, \
sf_offsets, dtype=BFloat16)
    preprocess_grouped_matmul_input_sf(input, input_offsets, output_offsets)
    nv_block_quantize(input, global_scale=None, swizzle_block_scales=False, block_size=16, \
dtype=Float4_e2m1fn) -> q, scales
    nv_grouped_block_quantize(input, input_offsets, output_offsets, global_scale=None, \
block_size=16, dtype=Float4_e2m1fn) -> q, scales
    broadcast(arg, is_broadcast_dim)
    broadcast_in_dim(arg, shape, broadcast_dims)
    expand(arg, shape)
    reshape(arg, new_shape)
    permute(arg, dims)
    squeeze(arg, dims, squeeze_expanded=False)
    slice(arg, start_indices, end_indices, strides=None, manual_normalization=False)
    stride_order(arg, stride_order)
    size(arg, dim)
    shape(arg)
    pad(arg, pad_widths, value=None)
    cat(tensors, dim=0, manual_padding=False)
    index_select(arg, index, dim)
    select(arg, index, dim)
    gather(arg, index, dim)
    take_along_axis(arg, index, dim)
    scatter(arg, index, src, dim)
    embedding_fwd(input, weight, padding_idx=None, max_norm=None, norm_type=None, \
scale_grad_by_freq=None, sparse=None)
    iota(length, start=None, step=None, dtype=Int)
    full(shape, fill_value, dtype)
    uniform(minval, maxval, shape, *, rng_seed=None, rng_offset=None, dtype=Float)
    normal(mean, std, shape, *, rng_seed=None, rng_offset=None, dtype=Float)
    topk(arg, k, dim=-1, largest=True, sorted=False) -> values, indices
    argsort(arg, dim, descending=False, stable=False)
    index_put_accumulate(acc, index, value)
    sdpfa_fwd(query, key, value, bias=None, mask=None, dropout_p=None, is_causal=None, \
scale=None) -> out, logsumexp, philox_seed, philox_offset
    sdpfa_bwd(grad_output, query, key, value, output, logsumexp, dropout_p, is_causal, \
philox_seed, philox_offset, scale) -> dq, dk, dv
"""
"""Ops of other parameters, one form a line."""

COUNT = 135

_LIBRARY = """
    matmul linear grouped_mm scaled_mm sdpfa_fwd sdpfa_bwd topk argsort
    index_put_accumulate
"""
LIBRARY = frozenset(_LIBRARY.split())
"""Ops that torch may run between kernels; every other one is generated."""

_NARROW = """
    cutlass_nvfp4_grouped_mm preprocess_grouped_matmul_input_sf nv_block_quantize
    nv_grouped_block_quantize
"""
NARROW = frozenset(_NARROW.split())
"""Ops for fp4, which need the instructions of a Blackwell GPU."""

OPTIONAL_HERE = {"clamp": ("min", "max"), "sdpfa_bwd": ("scale",)}
"""Parameters that nvFuser wants and that may be left out here, for None."""

NO_DEFAULT = object()


@dataclass(frozen=True)
class Form:
    """One way to call an op: parameters with the text of their defaults, and its results."""

    name: str
    params: tuple[tuple[str, object], ...]
    keyword_only: frozenset[str] = frozenset()
    results: tuple[str, ...] = field(default=("out",))

    @property
    def positional(self) -> list[str]:
        """The parameters that may be given by their places."""
        return [name for name, _ in self.params if name not in self.keyword_only]


@cache
def signatures() -> dict[str, tuple[Form, ...]]:
    """Every op of the contract, with its forms."""
    lines = [f"{name}(x)" for name in ONE_OPERAND.split()]
    lines += [f"{name}(lhs, rhs)" for name in TWO_OPERANDS.split()]
    lines += OTHERS.strip().splitlines()
    found: dict[str, tuple[Form, ...]] = {}
    for form in map(_parsed, lines):
        found[form.name] = (*found.get(form.name, ()), form)
    return found


def _parsed(line: str) -> Form:
    """``sum(arg, dtype=Null) -> a, b`` as a form."""
    call, _, results = line.strip().partition(" -> ")
    (function,) = ast.parse(f"def {call}: ...").body
    assert isinstance(function, ast.FunctionDef)
    args = function.args
    missing = len(args.args) - len(args.defaults)
    defaults = [NO_DEFAULT] * missing + [ast.unparse(default) for default in args.defaults]
    params = list(zip([arg.arg for arg in args.args], defaults, strict=True))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        params.append((arg.arg, NO_DEFAULT if default is None else ast.unparse(default)))
    keywords = frozenset(arg.arg for arg in args.kwonlyargs)
    made = tuple(results.split(", ")) if results else ("out",)
    return Form(function.name, tuple(params), keywords, made)
