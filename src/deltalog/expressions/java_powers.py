"""Java's `StrictMath.pow`, `cbrt` and `hypot` on doubles, to the last bit; see `java_math`."""

from __future__ import annotations

import math
from typing import Final

from deltalog.expressions.java_math import (
    ABSOLUTE,
    EXP_TERMS,
    high_word,
    low_cleared,
    polynomial,
    scaled,
    with_high,
)

_TWO53: Final = float(1 << 53)
_TWO54: Final = float(1 << 54)
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
    """The power of two numbers."""
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
    """Where the power is defined by a case of its own, or None."""
    if y == 0:
        return 1.0
    if math.isnan(x) or math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return math.nan
    if math.isinf(y):
        return math.inf if (abs(x) > 1) == (y > 0) else 0.0
    if x == 0 or math.isinf(x) or abs(x) == 1:
        return _of_pole(x, y)
    # These are exact, or rounded once.
    simple = {1.0: lambda: x, 2.0: lambda: x * x, -1.0: lambda: 1.0 / x}.get(y)
    if simple is None and y == 0.5 and x > 0:
        return math.sqrt(x)
    return simple and simple()


def _of_pole(x: float, y: float) -> float:
    """Of 0, 1 and infinity, of either sign."""
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
    # Cut to 20 bits, and made larger than the root.
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
