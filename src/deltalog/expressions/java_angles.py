"""Java's `StrictMath.asin`, `acos`, `atan` and `atan2`, to the last bit; see `java_math`."""

from __future__ import annotations

import math
from typing import Final

from deltalog.expressions.java_math import ABSOLUTE, high_word, low_cleared, polynomial

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
    """The angle of a point."""
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
    """The arc sine; NaN beyond -1 and 1."""
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
    """The arc cosine; NaN beyond -1 and 1."""
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
