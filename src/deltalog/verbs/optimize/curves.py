"""Space-filling curves: map the ranks of several columns to one key that keeps neighbours close.

The Z-curve interleaves the bits of the ranks. The Hilbert curve visits the same cells and never
jumps; it is computed from the Z-curve's key, digit by digit, with a table of state transitions
(C. Hamilton, "Compact Hilbert Indices").
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from deltalog.kernels import compute

if TYPE_CHECKING:
    from collections.abc import Sequence

Curve = Literal["zorder", "hilbert"]

_KEY_BITS: Final = 62
_MAX_BITS: Final = 12
_MAX_BITS_ALONE: Final = 16
_TABLE_BITS: Final = 8


def bits_for(num_columns: int) -> int:
    """Return how many bits of each column's rank fit into a key."""
    most = _MAX_BITS_ALONE if num_columns == 1 else _MAX_BITS
    return max(1, min(most, _KEY_BITS // num_columns))


def curve_keys(ranks: Sequence[pa.Array[Any]], bits: int, curve: Curve) -> pa.Array[Any]:
    """Return the position of each row on the curve.

    Args:
        ranks: of each column, `int64`, below `2 ** bits`.
        bits: of a rank.
        curve: which one.

    Returns:
        Non-negative `int64`.
    """
    keys: pa.Array[Any] = _interleaved(ranks, bits)
    return keys if curve == "zorder" or len(ranks) == 1 else _hilbert(keys, len(ranks), bits)


def _interleaved(ranks: Sequence[Any], bits: int) -> Any:
    count = len(ranks)
    if count == 1:
        return ranks[0]
    spread = pa.array(_spread(bits, count), pa.int64())
    keys: Any = None
    for number, column in enumerate(ranks):
        # The first column has the highest bit of each digit.
        part = compute.shift_left(spread.take(column), _number(count - 1 - number))
        keys = part if keys is None else compute.bit_wise_or(keys, part)
    return keys


@cache
def _spread(bits: int, count: int) -> tuple[int, ...]:
    """Return all numbers of `bits` bits, with their bits spread `count` apart."""
    found = [0]
    for bit in range(bits):
        found += [value | 1 << bit * count for value in found]
    return tuple(found)


def _hilbert(keys: pa.Array[Any], count: int, bits: int) -> pa.Array[Any]:
    digits = max(1, _TABLE_BITS // count)  # that one step translates
    states: Any = pa.nulls(len(keys), pa.int64()).fill_null(0)
    result: pa.Array[Any] = states
    done = 0
    while done < bits:
        step = min(digits, bits - done)
        done += step
        width = step * count
        outputs, following = (pa.array(part, pa.int64()) for part in _translation(count, step))
        part = compute.bit_wise_and(
            compute.shift_right(keys, _number((bits - done) * count)), _number((1 << width) - 1)
        )
        places = compute.bit_wise_or(compute.shift_left(states, _number(width)), part)
        result = compute.bit_wise_or(
            compute.shift_left(result, _number(width)), outputs.take(places)
        )
        states = following.take(places)
    return result


@cache
def _translation(count: int, digits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return for each state and `digits` digits of the Z-curve: Hilbert digits and next state.

    A state is the entry corner of a part of the curve, and its direction.
    """
    outputs: list[int] = []
    states: list[int] = []
    for entry in range(1 << count):
        for direction in range(count):
            for value in range(1 << count * digits):
                now, result = (entry, direction), 0
                for digit in reversed(range(digits)):
                    corner = value >> digit * count & (1 << count) - 1
                    place, now = _step(corner, now, count)
                    result = result << count | place
                outputs.append(result)
                states.append(now[0] * count + now[1])
    return tuple(outputs), tuple(states)


def _step(corner: int, state: tuple[int, int], count: int) -> tuple[int, tuple[int, int]]:
    """Return the position of a corner on the next finer level of the curve, and its state."""
    entry, direction = state
    place = _from_gray(_rotated(corner ^ entry, -direction - 1, count))
    entry ^= _rotated(_entry(place), direction + 1, count)
    return place, (entry, (direction + _direction(place, count) + 1) % count)


def _rotated(value: int, by: int, count: int) -> int:
    by %= count
    return (value << by | value >> count - by) & (1 << count) - 1


def _from_gray(code: int) -> int:
    value = 0
    while code:
        value ^= code
        code >>= 1
    return value


def _entry(place: int) -> int:
    if place == 0:
        return 0
    even = (place - 1) // 2 * 2
    return even ^ even >> 1


def _direction(place: int, count: int) -> int:
    """Return the axis along which the curve leaves a corner for the next one."""
    if place == 0:
        return 0
    last = place - 1 if place % 2 == 0 else place
    return _trailing_ones(last) % count


def _trailing_ones(value: int) -> int:
    return ((value + 1) & -(value + 1)).bit_length() - 1


def _number(value: int) -> Any:
    return pa.scalar(value, pa.int64())
