"""``fd.ops``, typed: written by docs/stubs.py from the op table."""

from collections.abc import Callable, Sequence
from typing import Any, Union, overload

import torch

from ...dtypes import DataType
from .tensor_view import TensorView
from .val import Val

Scalar = Union[Val, bool, int, float, complex]
Operand = Union[TensorView, Scalar]
Size = Union[int, Val]
DType = Union[DataType, torch.dtype]
Record = Callable[..., Any]

class Operators:
    """The ops of a definition: ``fd.ops.add(x, y)`` records an addition and returns its result."""

    def __init__(self, record: Record) -> None: ...
    @overload
    def acos(self, x: TensorView) -> TensorView:
        """Arc cosine.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def acos(self, x: Scalar) -> Val: ...
    @overload
    def acosh(self, x: TensorView) -> TensorView:
        """Inverse hyperbolic cosine.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def acosh(self, x: Scalar) -> Val: ...
    @overload
    def asin(self, x: TensorView) -> TensorView:
        """Arc sine.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def asin(self, x: Scalar) -> Val: ...
    @overload
    def asinh(self, x: TensorView) -> TensorView:
        """Inverse hyperbolic sine.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def asinh(self, x: Scalar) -> Val: ...
    @overload
    def atan(self, x: TensorView) -> TensorView:
        """Arc tangent.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def atan(self, x: Scalar) -> Val: ...
    @overload
    def atanh(self, x: TensorView) -> TensorView:
        """Inverse hyperbolic tangent.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def atanh(self, x: Scalar) -> Val: ...
    @overload
    def cos(self, x: TensorView) -> TensorView:
        """Cosine of an angle in radians.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def cos(self, x: Scalar) -> Val: ...
    @overload
    def cosh(self, x: TensorView) -> TensorView:
        """Hyperbolic cosine.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def cosh(self, x: Scalar) -> Val: ...
    @overload
    def exp(self, x: TensorView) -> TensorView:
        """e to the power of x.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def exp(self, x: Scalar) -> Val: ...
    @overload
    def exp2(self, x: TensorView) -> TensorView:
        """2 to the power of x.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def exp2(self, x: Scalar) -> Val: ...
    @overload
    def expm1(self, x: TensorView) -> TensorView:
        """exp(x) - 1, accurate near 0.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def expm1(self, x: Scalar) -> Val: ...
    @overload
    def erf(self, x: TensorView) -> TensorView:
        """Error function.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def erf(self, x: Scalar) -> Val: ...
    @overload
    def erfc(self, x: TensorView) -> TensorView:
        """Complementary error function.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def erfc(self, x: Scalar) -> Val: ...
    @overload
    def erfinv(self, x: TensorView) -> TensorView:
        """Inverse error function.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def erfinv(self, x: Scalar) -> Val: ...
    @overload
    def erfcinv(self, x: TensorView) -> TensorView:
        """Inverse complementary error function.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def erfcinv(self, x: Scalar) -> Val: ...
    @overload
    def lgamma(self, x: TensorView) -> TensorView:
        """Logarithm of the absolute value of the gamma function.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def lgamma(self, x: Scalar) -> Val: ...
    @overload
    def log(self, x: TensorView) -> TensorView:
        """Natural logarithm.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def log(self, x: Scalar) -> Val: ...
    @overload
    def log10(self, x: TensorView) -> TensorView:
        """Logarithm to base 10.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def log10(self, x: Scalar) -> Val: ...
    @overload
    def log1p(self, x: TensorView) -> TensorView:
        """log(1 + x), accurate near 0.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def log1p(self, x: Scalar) -> Val: ...
    @overload
    def log2(self, x: TensorView) -> TensorView:
        """Logarithm to base 2.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def log2(self, x: Scalar) -> Val: ...
    @overload
    def reciprocal(self, x: TensorView) -> TensorView:
        """1 / x.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def reciprocal(self, x: Scalar) -> Val: ...
    @overload
    def rsqrt(self, x: TensorView) -> TensorView:
        """1 / sqrt(x).

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def rsqrt(self, x: Scalar) -> Val: ...
    @overload
    def sigmoid(self, x: TensorView) -> TensorView:
        """1 / (1 + exp(-x)).

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def sigmoid(self, x: Scalar) -> Val: ...
    @overload
    def sin(self, x: TensorView) -> TensorView:
        """Sine of an angle in radians.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def sin(self, x: Scalar) -> Val: ...
    @overload
    def sinh(self, x: TensorView) -> TensorView:
        """Hyperbolic sine.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def sinh(self, x: Scalar) -> Val: ...
    @overload
    def sqrt(self, x: TensorView) -> TensorView:
        """Square root.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def sqrt(self, x: Scalar) -> Val: ...
    @overload
    def tan(self, x: TensorView) -> TensorView:
        """Tangent of an angle in radians.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def tan(self, x: Scalar) -> Val: ...
    @overload
    def tanh(self, x: TensorView) -> TensorView:
        """Hyperbolic tangent.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def tanh(self, x: Scalar) -> Val: ...
    @overload
    def ceil(self, x: TensorView) -> TensorView:
        """The smallest integer that is at least x.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def ceil(self, x: Scalar) -> Val: ...
    @overload
    def floor(self, x: TensorView) -> TensorView:
        """The largest integer that is at most x.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def floor(self, x: Scalar) -> Val: ...
    @overload
    def round(self, x: TensorView) -> TensorView:
        """The nearest integer; halves go to even.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def round(self, x: Scalar) -> Val: ...
    @overload
    def trunc(self, x: TensorView) -> TensorView:
        """The integer part of x, rounded towards zero.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def trunc(self, x: Scalar) -> Val: ...
    @overload
    def frac(self, x: TensorView) -> TensorView:
        """The fractional part, x - trunc(x).

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def frac(self, x: Scalar) -> Val: ...
    @overload
    def relu(self, x: TensorView) -> TensorView:
        """max(x, 0); nan where x is nan.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def relu(self, x: Scalar) -> Val: ...
    @overload
    def silu(self, x: TensorView) -> TensorView:
        """x * sigmoid(x), also called swish.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def silu(self, x: Scalar) -> Val: ...
    @overload
    def neg(self, x: TensorView) -> TensorView:
        """-x.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def neg(self, x: Scalar) -> Val: ...
    @overload
    def abs(self, x: TensorView) -> TensorView:
        """Absolute value.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def abs(self, x: Scalar) -> Val: ...
    @overload
    def sign(self, x: TensorView) -> TensorView:
        """The sign of x: -1, 0 or 1; 0 for nan.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def sign(self, x: Scalar) -> Val: ...
    @overload
    def logical_not(self, x: TensorView) -> TensorView:
        """Whether x is zero.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def logical_not(self, x: Scalar) -> Val: ...
    @overload
    def bitwise_not(self, x: TensorView) -> TensorView:
        """Bitwise not; logical not of a Bool.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def bitwise_not(self, x: Scalar) -> Val: ...
    @overload
    def set(self, x: TensorView) -> TensorView:
        """A copy.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def set(self, x: Scalar) -> Val: ...
    @overload
    def segment_set(self, x: TensorView) -> TensorView:
        """A copy, and a hint that a kernel may end here.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def segment_set(self, x: Scalar) -> Val: ...
    @overload
    def real(self, x: TensorView) -> TensorView:
        """The real part; a copy of a real tensor.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def real(self, x: Scalar) -> Val: ...
    @overload
    def imag(self, x: TensorView) -> TensorView:
        """The imaginary part of a complex number.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def imag(self, x: Scalar) -> Val: ...
    @overload
    def isfinite(self, x: TensorView) -> TensorView:
        """Whether x is neither infinite nor nan.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def isfinite(self, x: Scalar) -> Val: ...
    @overload
    def isinf(self, x: TensorView) -> TensorView:
        """Whether x is infinite.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def isinf(self, x: Scalar) -> Val: ...
    @overload
    def isnan(self, x: TensorView) -> TensorView:
        """Whether x is nan.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def isnan(self, x: Scalar) -> Val: ...
    @overload
    def isneginf(self, x: TensorView) -> TensorView:
        """Whether x is minus infinity.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def isneginf(self, x: Scalar) -> Val: ...
    @overload
    def isposinf(self, x: TensorView) -> TensorView:
        """Whether x is plus infinity.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def isposinf(self, x: Scalar) -> Val: ...
    @overload
    def isreal(self, x: TensorView) -> TensorView:
        """Whether the imaginary part of x is 0.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def isreal(self, x: Scalar) -> Val: ...
    @overload
    def signbit(self, x: TensorView) -> TensorView:
        """Whether the sign bit is set: true for -0.0.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The operand.
        """
    @overload
    def signbit(self, x: Scalar) -> Val: ...
    @overload
    def cast(self, arg: TensorView, dtype: DType) -> TensorView:
        """Conversion to a dtype; floats truncate to integers, any nonzero number is true.

        Parameters
        ----------
        arg : TensorView | Val | bool | int | float | complex
            The tensor.
        dtype : DataType | torch.dtype
            Of the result.
        """
    @overload
    def cast(self, arg: Scalar, dtype: DType) -> Val: ...
    @overload
    def add(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Sum; logical or of Bools.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def add(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def add(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def sub(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Difference; exclusive or of Bools.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def sub(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def sub(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def mul(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Product; logical and of Bools.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def mul(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def mul(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def pow(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Power; an integer to a negative power is 0 unless the base is 1 or -1.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def pow(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def pow(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def minimum(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """The smaller operand; nan where either is nan.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def minimum(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def minimum(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def maximum(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """The larger operand; nan where either is nan.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def maximum(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def maximum(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def div(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Quotient; truncated towards zero for integers.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def div(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def div(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def truediv(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Quotient; a Float for integers.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def truediv(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def truediv(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def atan2(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Angle of the point (rhs, lhs), in radians.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def atan2(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def atan2(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def fmod(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Remainder with the sign of the dividend.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def fmod(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def fmod(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def mod(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Remainder with the sign of the dividend, as C's %.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def mod(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def mod(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def remainder(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Remainder with the sign of the divisor, as Python's %.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def remainder(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def remainder(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def nextafter(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """The next floating-point number after lhs towards rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def nextafter(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def nextafter(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def gcd(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Greatest common divisor.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def gcd(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def gcd(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def hypot(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """sqrt(lhs ** 2 + rhs ** 2), without overflow of the squares.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def hypot(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def hypot(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def complex(self, lhs: TensorView, rhs: TensorView) -> TensorView:
        """The complex number with a given real and imaginary part.

        Parameters
        ----------
        lhs : TensorView | Val
            The left operand.
        rhs : TensorView | Val
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def complex(self, lhs: Val, rhs: Val) -> Val: ...
    @overload
    def eq(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether lhs equals rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def eq(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def eq(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def ne(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether lhs differs from rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def ne(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def ne(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def lt(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether lhs is less than rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def lt(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def lt(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def le(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether lhs is at most rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def le(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def le(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def gt(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether lhs is greater than rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def gt(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def gt(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def ge(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether lhs is at least rhs.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def ge(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def ge(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def logical_and(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether both operands are nonzero.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def logical_and(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def logical_and(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def logical_or(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Whether at least one operand is nonzero.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def logical_or(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def logical_or(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def bitwise_and(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Bitwise and; logical and of Bools.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def bitwise_and(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def bitwise_and(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def bitwise_or(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Bitwise or; logical or of Bools.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def bitwise_or(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def bitwise_or(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def bitwise_xor(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Bitwise exclusive or; logical exclusive or of Bools.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def bitwise_xor(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def bitwise_xor(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def bitwise_left_shift(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Left shift; 0 where the shift is at least the number of bits.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def bitwise_left_shift(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def bitwise_left_shift(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def bitwise_right_shift(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Arithmetic right shift.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def bitwise_right_shift(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def bitwise_right_shift(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def logical_right_shift(self, lhs: TensorView, rhs: Operand) -> TensorView:
        """Logical right shift; 0 where the shift is at least the number of bits.

        Parameters
        ----------
        lhs : TensorView | Val | bool | int | float | complex
            The left operand.
        rhs : TensorView | Val | bool | int | float | complex
            The right operand; operands broadcast and promote as the page of ops says.
        """
    @overload
    def logical_right_shift(self, lhs: Operand, rhs: TensorView) -> TensorView: ...
    @overload
    def logical_right_shift(self, lhs: Scalar, rhs: Scalar) -> Val: ...
    @overload
    def where(self, condition: TensorView, x: Operand, y: Operand) -> TensorView:
        """x where condition is true, else y.

        Parameters
        ----------
        condition : TensorView | Val | bool | int | float | complex
            Where elements of x are taken: a Bool.
        x : TensorView | Val | bool | int | float | complex
            The result where the condition is true.
        y : TensorView | Val | bool | int | float | complex
            The result elsewhere.
        """
    @overload
    def where(self, condition: Operand, x: TensorView, y: Operand) -> TensorView: ...
    @overload
    def where(self, condition: Operand, x: Operand, y: TensorView) -> TensorView: ...
    @overload
    def where(self, condition: Scalar, x: Scalar, y: Scalar) -> Val: ...
    @overload
    def lerp(self, x: TensorView, y: Operand, weight: Operand) -> TensorView:
        """x + weight * (y - x): linear interpolation between x and y.

        Parameters
        ----------
        x : TensorView | Val | bool | int | float | complex
            The result where weight is 0.
        y : TensorView | Val | bool | int | float | complex
            The result where weight is 1.
        weight : TensorView | Val | bool | int | float | complex
            How far from x to y.
        """
    @overload
    def lerp(self, x: Operand, y: TensorView, weight: Operand) -> TensorView: ...
    @overload
    def lerp(self, x: Operand, y: Operand, weight: TensorView) -> TensorView: ...
    @overload
    def lerp(self, x: Scalar, y: Scalar, weight: Scalar) -> Val: ...
    @overload
    def clamp(
        self,
        input: TensorView,
        min: Scalar | None = None,
        max: Scalar | None = None,
    ) -> TensorView:
        """The input limited to [min, max]; None for no limit.

        Parameters
        ----------
        input : TensorView | Val | bool | int | float | complex
            The tensor.
        min : Val | bool | int | float | complex, default None
            The least result; none where not given.
        max : Val | bool | int | float | complex, default None
            The greatest result; none where not given.
        """
    @overload
    def clamp(self, input: Scalar, min: Scalar | None = None, max: Scalar | None = None) -> Val: ...
    @overload
    def threshold(self, input: TensorView, threshold: Scalar, value: Scalar) -> TensorView:
        """The input where it is above the threshold, else the value.

        Parameters
        ----------
        input : TensorView | Val | bool | int | float | complex
            The tensor.
        threshold : Val | bool | int | float | complex
            Elements up to it are replaced.
        value : Val | bool | int | float | complex
            What replaces them.
        """
    @overload
    def threshold(self, input: Scalar, threshold: Scalar, value: Scalar) -> Val: ...
    @overload
    def addcmul(self, i1: TensorView, i2: Operand, i3: Operand, alpha: Scalar) -> TensorView:
        """i1 + i2 * i3 * alpha.

        Parameters
        ----------
        i1 : TensorView | Val | bool | int | float | complex
            What is added to.
        i2 : TensorView | Val | bool | int | float | complex
            The first factor.
        i3 : TensorView | Val | bool | int | float | complex
            The second factor.
        alpha : Val | bool | int | float | complex
            The third factor.
        """
    @overload
    def addcmul(self, i1: Operand, i2: TensorView, i3: Operand, alpha: Scalar) -> TensorView: ...
    @overload
    def addcmul(self, i1: Operand, i2: Operand, i3: TensorView, alpha: Scalar) -> TensorView: ...
    @overload
    def addcmul(self, i1: Scalar, i2: Scalar, i3: Scalar, alpha: Scalar) -> Val: ...
    @overload
    def sum(
        self,
        arg: TensorView,
        dims: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView:
        """Sum over dims; Int for bools and integers; half is accumulated in Float.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple, default None
            The dims to reduce; negative ones count from the end, None is all.
        keepdim : bool, default False
            Whether reduced dims stay, with size 1.
        dtype : DataType | torch.dtype, default DataType.Null
            Of the result.
        """
    @overload
    def sum(self, arg: TensorView, dtype: DType) -> TensorView: ...
    @overload
    def sum(
        self,
        arg: TensorView,
        *,
        dim: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def sum(
        self,
        arg: TensorView,
        *,
        axes: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def prod(
        self,
        arg: TensorView,
        dims: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView:
        """Product over dims; Int for bools and integers; half is accumulated in Float.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple, default None
            The dims to reduce; negative ones count from the end, None is all.
        keepdim : bool, default False
            Whether reduced dims stay, with size 1.
        dtype : DataType | torch.dtype, default DataType.Null
            Of the result.
        """
    @overload
    def prod(self, arg: TensorView, dtype: DType) -> TensorView: ...
    @overload
    def prod(
        self,
        arg: TensorView,
        *,
        dim: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def prod(
        self,
        arg: TensorView,
        *,
        axes: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def max(
        self,
        arg: TensorView,
        dims: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView:
        """Maximum over dims; nan if any element is nan.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple, default None
            The dims to reduce; negative ones count from the end, None is all.
        keepdim : bool, default False
            Whether reduced dims stay, with size 1.
        dtype : DataType | torch.dtype, default DataType.Null
            Of the result.
        """
    @overload
    def max(self, arg: TensorView, dtype: DType) -> TensorView: ...
    @overload
    def max(
        self,
        arg: TensorView,
        *,
        dim: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def max(
        self,
        arg: TensorView,
        *,
        axes: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def min(
        self,
        arg: TensorView,
        dims: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView:
        """Minimum over dims; nan if any element is nan.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple, default None
            The dims to reduce; negative ones count from the end, None is all.
        keepdim : bool, default False
            Whether reduced dims stay, with size 1.
        dtype : DataType | torch.dtype, default DataType.Null
            Of the result.
        """
    @overload
    def min(self, arg: TensorView, dtype: DType) -> TensorView: ...
    @overload
    def min(
        self,
        arg: TensorView,
        *,
        dim: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    @overload
    def min(
        self,
        arg: TensorView,
        *,
        axes: int | Sequence[int],
        keepdim: bool = False,
        dtype: DType = DataType.Null,
    ) -> TensorView: ...
    def welford(
        self,
        arg: TensorView,
        dims: int | Sequence[int],
    ) -> tuple[TensorView, TensorView, TensorView]:
        """Mean, sum of squared deviations from it, and number of elements over dims.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple
            The dims to reduce; negative ones count from the end, None is all.
        """
    def var(
        self,
        arg: TensorView,
        dims: int | Sequence[int],
        correction: int = 1,
        keepdim: bool = False,
    ) -> TensorView:
        """Variance over dims: squared deviations divided by max(n - correction, 0).

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple
            The dims to reduce; negative ones count from the end, None is all.
        correction : int, default 1
            What the number of elements is lessened by in the divisor of the variance.
        keepdim : bool, default False
            Whether reduced dims stay, with size 1.
        """
    def var_mean(
        self,
        arg: TensorView,
        dims: int | Sequence[int],
        correction: int = 1,
        keepdim: bool = False,
    ) -> tuple[TensorView, TensorView]:
        """Variance, divided by max(n - correction, 0), and mean over dims.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple
            The dims to reduce; negative ones count from the end, None is all.
        correction : int, default 1
            What the number of elements is lessened by in the divisor of the variance.
        keepdim : bool, default False
            Whether reduced dims stay, with size 1.
        """
    def cumsum(self, arg: TensorView, dim: int, init: Scalar | None = None) -> TensorView:
        """Cumulative sum along a dim, in the operand's dtype.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dim : int
            The dim; negative ones count from the end.
        init : Val | bool | int | float | complex, default None
            A number that the scan starts from.
        """
    def cumprod(self, arg: TensorView, dim: int, init: Scalar | None = None) -> TensorView:
        """Cumulative product along a dim, in the operand's dtype.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dim : int
            The dim; negative ones count from the end.
        init : Val | bool | int | float | complex, default None
            A number that the scan starts from.
        """
    def cummin(self, arg: TensorView, dim: int, init: Scalar | None = None) -> TensorView:
        """Cumulative minimum along a dim, without indices; nan from the first nan on.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dim : int
            The dim; negative ones count from the end.
        init : Val | bool | int | float | complex, default None
            A number that the scan starts from.
        """
    def cummax(self, arg: TensorView, dim: int, init: Scalar | None = None) -> TensorView:
        """Cumulative maximum along a dim, without indices; nan from the first nan on.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dim : int
            The dim; negative ones count from the end.
        init : Val | bool | int | float | complex, default None
            A number that the scan starts from.
        """
    def broadcast(self, arg: TensorView, is_broadcast_dim: Sequence[bool]) -> TensorView:
        """Inserts a dim of size 1 wherever is_broadcast_dim is true.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        is_broadcast_dim : list[bool] | tuple
            For each dim of the result whether it is new.
        """
    def broadcast_in_dim(
        self,
        arg: TensorView,
        shape: Sequence[Size],
        broadcast_dims: Sequence[int],
    ) -> TensorView:
        """Expands to shape, with dim i of the tensor at dim broadcast_dims[i] of the result.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        shape : list[int | Val] | tuple
            The sizes of the result; -1 keeps a size.
        broadcast_dims : list[int] | tuple
            For each dim of the tensor its dim in the result.
        """
    def expand(self, arg: TensorView, shape: Sequence[Size]) -> TensorView:
        """Expands dims of size 1 to shape; -1 keeps a size, and leading dims may be new.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        shape : list[int | Val] | tuple
            The sizes of the result; -1 keeps a size.
        """
    def reshape(self, arg: TensorView, new_shape: Sequence[Size]) -> TensorView:
        """The same elements, in row-major order, in a new shape; one size may be -1.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        new_shape : list[int | Val] | tuple
            The sizes of the result; one may be -1, and is what the others leave.
        """
    def permute(self, arg: TensorView, dims: Sequence[int]) -> TensorView:
        """Reorders dims: dim i of the result is dim dims[i] of the operand.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : list[int] | tuple
            For each dim of the result the dim of the tensor that it is.
        """
    def squeeze(
        self,
        arg: TensorView,
        dims: int | Sequence[int],
        squeeze_expanded: bool = False,
    ) -> TensorView:
        """Removes dims of size 1; also expanded dims, if squeeze_expanded.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dims : int | list[int] | tuple
            The dims of size 1 to take away.
        squeeze_expanded : bool, default False
            Whether dims that expand stretched are taken too.
        """
    def stride_order(self, arg: TensorView, stride_order: Sequence[int]) -> TensorView:
        """The same values in a memory order: dim i has the stride_order[i]-th smallest stride.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        stride_order : list[int] | tuple
            For each dim its place in memory, 0 the fastest.
        """
    def size(self, arg: TensorView, dim: int) -> Val:
        """The extent of one dim.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dim : int
            The dim asked for.
        """
    def shape(self, arg: TensorView) -> list[Val]:
        """The extents of all dims, as a list.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        """
    def slice(
        self,
        arg: TensorView,
        start_indices: Sequence[Size],
        end_indices: Sequence[Size],
        strides: Sequence[Size] | None = None,
        manual_normalization: bool = False,
    ) -> TensorView:
        """The elements from start_indices up to end_indices; these are clamped to the sizes.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        start_indices : list[int | Val] | tuple
            The first index in each dim.
        end_indices : list[int | Val] | tuple
            The index behind the last in each dim.
        strides : list[int | Val] | tuple, default None
            The step in each dim; only 1 is taken.
        manual_normalization : bool, default False
            Accepted as nvFuser has it: indices are clamped either way.
        """
    def pad(
        self,
        arg: TensorView,
        pad_widths: Sequence[Size],
        value: Scalar | None = None,
    ) -> TensorView:
        """Pads with value, by default 0; widths are (before, after) pairs, innermost dim first.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        pad_widths : list[int | Val] | tuple
            (before, after) of each padded dim, innermost dim first; negative ones cut.
        value : Val | bool | int | float | complex, default None
            What the new elements are; 0 where not given.
        """
    def cat(
        self,
        tensors: Sequence[TensorView],
        dim: int = 0,
        manual_padding: bool = False,
    ) -> TensorView:
        """Concatenates tensors along a dim.

        Parameters
        ----------
        tensors : list[TensorView]
            One tensor and more, of the same sizes but for dim.
        dim : int, default 0
            The dim; negative ones count from the end.
        manual_padding : bool, default False
            Whether tensors are padded with 0 to the result already: they are added.
        """
    def index_select(self, arg: TensorView, index: TensorView, dim: int) -> TensorView:
        """The slices of a dim at the positions in an index tensor; a 0-dim index keeps the dim.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        index : TensorView
            An index tensor; what indices out of range do is said in the README.
        dim : int
            The dim; negative ones count from the end.
        """
    def select(self, arg: TensorView, index: Scalar, dim: int) -> TensorView:
        """The slice of a dim at one position; removes the dim.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        index : Val | bool | int | float | complex
            The index to keep, negative ones from the end.
        dim : int
            The dim; negative ones count from the end.
        """
    def gather(self, arg: TensorView, index: TensorView, dim: int) -> TensorView:
        """For each element of index, the element of arg at that position along a dim.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        index : TensorView
            An index tensor; what indices out of range do is said in the README.
        dim : int
            The dim; negative ones count from the end.
        """
    def take_along_axis(self, arg: TensorView, index: TensorView, dim: int) -> TensorView:
        """Like gather; tensor and index are broadcast in the other dims.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        index : TensorView
            An index tensor; what indices out of range do is said in the README.
        dim : int
            The dim; negative ones count from the end.
        """
    def scatter(self, arg: TensorView, index: TensorView, src: Val, dim: int) -> TensorView:
        """A copy of arg with src, a tensor or a number, at the positions in index along a dim.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        index : TensorView
            An index tensor; what indices out of range do is said in the README.
        src : TensorView | Val
            What is stored: a tensor of the shape of index, or a scalar.
        dim : int
            The dim; negative ones count from the end.
        """
    def embedding_fwd(
        self,
        input: TensorView,
        weight: TensorView,
        padding_idx: Scalar | None = None,
        max_norm: Scalar | None = None,
        norm_type: Scalar | None = None,
        scale_grad_by_freq: Scalar | None = None,
        sparse: Scalar | None = None,
    ) -> TensorView:
        """The rows of weight at the positions in input, scaled down to a norm of at most max_norm.

        Parameters
        ----------
        input : TensorView
            Indices of rows of weight.
        weight : TensorView
            [rows, width].
        padding_idx : Val | bool | int | float | complex, default None
            The row that gets no gradient; results do not depend on it.
        max_norm : Val | bool | int | float | complex, default None
            Rows with a larger norm are scaled down to it.
        norm_type : Val | bool | int | float | complex, default None
            The p of the norm; 2 where not given.
        scale_grad_by_freq : Val | bool | int | float | complex, default None
            Of the gradient alone; results do not depend on it.
        sparse : Val | bool | int | float | complex, default None
            Of the gradient alone; results do not depend on it.
        """
    def iota(
        self,
        length: Size,
        start: Scalar | None = None,
        step: Scalar | None = None,
        dtype: DType = DataType.Int,
    ) -> TensorView:
        """start, start + step, ..., length numbers; start is 0 and step 1 where not given.

        Parameters
        ----------
        length : int | Val
            How many elements.
        start : Val | bool | int | float | complex, default None
            The first element.
        step : Val | bool | int | float | complex, default None
            The difference of neighbours.
        dtype : DataType | torch.dtype, default DataType.Int
            Of the result.
        """
    def full(self, shape: Sequence[Size], fill_value: Scalar, dtype: DType) -> TensorView:
        """A tensor filled with fill_value.

        Parameters
        ----------
        shape : list[int | Val] | tuple
            The sizes of the result.
        fill_value : Val | bool | int | float | complex
            Every element of the result.
        dtype : DataType | torch.dtype
            Of the result.
        """
    def triu(self, arg: TensorView, diagonal: Scalar = 0) -> TensorView:
        """The upper triangle of the last two dims; 0 below the diagonal.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        diagonal : Val | bool | int | float | complex, default 0
            The diagonal from which elements are kept: 0 the main one, 1 the one above.
        """
    def uniform(
        self,
        minval: Scalar,
        maxval: Scalar,
        shape: Sequence[Size],
        *,
        rng_seed: Scalar | None = None,
        rng_offset: Scalar | None = None,
        dtype: DType = DataType.Float,
    ) -> TensorView:
        """Random numbers, uniform in [minval, maxval); both are rounded to dtype first.

        Parameters
        ----------
        minval : Val | bool | int | float | complex
            The least number drawn.
        maxval : Val | bool | int | float | complex
            What all numbers drawn are below.
        shape : list[int | Val] | tuple
            The sizes of the result.
        rng_seed : Val | bool | int | float | complex, default None
            The Philox key; with rng_offset, or torch's generator gives both.
        rng_offset : Val | bool | int | float | complex, default None
            The Philox counter that elements count on from; with rng_seed.
        dtype : DataType | torch.dtype, default DataType.Float
            Of the result.
        """
    def normal(
        self,
        mean: Scalar,
        std: Scalar,
        shape: Sequence[Size],
        *,
        rng_seed: Scalar | None = None,
        rng_offset: Scalar | None = None,
        dtype: DType = DataType.Float,
    ) -> TensorView:
        """Random numbers, normally distributed.

        Parameters
        ----------
        mean : Val | bool | int | float | complex
            The mean of the distribution.
        std : Val | bool | int | float | complex
            The standard deviation of the distribution.
        shape : list[int | Val] | tuple
            The sizes of the result.
        rng_seed : Val | bool | int | float | complex, default None
            The Philox key; with rng_offset, or torch's generator gives both.
        rng_offset : Val | bool | int | float | complex, default None
            The Philox counter that elements count on from; with rng_seed.
        dtype : DataType | torch.dtype, default DataType.Float
            Of the result.
        """
    def rand_like(self, x: TensorView) -> TensorView:
        """Random numbers, uniform in [0, 1), in the shape of x.

        Parameters
        ----------
        x : TensorView
            The operand.
        """
    def randn_like(self, x: TensorView) -> TensorView:
        """Random numbers of the standard normal distribution, in the shape of x.

        Parameters
        ----------
        x : TensorView
            The operand.
        """
    def matmul(self, arg1: TensorView, arg2: TensorView) -> TensorView:
        """Matrix product, with the ranks and the broadcasting of batch dims of torch.matmul.

        Parameters
        ----------
        arg1 : TensorView
            The left factor, [..., M, K].
        arg2 : TensorView
            The right factor, [..., K, N].
        """
    def linear(
        self,
        arg1: TensorView,
        arg2: TensorView,
        bias: TensorView | None = None,
    ) -> TensorView:
        """``arg1 @ transpose(arg2) + bias``.

        Parameters
        ----------
        arg1 : TensorView
            The input, [..., K].
        arg2 : TensorView
            The weight, [N, K] or [K].
        bias : TensorView, default None
            What is added to the product.
        """
    def sdpfa_fwd(
        self,
        query: TensorView,
        key: TensorView,
        value: TensorView,
        bias: TensorView | None = None,
        mask: TensorView | None = None,
        dropout_p: Scalar | None = None,
        is_causal: Scalar | None = None,
        scale: Scalar | None = None,
    ) -> tuple[TensorView, TensorView, TensorView, TensorView]:
        """Scaled dot product attention: output, logsumexp of the scores, Philox seed and offset.

        Parameters
        ----------
        query : TensorView
            [N, H, L, E].
        key : TensorView
            [N, H, S, E].
        value : TensorView
            [N, H, S, E].
        bias : TensorView, default None
            Added to the scores; broadcasts to [N, H, L, S].
        mask : TensorView, default None
            A Bool: where scores count. Broadcasts to [N, H, L, S].
        dropout_p : Val | bool | int | float | complex, default None
            The probability that a weight is dropped.
        is_causal : Val | bool | int | float | complex, default None
            Whether a query sees only the keys up to its own place.
        scale : Val | bool | int | float | complex, default None
            The factor of the scores; 1 / sqrt(E) where not given.
        """
    def sdpfa_bwd(
        self,
        grad_output: TensorView,
        query: TensorView,
        key: TensorView,
        value: TensorView,
        output: TensorView,
        logsumexp: TensorView,
        dropout_p: Scalar,
        is_causal: Scalar,
        philox_seed: TensorView,
        philox_offset: TensorView,
        scale: Scalar | None = None,
    ) -> tuple[TensorView, TensorView, TensorView]:
        """Gradients of scaled dot product attention with respect to query, key and value.

        Parameters
        ----------
        grad_output : TensorView
            The gradient of the output.
        query : TensorView
            [N, H, L, E].
        key : TensorView
            [N, H, S, E].
        value : TensorView
            [N, H, S, E].
        output : TensorView
            What sdpfa_fwd gave.
        logsumexp : TensorView
            What sdpfa_fwd gave.
        dropout_p : Val | bool | int | float | complex
            The probability that a weight is dropped.
        is_causal : Val | bool | int | float | complex
            Whether a query sees only the keys up to its own place.
        philox_seed : TensorView
            What sdpfa_fwd gave.
        philox_offset : TensorView
            What sdpfa_fwd gave.
        scale : Val | bool | int | float | complex, default None
            The factor of the scores; 1 / sqrt(E) where not given.
        """
    def topk(
        self,
        arg: TensorView,
        k: Size,
        dim: int = -1,
        largest: bool = True,
        sorted: bool = False,
    ) -> tuple[TensorView, TensorView]:
        """The k largest elements along a dim, or smallest if not largest, and their indices.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        k : int | Val
            How many elements.
        dim : int, default -1
            The dim; negative ones count from the end.
        largest : bool, default True
            Whether the largest are taken, not the smallest.
        sorted : bool, default False
            Whether they come in order.
        """
    def argsort(
        self,
        arg: TensorView,
        dim: int,
        descending: bool = False,
        stable: bool = False,
    ) -> TensorView:
        """The indices that sort a tensor along a dim.

        Parameters
        ----------
        arg : TensorView
            The tensor.
        dim : int
            The dim; negative ones count from the end.
        descending : bool, default False
            Whether the largest come first.
        stable : bool, default False
            Whether equal elements keep their order.
        """
    def index_put_accumulate(
        self,
        acc: TensorView,
        index: TensorView,
        value: TensorView,
    ) -> TensorView:
        """A copy of acc with the rows of value added at the rows that index names.

        Parameters
        ----------
        acc : TensorView
            [rows, ...].
        index : TensorView
            A row of acc for each row of value.
        value : TensorView
            [indices, ...].
        """
    def grouped_mm(
        self,
        mat1: TensorView,
        mat2: TensorView,
        offsets: TensorView,
        scale1: TensorView | None = None,
        scale2: TensorView | None = None,
        alpha: TensorView | None = None,
        bias: TensorView | None = None,
        beta: TensorView | None = None,
        dtype: DType = DataType.BFloat16,
        output_block_scale_size: int = 0,
        output_block_scale_dtype: DType = DataType.BFloat16,
        output_gamma: bool = False,
    ) -> Any:
        """Matrix products of groups of rows that end at offsets; (out, None, None) if scaled.

        Parameters
        ----------
        mat1 : TensorView
            The left factors, a row or a group of rows each.
        mat2 : TensorView
            The right factors, one matrix or one a group.
        offsets : TensorView
            Int32, one a group: the row behind its last.
        scale1 : TensorView, default None
            Factors of mat1: one, one a row, or one a block.
        scale2 : TensorView, default None
            Factors of mat2: one, one a column, or one a block.
        alpha : TensorView, default None
            A factor of the product.
        bias : TensorView, default None
            What is added to the product.
        beta : TensorView, default None
            A factor of the bias.
        dtype : DataType | torch.dtype, default DataType.BFloat16
            Of the result.
        output_block_scale_size : int, default 0
            Elements of the result with one scale; 0 is not quantized.
        output_block_scale_dtype : DataType | torch.dtype, default DataType.BFloat16
            Of the scales of the result.
        output_gamma : bool, default False
            Whether a factor of the whole result is given beside its scales.
        """
    def scaled_mm(
        self,
        mat1: TensorView,
        mat2: TensorView,
        scale1: TensorView,
        scale2: TensorView,
        alpha: TensorView | None = None,
        bias: TensorView | None = None,
        beta: TensorView | None = None,
        dtype: DType = DataType.BFloat16,
        output_block_scale_size: int = 0,
        output_block_scale_dtype: DType = DataType.BFloat16,
        output_gamma: bool = False,
    ) -> tuple[TensorView, TensorView | None, TensorView | None]:
        """``alpha * (mat1 * scale1) @ (mat2 * scale2) + beta * bias``, as (out, None, None).

        Parameters
        ----------
        mat1 : TensorView
            The left factors, a row or a group of rows each.
        mat2 : TensorView
            The right factors, one matrix or one a group.
        scale1 : TensorView
            Factors of mat1: one, one a row, or one a block.
        scale2 : TensorView
            Factors of mat2: one, one a column, or one a block.
        alpha : TensorView, default None
            A factor of the product.
        bias : TensorView, default None
            What is added to the product.
        beta : TensorView, default None
            A factor of the bias.
        dtype : DataType | torch.dtype, default DataType.BFloat16
            Of the result.
        output_block_scale_size : int, default 0
            Elements of the result with one scale; 0 is not quantized.
        output_block_scale_dtype : DataType | torch.dtype, default DataType.BFloat16
            Of the scales of the result.
        output_gamma : bool, default False
            Whether a factor of the whole result is given beside its scales.
        """
    def nv_block_quantize(
        self,
        input: TensorView,
        global_scale: TensorView | None = None,
        swizzle_block_scales: bool = False,
        block_size: int = 16,
        dtype: DType = DataType.Float4_e2m1fn,
    ) -> tuple[TensorView, TensorView]:
        """Quantizes to 4 or 8 bits: the elements, and a scale for each block along the last dim.

        Parameters
        ----------
        input : TensorView
            The tensor.
        global_scale : TensorView, default None
            A factor of all elements, one Float.
        swizzle_block_scales : bool, default False
            Whether scales lie in tiles of [128, 4], as products want them.
        block_size : int, default 16
            Elements with one scale.
        dtype : DataType | torch.dtype, default DataType.Float4_e2m1fn
            Of the result.
        """
    def nv_grouped_block_quantize(
        self,
        input: TensorView,
        input_offsets: TensorView,
        output_offsets: TensorView,
        global_scale: TensorView | None = None,
        block_size: int = 16,
        dtype: DType = DataType.Float4_e2m1fn,
    ) -> tuple[TensorView, TensorView]:
        """Like nv_block_quantize for groups of rows; the scales of each group start a new tile.

        Parameters
        ----------
        input : TensorView
            The tensor.
        input_offsets : TensorView
            Int32, one a group: its first row.
        output_offsets : TensorView
            Int32, one a group: its first row among the tiles of scales.
        global_scale : TensorView, default None
            A factor of all elements, one Float.
        block_size : int, default 16
            Elements with one scale.
        dtype : DataType | torch.dtype, default DataType.Float4_e2m1fn
            Of the result.
        """
    def preprocess_grouped_matmul_input_sf(
        self,
        input: TensorView,
        input_offsets: TensorView,
        output_offsets: TensorView,
    ) -> TensorView:
        """Block scales rearranged into the tiles that a grouped matrix product expects.

        Parameters
        ----------
        input : TensorView
            The tensor.
        input_offsets : TensorView
            Int32, one a group: its first row.
        output_offsets : TensorView
            Int32, one a group: its first row among the tiles of scales.
        """
    def cutlass_nvfp4_grouped_mm(
        self,
        mat1: TensorView,
        mat2: TensorView,
        scale1: TensorView,
        scale2: TensorView,
        alpha: TensorView,
        problem_sizes: TensorView,
        expert_offsets: TensorView,
        sf_offsets: TensorView,
        dtype: DType = DataType.BFloat16,
    ) -> TensorView:
        """Matrix products of groups of rows of 4-bit elements, with a scale for each block of 16.

        Parameters
        ----------
        mat1 : TensorView
            The left factors, a row or a group of rows each.
        mat2 : TensorView
            The right factors, one matrix or one a group.
        scale1 : TensorView
            Factors of mat1: one, one a row, or one a block.
        scale2 : TensorView
            Factors of mat2: one, one a column, or one a block.
        alpha : TensorView
            A factor of the product.
        problem_sizes : TensorView
            Int32, [groups, 3]: M, N, K of each product.
        expert_offsets : TensorView
            Int32, one a group: its first row.
        sf_offsets : TensorView
            Int32, one a group: its first row among the scales.
        dtype : DataType | torch.dtype, default DataType.BFloat16
            Of the result.
        """
