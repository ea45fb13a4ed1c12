"""All passes on the graph between ``concretize`` and the cut into segments, in order."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ..device import DeviceProperties
from ..ir import Fusion
from ..ir_graph import check
from ..options import current, dump
from .access.index_dims import assume_index_dims
from .passes.arithmetic.common_sums import join_common_sums
from .passes.arithmetic.guarded_maxima import sum_before_guards
from .passes.arithmetic.reduced_precision import reduce_precision
from .passes.arithmetic.rounded_products import round_products
from .passes.arithmetic.strength_reduction import reduce_strength
from .passes.complex_split import ComplexSplit
from .passes.concatenations.index_choices import concatenate_choices
from .passes.concatenations.merged_slices import merge_slices
from .passes.concatenations.narrow_sums import narrow_padded_sums
from .passes.concatenations.padded_sums import concatenate_padded
from .passes.concatenations.slice_functions import merge_functions_of_slices
from .passes.constant_operands import expand_constants
from .passes.device_requirements import check_device
from .passes.empty_values import fill_empty
from .passes.mark_softmax import mark_softmax
from .passes.memory_orders import keep_memory_orders, reduce_in_memory_order
from .passes.narrowing.reductions import narrow_reductions
from .passes.positional_values import shrink_positional
from .passes.random_seeds import Seeds, add_seeds
from .passes.simplify import simplify
from .passes.split_complex import split_complex
from .passes.unrolled_reductions import Unrolled, unroll_reductions


@dataclass(frozen=True)
class Simplified:
    """A concrete fusion after the passes up to ``simplify``.

    Attributes
    ----------
    fusion : Fusion
        The fusion to cut into segments.
    rolled : Fusion
        The fusion before reductions of a few elements were unrolled into pointwise ops.
    split : ComplexSplit
        The pairs of reals that complex values became.
    seeds : Seeds
        The hidden inputs of random ops.
    """

    fusion: Fusion
    rolled: Fusion
    split: ComplexSplit
    seeds: Seeds


def run_graph_passes(
    fusion: Fusion, device: DeviceProperties, kept: frozenset[str] | None
) -> Simplified:
    """Run the passes on a concrete fusion.

    Parameters
    ----------
    fusion : Fusion
        The fusion, as ``concretize`` gives it.
    device : DeviceProperties
        The device to compile for.
    kept : frozenset of str or None
        The reductions that kernels of a given schedule compute: others are unrolled. None where
        rules decide.
    """
    fusion, split = before_seeds(fusion)
    fusion, seeds = add_seeds(fusion)
    fusion = expand_constants(fusion)
    fusion = concatenate_choices(fusion)
    fusion = concatenate_padded(fusion)
    fusion = merge_slices(fusion)
    fusion = merge_functions_of_slices(fusion)
    fusion = narrow_padded_sums(fusion)
    fusion = narrow_reductions(fusion)
    rolled = shrink_positional(fusion)
    which = Unrolled.CHEAP if kept is None else Unrolled.SHORT
    fusion = unrolled(rolled, which, kept or frozenset())
    check_device(fusion, device)
    dump("simplify", fusion)
    if checks_bounds(device):
        assume_index_dims(fusion)
    return Simplified(fusion, rolled, split, seeds)


def before_seeds(fusion: Fusion) -> tuple[Fusion, ComplexSplit]:
    """The passes up to the one that numbers random ops: of those that are left, in their order."""
    fusion = simplify(fusion)
    fusion = join_common_sums(fusion)
    fusion = keep_memory_orders(fusion)
    fusion = reduce_in_memory_order(fusion)
    split = split_complex(fusion)
    fusion = fusion if split.fusion is fusion else simplify(split.fusion)
    fusion = fill_empty(fusion)
    fusion = sum_before_guards(fusion)
    return mark_softmax(fusion), split


def checks_bounds(device: DeviceProperties) -> bool:
    """Whether kernels assert indices read at run time. On a CPU the interpreter checks them."""
    return "bounds" in current().check and not device.is_cpu


def unrolled(fusion: Fusion, which: Unrolled, kept: Container[str] = ()) -> Fusion:
    """Unroll reductions of a few elements, except those named in ``kept``; then cheapen ops."""
    fusion = unroll_reductions(fusion, which, kept)
    fusion = reduce_strength(fusion)
    fusion = reduce_precision(fusion)
    return check(round_products(fusion))
