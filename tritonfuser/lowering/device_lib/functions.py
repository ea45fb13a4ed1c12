"""The functions that generated kernels may call by name, as ``@triton.jit`` helpers.

Each takes and gives tiles (or scalars) of one dtype. Under the interpreter, ``interpreted``
puts NumPy versions in the place of most of them.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, F401
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

# Kernels import from here what is written elsewhere.
from .aligned_functions import edges, whole_vectors
from .cooperative_functions import is_last, peek, publish, wait_for
from .division_functions import inverse_of, quotient, residue
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
from .overlap_functions import launch_dependents, wait_for_previous
from .power_functions import pow_float
from .random_functions import (
    drawn,
    philox_normal,
    philox_normal_by_eight,
    philox_normal_by_four,
    philox_normal_double,
    philox_uniform,
    philox_uniform_by_eight,
    philox_uniform_by_four,
    philox_uniform_double,
    philox_word,
    philox_word_by_eight,
    philox_word_by_four,
    round_below,
    uniform_between,
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

# --- arguments -----------------------------------------------------------------------------------


@triton.jit
def scalar(x, dtype: tl.constexpr):
    """A scalar argument in its dtype: the interpreter passes Python numbers."""
    return tl.cast(x, dtype)


# --- tiles of matrix products --------------------------------------------------------------------


@triton.jit
def grouped_tile(tile, rows: tl.constexpr, columns: tl.constexpr, group: tl.constexpr):
    """Row and column of tile number ``tile``: down ``group`` rows, then the next column.

    The order of Triton's matmul tutorial (``GROUP_SIZE_M``): tiles that run at once share operands
    in the L2 cache.
    """
    first = tile // (group * columns) * group
    height = tl.minimum(rows - first, group)
    within = tile % (group * columns)
    return first + within % height, within // height


@triton.jit
def column_halves(x):
    """The left and the right half of a tile's columns."""
    pairs = tl.reshape(x, [x.shape[0], 2, x.shape[1] // 2])
    return tl.split(tl.permute(pairs, [0, 2, 1]))


@triton.jit
def spread(x, count: tl.constexpr):
    """Each element ``count`` times: ``[X, R] -> [X, R * count]``."""
    if len(x.shape) == 1:
        wide = tl.broadcast_to(x[:, None], [x.shape[0], count])
        result = tl.max_constancy(tl.reshape(wide, [x.shape[0] * count]), [count])
    else:
        wide = tl.broadcast_to(x[:, :, None], [x.shape[0], x.shape[1], count])
        result = tl.reshape(wide, [x.shape[0], x.shape[1] * count])
        result = tl.max_constancy(result, [1, count])
    return result


@triton.jit
def left(a, b):
    """The first of two elements."""
    return a


@triton.jit
def flat_column(x):
    """A block of one column as a block with one dim: ``[X, 1] -> [X]``.

    A reduction, since Triton does not carry the layout of a store back through one, as it does
    through a reshape.
    """
    return tl.reduce(x, 1, left)


@triton.jit
def split_pairs(x):
    """Interleaved pairs apart, first and second elements: ``[2 * X] -> [X], [X]``."""
    return tl.split(tl.reshape(x, [x.shape[0] // 2, 2]))


@triton.jit
def split_row_pairs(x):
    """Interleaved pairs of rows apart: ``[Y, 2 * X] -> [Y, X], [Y, X]``."""
    return tl.split(tl.reshape(x, [x.shape[0], x.shape[1] // 2, 2]))


@triton.jit
def split_column_pairs(x):
    """Interleaved pairs of columns apart: ``[2 * X, Y] -> [X, Y], [X, Y]``."""
    first, second = split_row_pairs(tl.trans(x))
    return tl.trans(first), tl.trans(second)


@triton.jit
def interleave_columns(first, second):
    """Pairs of columns: ``[X, Y], [X, Y] -> [2 * X, Y]``."""
    return tl.trans(tl.interleave(tl.trans(first), tl.trans(second)))


# --- reductions and scans along one axis of a tile ----------------------------------------------


@triton.jit
def maximum(a, b):
    """The greater of two numbers; nan where one is nan."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller of two numbers; nan where one is nan."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def multiply(a, b):
    """The product, as a combine function."""
    return a * b


@triton.jit
def reduce_sum(x, axis: tl.constexpr):
    """Sum along ``axis``, in the dtype of ``x``."""
    return tl.sum(x, axis, dtype=x.dtype)


@triton.jit
def add_pairs(x_a, y_a, x_b, y_b):
    """Join two pairs of sums."""
    return x_a + x_b, y_a + y_b


@triton.jit
def reduce_sums(x, y, axis: tl.constexpr):
    """Sums of two blocks along ``axis``, which warps exchange together."""
    return tl.reduce((x, y), axis, add_pairs)


@triton.jit
def reduce_prod(x, axis: tl.constexpr):
    """Product along ``axis``."""
    return tl.reduce(x, axis, multiply)


@triton.jit
def reduce_max(x, axis: tl.constexpr):
    """Maximum along ``axis``; nan where there is one."""
    return tl.reduce(x, axis, maximum)


@triton.jit
def reduce_min(x, axis: tl.constexpr):
    """Minimum along ``axis``; nan where there is one."""
    return tl.reduce(x, axis, minimum)


@triton.jit
def reduce_any(x, axis: tl.constexpr):
    """Whether any of the Bools along ``axis`` is true."""
    return tl.max(x.to(tl.int32), axis) != 0


@triton.jit
def reduce_all(x, axis: tl.constexpr):
    """Whether all of the Bools along ``axis`` are true."""
    return tl.min(x.to(tl.int32), axis) != 0


@triton.jit
def scan_sum(x, axis: tl.constexpr):
    """Inclusive running sum along ``axis``, in the dtype of ``x``."""
    return tl.cumsum(x, axis, dtype=x.dtype)


@triton.jit
def scan_prod(x, axis: tl.constexpr):
    """Inclusive running product along ``axis``."""
    return tl.associative_scan(x, axis, multiply)


@triton.jit
def scan_max(x, axis: tl.constexpr):
    """Inclusive running maximum along ``axis``; nan from the first nan on."""
    return tl.associative_scan(x, axis, maximum)


@triton.jit
def scan_min(x, axis: tl.constexpr):
    """Inclusive running minimum along ``axis``; nan from the first nan on."""
    return tl.associative_scan(x, axis, minimum)


@triton.jit
def welford_combine(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """Join (mean, sum of squared deviations, count) of two sets; either may be empty."""
    count = count_a + count_b
    weight = count_b / tl.where(count == 0, 1.0, count)
    delta = mean_b - mean_a
    return mean_a + delta * weight, m2_a + m2_b + delta * delta * count_a * weight, count


@triton.jit
def reduce_welford(mean, m2, count, axis: tl.constexpr):
    """``welford_combine`` along ``axis``."""
    return tl.reduce((mean, m2, count), axis, welford_combine)


# --- functions of floats ------------------------------------------------------------------------


@triton.jit
def erfcinv(x):
    """Inverse of erfc on (0, 2): erfinv in the middle, Halley steps on erfc in the tails."""
    tail = tl.minimum(x, 2.0 - x)
    # Half of the smallest number is 0.
    t = libdevice.sqrt(1.3862943611198906 - 2.0 * libdevice.log(tail))
    guess = (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481))
    y = 0.7071067811865476 * (t - guess)
    for _ in tl.static_range(2):
        error = libdevice.erfc(y) - tail
        slope = 1.1283791670955126 * libdevice.exp(-y * y) - y * error
        y = tl.where(slope == 0, y, y + error / slope)
    y = tl.where(tail == 0, float("inf"), tl.where(tail < 0, float("nan"), y))
    near = tl.abs(1.0 - x) <= 0.5
    middle = libdevice.erfinv(tl.where(near, 1.0 - x, 0.0))
    result = tl.where(near, middle, tl.where(x < 1, y, -y))
    return tl.where(x == x, result, x)


@triton.jit
def float_remainder(x, y):
    """Remainder of a division of floats with the sign of the divisor."""
    rest = libdevice.fmod(x, y)
    return tl.where(tl.where(y < 0, rest > 0, rest < 0), rest + y, rest)


@triton.jit
def lerp(x, y, weight):
    """Linear interpolation, exact at both ends."""
    step = y - x
    near = (weight > -0.5) & (weight < 0.5)
    return tl.where(near, x + weight * step, y - step * (1.0 - weight))


# --- functions of integers ----------------------------------------------------------------------


@triton.jit
def clamped_index(index, size, mask):
    """An index of ``size`` elements, below 2**31, as 32 bits: one outside is taken as some inside.

    So no read leaves the tensor. The low word alone is compared, in one instruction. On a CPU an
    index that is wrong where the mask holds raises.
    """
    return tl.minimum(index.to(tl.int32).to(tl.uint32, bitcast=True), size - 1).to(tl.int32)


@triton.jit
def clamped_long_index(index, size, mask):
    """``clamped_index`` in 64 bits, for dims of any size."""
    return tl.minimum(tl.maximum(index, 0), size - 1)


@triton.jit
def wrapped_index(index, size, mask):
    """As ``clamped_index``, where -1 is the last index."""
    low = index.to(tl.int32)
    return clamped_index(tl.where(low < 0, low + size, low), size, mask)


@triton.jit
def wrapped_long_index(index, size, mask):
    """``wrapped_index`` in 64 bits, for dims of any size."""
    return clamped_long_index(tl.where(index < 0, index + size, index), size, mask)


@triton.jit
def checked_index(index, size, mask):
    """The index as it is: what is at one outside is not used. On a CPU a wrong one raises."""
    return index


@triton.jit
def index_within(index, least, size):
    """Whether ``least <= index < size``, in 64 bits."""
    wide = index.to(tl.int64)
    return (wide >= least) & (wide < size)


@triton.jit
def int_div(x, y):
    """Quotient truncated towards zero; by zero all bits are set, as the hardware has it.

    The least integer by -1 is itself. To LLVM it has no value, so no such division is left.
    """
    zero = y == 0
    if y.dtype.is_int_unsigned():
        return tl.where(zero, ~y, x // tl.where(zero, 1, y))
    negated = y == -1
    whole = x // tl.where(zero | negated, 1, y)
    return tl.where(zero, ~y, tl.where(negated, 0 - x, whole))


@triton.jit
def int_mod(x, y):
    """Remainder with the sign of the dividend; by zero all bits are set."""
    zero = y == 0
    if y.dtype.is_int_unsigned():
        return tl.where(zero, ~y, x % tl.where(zero, 1, y))
    # Divided by -1 as by 1 nothing remains.
    return tl.where(zero, ~y, x % tl.where(zero | (y == -1), 1, y))


@triton.jit
def int_remainder(x, y):
    """Remainder with the sign of the divisor; by zero all bits are set."""
    rest = int_mod(x, y)
    return tl.where(tl.where(y < 0, rest > 0, rest < 0), rest + y, rest)


@triton.jit
def int_pow(x, y):
    """Power by squaring, wrapping around; a negative exponent gives 0 unless ``x`` is +-1."""
    x, y = tl.broadcast(x, y)
    result = tl.full(x.shape, 1, x.dtype)
    base = x
    left = tl.maximum(y, 0)
    for _ in range(x.dtype.primitive_bitwidth):
        result = tl.where((left & 1) != 0, result * base, result)
        base = base * base
        left = left >> 1
    if x.dtype.is_int_unsigned():
        return result
    odd = (y & 1) != 0
    inverse = tl.where(x == 1, 1, tl.where(x == -1, tl.where(odd, -1, 1), 0))
    return tl.where(y < 0, inverse.to(x.dtype), result)


@triton.jit
def power_by_number(power, x, y):
    """``x ** y`` as torch has it for one exponent: of 0.5 and -0.5 it is the root, or 1 / root.

    They have the sign of a zero, and minus infinity has none.
    """
    x = tl.where(power == power, x, x)  # it may be a number
    edge = tl.where(x == 0, libdevice.copysign(power, x), float("nan"))
    return tl.where((tl.abs(y) == 0.5) & (x <= 0), edge, power)


@triton.jit
def inverse_power(x, n: tl.constexpr):
    """``x ** -n`` for 1 and 2, as torch has it where the exponent is a number."""
    if x.dtype.is_int():
        found = int_pow(x, tl.full(x.shape, -n, x.dtype))
    else:
        y = x if n == 1 else x * x
        found = reciprocal(y) if x.dtype == tl.float32 else 1.0 / y
    return found


@triton.jit
def gcd(x, y):
    """Greatest common divisor, not negative, by Euclid; 46 steps do for 32 bits, 92 for 64."""
    x, y = tl.broadcast(tl.abs(x), tl.abs(y))
    for _ in range(46 * (x.dtype.primitive_bitwidth // 32)):
        more = y != 0
        rest = x % tl.where(more, y, 1)
        x = tl.where(more, y, x)
        y = tl.where(more, rest, y)
    return tl.abs(x)


@triton.jit
def shift_left(x, y):
    """``x << y``; 0 where the shift is negative or not below the number of bits."""
    valid = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(valid, x << tl.where(valid, y, 0), 0)


@triton.jit
def shift_right(x, y):
    """Arithmetic ``x >> y``; where the shift is out of range the sign alone, 0 of an unsigned x."""
    last: tl.constexpr = x.dtype.primitive_bitwidth - 1
    valid = (y >= 0) & (y <= last)
    shifted = x >> tl.where(valid, y, last)
    if x.dtype.is_int_unsigned():
        shifted = tl.where(valid, shifted, 0)
    return shifted


@triton.jit
def shift_right_logical(x, y):
    """``x >> y`` filling with zeros; 0 where the shift is out of range."""
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    valid = (y >= 0) & (y < bits)
    if bits == 32:
        word = x.to(tl.uint32, bitcast=True)
    else:
        word = x.to(tl.uint64, bitcast=True)
    shifted = word >> tl.where(valid, y, 0).to(word.dtype)
    return tl.where(valid, shifted.to(x.dtype, bitcast=True), 0)
