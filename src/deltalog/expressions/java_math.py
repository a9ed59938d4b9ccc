"""Java's `StrictMath` on doubles, to the last bit.

Spark computes `exp`, `ln`, `asin`, … by it. C's mathematics differ in the last digit for a few of a
hundred values, so these are the algorithms of Sun's fdlibm, which `StrictMath` is defined by. Their
constants and the order of their operations decide about the last bit, and stay as they are there.
"""

from __future__ import annotations

import math
import struct
from typing import Final

_TWO28: Final = float(1 << 28)
_TWO54: Final = float(1 << 54)
ABSOLUTE: Final = 0x7FFFFFFF
_LN2: Final = 0.6931471805599453
_IVLN10: Final = 4.34294481903251816668e-01
_LOG10_2HI: Final = 3.01029995663611771306e-01
_LOG10_2LO: Final = 3.69423907715893078616e-13
_HYPERBOLIC_MOST: Final = 7.10475860073943863426e02
_LN2_HI: Final = 6.93147180369123816490e-01
_LN2_LO: Final = 1.90821492927058770002e-10
_INV_LN2: Final = 1.44269504088896338700e00
_EXP_MOST: Final = 7.09782712893383973096e02
_EXP_LEAST: Final = -7.45133219101941108420e02
EXP_TERMS: Final = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_LG: Final = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_Q: Final = (
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)


def _bits(value: float) -> int:
    found: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return found


def _of_bits(bits: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return found


def high_word(value: float) -> int:
    """The upper 32 bits, signed."""
    return _bits(value) >> 32


def scaled(value: float, k: int) -> float:
    """The value with k added to its exponent."""
    return with_high(value, high_word(value) + (k << 20))


def with_high(value: float, high: int) -> float:
    """The value with other upper 32 bits."""
    high = (high + (1 << 31)) % (1 << 32) - (1 << 31)
    return _of_bits((high << 32) | (_bits(value) & 0xFFFFFFFF))


def low_cleared(value: float) -> float:
    """The value with the lower 32 bits cleared."""
    return _of_bits(_bits(value) & ~0xFFFFFFFF)


def polynomial(coefficients: tuple[float, ...], at: float) -> float:
    """The sum of the coefficients times powers of a number, from the highest on."""
    found = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        found = coefficient + at * found
    return found


def exp(x: float) -> float:
    """Euler's number to the power of x."""
    if math.isnan(x):
        return x
    if x > _EXP_MOST:
        return math.inf
    if x < _EXP_LEAST:
        return 0.0
    high = high_word(x) & ABSOLUTE
    hi = lo = 0.0
    k = 0
    if high > 0x3FD62E42:
        k, hi, lo = _reduced(x, high)
        x = hi - lo
    elif high < 0x3E300000:
        return 1.0 + x
    t = x * x
    c = x - t * polynomial(EXP_TERMS, t)
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    y = 1.0 - ((lo - (x * c) / (2.0 - c)) - hi)
    return scaled(y, k) if k >= -1021 else scaled(y, k + 1000) * 2.0**-1000


def _reduced(x: float, high: int) -> tuple[int, float, float]:
    """k, and the upper and lower part of x - k ln 2."""
    k = (1 if x > 0 else -1) if high < 0x3FF0A2B2 else int(_INV_LN2 * x + math.copysign(0.5, x))
    return k, x - k * _LN2_HI, k * _LN2_LO


def expm1(x: float) -> float:
    """Euler's number to the power of x, minus 1."""
    high = high_word(x) & ABSOLUTE
    if math.isnan(x):
        return x
    if high >= 0x4043687A:
        if x > _EXP_MOST:
            return math.inf
        if x < 0:
            return -1.0
    c = 0.0
    k = 0
    if high > 0x3FD62E42:
        k, hi, lo = _reduced(x, high)
        x = hi - lo
        c = (hi - x) - lo
    elif high < 0x3C900000:
        return x
    hfx = 0.5 * x
    hxs = x * hfx
    r1 = 1.0 + hxs * polynomial(_Q, hxs)
    t = 3.0 - r1 * hfx
    e = hxs * ((r1 - t) / (6.0 - x * t))
    if k == 0:
        return x - (x * e - hxs)
    return _expm1_tail(x, (x * (e - c) - c) - hxs, k)


def _expm1_tail(x: float, e: float, k: int) -> float:
    if k == -1:
        return 0.5 * (x - e) - 0.5
    if k == 1:
        return -2.0 * (e - (x + 0.5)) if x < -0.25 else 1.0 + 2.0 * (x - e)
    if k <= -2 or k > 56:
        return scaled(1.0 - (e - x), k) - 1.0
    if k < 20:
        t = with_high(1.0, 0x3FF00000 - (0x200000 >> k))
        return scaled(t - (e - x), k)
    t = with_high(1.0, (0x3FF - k) << 20)
    return scaled((x - (e + t)) + 1.0, k)


def log(x: float) -> float:
    """The natural logarithm of a positive number."""
    if math.isnan(x) or x == math.inf:
        return x
    k = 0
    if x < 2.0**-1022:
        k, x = -54, x * _TWO54
    high = high_word(x)
    k += (high >> 20) - 1023
    high &= 0x000FFFFF
    i = (high + 0x95F64) & 0x100000
    x = with_high(x, high | (i ^ 0x3FF00000))
    k += i >> 20
    f = x - 1.0
    if (0x000FFFFF & (2 + high)) < 3:
        if f == 0:
            return k * _LN2_HI + k * _LN2_LO
        r = f * f * (0.5 - 0.33333333333333333 * f)
        return f - r if k == 0 else k * _LN2_HI - ((r - k * _LN2_LO) - f)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * polynomial(_LG[1::2], w)
    t2 = z * polynomial(_LG[0::2], w)
    r = t2 + t1
    if ((high - 0x6147A) | (0x6B851 - high)) > 0:
        hfsq = 0.5 * f * f
        if k == 0:
            return f - (hfsq - s * (hfsq + r))
        return k * _LN2_HI - ((hfsq - (s * (hfsq + r) + k * _LN2_LO)) - f)
    if k == 0:
        return f - s * (f - r)
    return k * _LN2_HI - ((s * (f - r) - k * _LN2_LO) - f)


def log10(x: float) -> float:
    """The logarithm to base 10 of a positive number."""
    if math.isnan(x) or x == math.inf:
        return x
    k = 0
    if x < 2.0**-1022:
        k, x = -54, x * _TWO54
    high = high_word(x)
    k += (high >> 20) - 1023
    i = int(k < 0)
    y = float(k + i)
    x = with_high(x, (high & 0x000FFFFF) | ((0x3FF - i) << 20))
    return (y * _LOG10_2LO + _IVLN10 * log(x)) + y * _LOG10_2HI


def log2(x: float) -> float:
    """The logarithm to base 2, by Spark's formula."""
    return log(x) / _LN2


def log1p(x: float) -> float:
    """The natural logarithm of 1 + x, which is positive."""
    high = high_word(x)
    size = high & ABSOLUTE
    if size >= 0x7FF00000:
        return x
    k, f, hu, c = 1, 0.0, 1, 0.0
    if high < 0x3FDA827A:
        if size < 0x3E200000:
            return x if size < 0x3C900000 else x - x * x * 0.5
        # Of negative numbers, those above -0.2929; high words are signed here.
        if high > 0 or high <= 0xBFD2BEC3 - (1 << 32):
            k, f = 0, x
    if k:
        k, f, hu, c = _log1p_reduced(x, high)
    hfsq = 0.5 * f * f
    if hu == 0:
        if f == 0:
            return 0.0 if k == 0 else k * _LN2_HI + (c + k * _LN2_LO)
        r = hfsq * (1.0 - 0.66666666666666666 * f)
        return f - r if k == 0 else k * _LN2_HI - ((r - (k * _LN2_LO + c)) - f)
    s = f / (2.0 + f)
    z = s * s
    r = z * polynomial(_LG, z)
    if k == 0:
        return f - (hfsq - s * (hfsq + r))
    return k * _LN2_HI - ((hfsq - (s * (hfsq + r) + (k * _LN2_LO + c))) - f)


def _log1p_reduced(x: float, high: int) -> tuple[int, float, int, float]:
    u = 1.0 + x if high < 0x43400000 else x
    hu = high_word(u)
    k = (hu >> 20) - 1023
    c = 0.0
    if high < 0x43400000:
        c = (1.0 - (u - x) if k > 0 else x - (u - 1.0)) / u
    hu &= 0x000FFFFF
    if hu < 0x6A09E:
        u = with_high(u, hu | 0x3FF00000)
    else:
        k += 1
        u = with_high(u, hu | 0x3FE00000)
        hu = (0x00100000 - hu) >> 2
    return k, u - 1.0, hu, c


def sinh(x: float) -> float:
    """The hyperbolic sine."""
    size = high_word(x) & ABSOLUTE
    if not math.isfinite(x) or size < 0x3E300000:
        return x
    h = math.copysign(0.5, x)
    if size < 0x40360000:
        t = expm1(abs(x))
        return h * (2.0 * t - t * t / (t + 1.0)) if size < 0x3FF00000 else h * (t + t / (t + 1.0))
    return _half_of_exp(x, h, size)


def cosh(x: float) -> float:
    """The hyperbolic cosine."""
    size = high_word(x) & ABSOLUTE
    if not math.isfinite(x):
        return abs(x)
    if size < 0x3FD62E43:
        t = expm1(abs(x))
        w = 1.0 + t
        return w if size < 0x3C800000 else 1.0 + (t * t) / (w + w)
    if size < 0x40360000:
        t = exp(abs(x))
        return 0.5 * t + 0.5 / t
    return _half_of_exp(x, 0.5, size)


def _half_of_exp(x: float, half: float, size: int) -> float:
    if size < 0x40862E42:
        return half * exp(abs(x))
    if abs(x) <= _HYPERBOLIC_MOST:
        w = exp(0.5 * abs(x))
        return (half * w) * w
    return math.copysign(math.inf, half)


def tanh(x: float) -> float:
    """The hyperbolic tangent."""
    size = high_word(x) & ABSOLUTE
    if math.isnan(x):
        return x
    if size >= 0x40360000:
        return math.copysign(1.0, x)
    if size < 0x3C800000:
        return x * (1.0 + x)
    if size >= 0x3FF00000:
        z = 1.0 - 2.0 / (expm1(2.0 * abs(x)) + 2.0)
    else:
        t = expm1(-2.0 * abs(x))
        z = -t / (t + 2.0)
    return math.copysign(z, x)


def asinh(x: float) -> float:
    """The inverse hyperbolic sine."""
    high = high_word(x) & ABSOLUTE
    if not math.isfinite(x) or high < 0x3E300000:
        return x
    size = abs(x)
    # Spark's limits are these numbers; those of fdlibm are their upper halves, a little above.
    if size > _TWO28:
        w = log(size) + _LN2
    elif size > 2.0:
        w = log(2.0 * size + 1.0 / (math.sqrt(x * x + 1.0) + size))
    else:
        t = x * x
        w = log1p(size + t / (1.0 + math.sqrt(1.0 + t)))
    return math.copysign(w, x)


def acosh(x: float) -> float:
    """The inverse hyperbolic cosine; NaN below 1."""
    if not x >= 1:
        return math.nan
    if x >= _TWO28:
        return log(x) + _LN2
    if x > 2.0:
        return log(2.0 * x - 1.0 / (x + math.sqrt(x * x - 1.0)))
    t = x - 1.0
    return log1p(t + math.sqrt(2.0 * t + t * t))


def atanh(x: float) -> float:
    """The inverse hyperbolic tangent, by Spark's formula; NaN beyond -1 and 1."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    return 0.5 * (log1p(x) - log1p(-x))
