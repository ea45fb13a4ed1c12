"""The functions that generated kernels may call by name, as ``@triton.jit`` helpers.

Each takes and gives tiles (or scalars) of one dtype, and is written in a module of its own kind.
The interpreter has NumPy versions in the place of most of them (``interpreter/library_arrays.py``).
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, F401
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .aligned_functions import edges, whole_vectors
from .bfloat16_functions import round_to_bfloat16, to_bfloat16
from .cooperative_functions import is_last, peek, publish, wait_for
from .division_functions import inverse_of, quotient, remainder, residue
from .extra_float_functions import erfcinv, float_remainder, lerp
from .float8_functions import e4m3_to_float, e5m2_to_float, float_to_e4m3, float_to_e5m2
from .float_functions import (
    coarse_exp,
    coarse_sigmoid,
    one_plus_erf,
    one_plus_tanh,
    sigmoid,
    silu,
    tanh,
)
from .index_functions import (
    checked_index,
    clamped_index,
    clamped_long_index,
    index_within,
    spread_index,
    wrapped_index,
    wrapped_long_index,
)
from .integer_functions import (
    gcd,
    int_div,
    int_mod,
    int_pow,
    int_remainder,
    shift_left,
    shift_right,
    shift_right_logical,
)
from .number_power_functions import inverse_power, power_by_number
from .overlap_functions import launch_dependents, wait_for_previous
from .philox_functions import drawn, philox_word, philox_word_by_eight, philox_word_by_four
from .power_functions import pow_float
from .random_functions import (
    philox_normal,
    philox_normal_by_eight,
    philox_normal_by_four,
    philox_normal_double,
    philox_uniform,
    philox_uniform_by_eight,
    philox_uniform_by_four,
    philox_uniform_double,
    round_below,
    uniform_between,
)
from .reduction_functions import (
    maximum,
    minimum,
    multiply,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    reduce_sums,
    reduce_welford,
    scan_max,
    scan_min,
    scan_prod,
    scan_sum,
    welford_combine,
)
from .rounded_functions import div_rounded, mul_rn, reciprocal, square_root
from .softmax_functions import (
    div_by_sum,
    exp_nonpositive,
    lane_base,
    lane_max,
    lane_spread,
    lane_sum,
    rescale,
)
from .thread_functions import by_thread, masked_rows_of, rows_of, run_of
from .tile_functions import (
    column_halves,
    flat_column,
    grouped_tile,
    interleave_columns,
    split_column_pairs,
    split_pairs,
    split_row_pairs,
    spread,
)
from .trig_functions import cosine, sine


@triton.jit
def scalar(x, dtype: tl.constexpr):
    """A scalar argument in its dtype: the interpreter passes Python numbers."""
    return tl.cast(x, dtype)
