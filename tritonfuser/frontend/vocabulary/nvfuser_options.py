"""The option names that ``run`` takes from programs written for nvFuser."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError, DefinitionError
from ...lowering.product_policy import ProductPolicy
from .location import user_line

ENABLE = frozenset(
    {
        "cutlass_scheduler", "fast_math", "fuse_matmul", "fuse_multiple_matmuls",
        "greedy_scheduler", "host_ir_jit", "host_ir_lowering", "id_model",
        "id_model_extra_validation", "infer_contiguity", "insert_resharding_after",
        "io_to_lower_precision", "kernel_db", "kernel_debug", "kernel_lineinfo",
        "kernel_profile", "memory_promotion", "parallel_serde", "reuse_zeroed_memory",
        "static_fusion_count", "tma_inner_persistent", "tma_pointwise", "tma_reduction",
        "tma_transpose", "wait_debugger", "warn_register_spill", "ws_normalization",
    }
)  # fmt: skip
DISABLE = frozenset(
    {
        "compile_to_sass", "contig_indexing", "expr_simplify", "fallback", "fma",
        "greedy_scheduler", "grouped_grid_welford_outer_opt", "id_model", "index_hoist",
        "infer_contiguity", "kernel_reuse", "magic_zero", "matmul_expr_eval", "multidevice",
        "nvtx", "parallel_compile", "parallel_serde", "predicate_elimination",
        "python_inline_definitions", "resize_scheduler", "reuse_mismatched_type_registers",
        "reuse_zeroed_memory", "static_fusion_count", "var_name_remapping",
        "welford_vectorization",
    }
)  # fmt: skip


def products_of(enable: Sequence[str], disable: Sequence[str]) -> ProductPolicy:
    """Who computes matrix products under these options. The others have no effect here.

    Raises
    ------
    DefinitionError
        nvFuser has no option of such a name.
    """
    _check(enable, ENABLE, "_enable_options")
    _check(disable, DISABLE, "_disable_options")
    if "matmul_expr_eval" in disable:
        return ProductPolicy.NO_TORCH
    return ProductPolicy.KERNELS if "fuse_matmul" in enable else ProductPolicy.AUTO


def _check(given: Sequence[str], known: frozenset[str], which: str) -> None:
    if not isinstance(given, list | tuple | set | frozenset):
        raise ArgumentError(
            f"run: {which} must be a list of option names, got {given!r}", loc=user_line()
        )
    for name in given:
        if not isinstance(name, str) or name not in known:
            raise DefinitionError(
                f"run: unrecognized option {name!r} in {which}",
                loc=user_line(),
                hint=f"Known are {', '.join(sorted(known))}.",
            )
