"""Java's `StrictMath` functions on doubles, exact to the last bit.

Spark uses `StrictMath` for `exp`, `ln`, `asin`, … The C library differs in the last digit for a few
percent of values, so this module implements the algorithms of Sun's fdlibm, which define
`StrictMath`. The constants and the order of operations determine the last bit, so do not change
them.
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
    """Return the upper 32 bits as a signed number."""
    return _bits(value) >> 32


def scaled(value: float, k: int) -> float:
    """Return the value with k added to its exponent."""
    return with_high(value, high_word(value) + (k << 20))


def with_high(value: float, high: int) -> float:
    """Return the value with its upper 32 bits replaced."""
    high = (high + (1 << 31)) % (1 << 32) - (1 << 31)
    return _of_bits((high << 32) | (_bits(value) & 0xFFFFFFFF))


def low_cleared(value: float) -> float:
    """Return the value with its lower 32 bits cleared."""
    return _of_bits(_bits(value) & ~0xFFFFFFFF)


def polynomial(coefficients: tuple[float, ...], at: float) -> float:
    """Evaluate a polynomial; the first coefficient belongs to the highest power."""
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
    """Return k, and the upper and lower part of x - k ln 2."""
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
        # For negative x, the second test is true if x is above -0.2929, because `high` is signed.
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
    # Spark compares |x| with these limits. fdlibm compares only the upper word of x.
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
    """The inverse hyperbolic tangent, by Spark's formula; NaN outside of -1 to 1."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    return 0.5 * (log1p(x) - log1p(-x))


# --- Java's `StrictMath.asin`, `acos`, `atan` and `atan2`


_PIO2_HI: Final = 1.57079632679489655800e00
_PIO2_LO: Final = 6.12323399573676603587e-17
_PIO4_HI: Final = 7.85398163397448278999e-01
_PI_LO: Final = 1.2246467991473531772e-16
_PS: Final = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_QS: Final = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
_AT: Final = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
_ATAN_HI: Final = (
    4.63647609000806093515e-01,
    7.85398163397448278999e-01,
    9.82793723247329054082e-01,
    1.57079632679489655800e00,
)
_ATAN_LO: Final = (
    2.26987774529616870924e-17,
    3.06161699786838301793e-17,
    1.39033110312309984516e-17,
    6.12323399573676603587e-17,
)


def atan(x: float) -> float:
    """The arc tangent."""
    high = high_word(x)
    size = high & ABSOLUTE
    if math.isnan(x):
        return x
    if size >= 0x44100000:
        return math.copysign(_ATAN_HI[3] + _ATAN_LO[3], x)
    part = -1
    if size < 0x3FDC0000:
        if size < 0x3E200000:
            return x
    else:
        x = abs(x)
        if size < 0x3FE60000:
            part, x = 0, (2.0 * x - 1.0) / (2.0 + x)
        elif size < 0x3FF30000:
            part, x = 1, (x - 1.0) / (x + 1.0)
        elif size < 0x40038000:
            part, x = 2, (x - 1.5) / (1.0 + 1.5 * x)
        else:
            part, x = 3, -1.0 / x
    z = x * x
    w = z * z
    s = z * polynomial(_AT[0::2], w) + w * polynomial(_AT[1::2], w)
    if part < 0:
        return x - x * s
    z = _ATAN_HI[part] - ((x * s - _ATAN_LO[part]) - x)
    return -z if high < 0 else z


def atan2(y: float, x: float) -> float:
    """The angle of the point (x, y)."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if x == 1.0:
        return atan(y)
    is_left, is_below = math.copysign(1, x) < 0, math.copysign(1, y) < 0
    if x == 0 or y == 0 or math.isinf(x) or math.isinf(y):
        return math.atan2(y, x)
    k = ((high_word(y) & ABSOLUTE) - (high_word(x) & ABSOLUTE)) >> 20
    if k > 60:
        z = _PIO2_HI + 0.5 * _PI_LO
    elif is_left and k < -60:
        z = 0.0
    else:
        z = atan(abs(y / x))
    if is_left:
        return (z - _PI_LO) - math.pi if is_below else math.pi - (z - _PI_LO)
    return -z if is_below else z


def asin(x: float) -> float:
    """The arc sine; NaN outside of -1 to 1."""
    size = high_word(x) & ABSOLUTE
    if not abs(x) < 1.0:
        return x * _PIO2_HI + x * _PIO2_LO if abs(x) == 1.0 else math.nan
    if size < 0x3FE00000:
        return x if size < 0x3E400000 else x + x * _arc(x * x)
    t = (1.0 - abs(x)) * 0.5
    s = math.sqrt(t)
    if size >= 0x3FEF3333:
        t = _PIO2_HI - (2.0 * (s + s * _arc(t)) - _PIO2_LO)
    else:
        w = low_cleared(s)
        c = (t - w * w) / (s + w)
        p = 2.0 * s * _arc(t) - (_PIO2_LO - 2.0 * c)
        t = _PIO4_HI - (p - (_PIO4_HI - 2.0 * w))
    return math.copysign(t, x)


def _arc(t: float) -> float:
    return t * polynomial(_PS, t) / polynomial(_QS, t)


def acos(x: float) -> float:
    """The arc cosine; NaN outside of -1 to 1."""
    size = high_word(x) & ABSOLUTE
    if not abs(x) < 1.0:
        return 0.0 if x == 1.0 else math.pi + 2.0 * _PIO2_LO if x == -1.0 else math.nan
    if size < 0x3FE00000:
        if size <= 0x3C600000:
            return _PIO2_HI + _PIO2_LO
        return _PIO2_HI - (x - (_PIO2_LO - x * _arc(x * x)))
    if x < 0:
        z = (1.0 + x) * 0.5
        s = math.sqrt(z)
        return math.pi - 2.0 * (s + (_arc(z) * s - _PIO2_LO))
    z = (1.0 - x) * 0.5
    s = math.sqrt(z)
    df = low_cleared(s)
    c = (z - df * df) / (s + df)
    return 2.0 * (df + (_arc(z) * s + c))


# --- Java's `StrictMath.pow`, `cbrt` and `hypot`


_TWO53: Final = float(1 << 53)

_L: Final = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
_BP: Final = (1.0, 1.5)
_DP_H: Final = (0.0, 5.84962487220764160156e-01)
_DP_L: Final = (0.0, 1.35003920212974897128e-08)
_LG2: Final = 6.93147180559945286227e-01
_LG2_H: Final = 6.93147182464599609375e-01
_LG2_L: Final = -1.90465429995776804525e-09
_OVERFLOW: Final = 8.0085662595372944372e-17
_CP: Final = 9.61796693925975554329e-01
_CP_H: Final = 9.61796700954437255859e-01
_CP_L: Final = -7.02846165095275826516e-09
_IVLN2: Final = 1.44269504088896338700e00
_IVLN2_H: Final = 1.44269502162933349609e00
_IVLN2_L: Final = 1.92596299112661746887e-08


def power(x: float, y: float) -> float:
    """Return x to the power of y."""
    found = _of_special(x, y)
    if found is not None:
        return found
    if x < 0 and not y.is_integer():
        return math.nan
    sign = -1.0 if x < 0 and y % 2 == 1 else 1.0
    ix, iy = high_word(x) & ABSOLUTE, high_word(y) & ABSOLUTE
    is_far = not 0x3FEFFFFF <= ix <= 0x3FF00000
    if iy > 0x43F00000 or (iy > 0x41E00000 and is_far):
        return sign * (math.inf if (ix >= 0x3FF00000) == (y > 0) else 0.0)
    t1, t2 = _log2_near_one(abs(x)) if iy > 0x41E00000 else _log2(abs(x))
    return sign * _exp2(y, t1, t2)


def _of_special(x: float, y: float) -> float | None:
    """Return the power for special operands, otherwise None."""
    if y == 0:
        return 1.0
    if math.isnan(x) or math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return math.nan
    if math.isinf(y):
        return math.inf if (abs(x) > 1) == (y > 0) else 0.0
    if x == 0 or math.isinf(x) or abs(x) == 1:
        return _of_pole(x, y)
    # Compute these powers directly, because their results are exact or rounded only once.
    simple = {1.0: lambda: x, 2.0: lambda: x * x, -1.0: lambda: 1.0 / x}.get(y)
    if simple is None and y == 0.5 and x > 0:
        return math.sqrt(x)
    return simple and simple()


def _of_pole(x: float, y: float) -> float:
    """Return the power if the absolute value of the base is 0, 1 or infinity."""
    size = abs(x)
    if y < 0:
        size = math.inf if size == 0 else 1.0 / size
    if math.copysign(1, x) > 0:
        return size
    if size == 1 and not y.is_integer():
        return math.nan
    return -size if y % 2 == 1 else size


def _log2_near_one(ax: float) -> tuple[float, float]:
    t = ax - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = _IVLN2_H * t
    v = t * _IVLN2_L - w * _IVLN2
    t1 = low_cleared(u + v)
    return t1, v - (t1 - u)


def _log2(ax: float) -> tuple[float, float]:
    n = 0
    ix = high_word(ax)
    if ix < 0x00100000:
        ax *= _TWO53
        n -= 53
        ix = high_word(ax)
    n += (ix >> 20) - 0x3FF
    j = ix & 0x000FFFFF
    ix = j | 0x3FF00000
    k = 0
    if 0x3988E < j < 0xBB67A:
        k = 1
    elif j >= 0xBB67A:
        n += 1
        ix -= 0x00100000
    ax = with_high(ax, ix)
    u = ax - _BP[k]
    v = 1.0 / (ax + _BP[k])
    ss = u * v
    s_h = low_cleared(ss)
    t_h = with_high(0.0, ((ix >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_l = ax - (t_h - _BP[k])
    s_l = v * ((u - s_h * t_h) - s_h * t_l)
    s2 = ss * ss
    r = s2 * s2 * polynomial(_L, s2)
    r += s_l * (s_h + ss)
    s2 = s_h * s_h
    t_h = low_cleared(3.0 + s2 + r)
    t_l = r - ((t_h - 3.0) - s2)
    u = s_h * t_h
    v = s_l * t_h + t_l * ss
    p_h = low_cleared(u + v)
    p_l = v - (p_h - u)
    z_h = _CP_H * p_h
    z_l = _CP_L * p_h + p_l * _CP + _DP_L[k]
    t = float(n)
    t1 = low_cleared(((z_h + z_l) + _DP_H[k]) + t)
    return t1, z_l - (((t1 - t) - _DP_H[k]) - z_h)


def _exp2(y: float, t1: float, t2: float) -> float:
    y1 = low_cleared(y)
    p_l = (y - y1) * t1 + y * t2
    p_h = y1 * t1
    z = p_l + p_h
    if z > 1024 or (z == 1024 and p_l + _OVERFLOW > z - p_h):
        return math.inf
    if z < -1075 or (z == -1075 and p_l <= z - p_h):
        return 0.0
    j = high_word(z)
    i = j & ABSOLUTE
    k = (i >> 20) - 0x3FF
    n = 0
    if i > 0x3FE00000:
        n = i + (0x00100000 >> (k + 1))
        k = (n >> 20) - 0x3FF
        t = math.copysign(with_high(0.0, n & ~(0x000FFFFF >> k)), z)
        n = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
        n = -n if j < 0 else n
        p_h -= t
    t = low_cleared(p_l + p_h)
    u = t * _LG2_H
    v = (p_l - (t - p_h)) * _LG2 + t * _LG2_L
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * polynomial(EXP_TERMS, t)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    if (high_word(z) + (n << 20)) >> 20 <= 0:
        return math.ldexp(z, n)
    return scaled(z, n)


def cbrt(x: float) -> float:
    """The cube root."""
    if x == 0 or not math.isfinite(x):
        return x
    size = abs(x)
    high = high_word(size)
    if high < 0x00100000:
        t = _TWO54 * size
        t = with_high(t, high_word(t) // 3 + 696219795)
    else:
        t = with_high(0.0, high // 3 + 715094163)
    r = t * t / size
    s = 5.42857142857142815906e-01 + r * t
    t *= 3.57142857142857150787e-01 + 1.60714285714285720630e00 / (
        s + 1.41428571428571436819e00 + -7.05306122448979611050e-01 / s
    )
    # Truncate the estimate to 20 bits and round it up, so that it is larger than the root.
    t = low_cleared(t)
    t = with_high(t, high_word(t) + 1)
    s = t * t
    r = size / s
    w = t + t
    r = (r - t) / (w + r)
    return math.copysign(t + t * r, x)


def hypot(x: float, y: float) -> float:
    """The length of a vector."""
    if math.isinf(x) or math.isinf(y):
        return math.inf
    if math.isnan(x) or math.isnan(y):
        return math.nan
    a, b = sorted((abs(x), abs(y)), reverse=True)
    ha, hb = high_word(a), high_word(b)
    if ha - hb > 0x3C00000:
        return a + b
    k = 0
    if ha > 0x5F300000:
        ha, hb, k = ha - 0x25800000, hb - 0x25800000, 600
        a, b = with_high(a, ha), with_high(b, hb)
    if hb < 0x20B00000:
        if hb <= 0x000FFFFF:
            if b == 0:
                return a
            a, b, k = a * 2.0**1022, b * 2.0**1022, k - 1022
            ha, hb = high_word(a), high_word(b)
        else:
            ha, hb, k = ha + 0x25800000, hb + 0x25800000, k - 600
            a, b = with_high(a, ha), with_high(b, hb)
    w = a - b
    if w > b:
        t1 = with_high(0.0, ha)
        t2 = a - t1
        w = math.sqrt(t1 * t1 - (b * (-b) - t2 * (a + t1)))
    else:
        a += a
        y1 = with_high(0.0, hb)
        y2 = b - y1
        t1 = with_high(0.0, ha + 0x00100000)
        t2 = a - t1
        w = math.sqrt(t1 * y1 - (w * (-w) - (t1 * y2 + t2 * b)))
    return scaled(1.0, k) * w if k else w
