"""Geometries as ISO WKB, written by hand: what a test expects of one is what it was made of."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Point = Sequence[float]


def _head(kind: int, order: str, dimensions: str) -> bytes:
    code = kind + {"XY": 0, "XYZ": 1000, "XYM": 2000, "XYZM": 3000}[dimensions]
    return struct.pack(f"{order}BI", int(order == "<"), code)


def _numbers(points: Sequence[Point], order: str) -> bytes:
    return b"".join(struct.pack(f"{order}{len(point)}d", *point) for point in points)


def point(*place: float, order: str = "<", dimensions: str = "XY") -> bytes:
    """A point; without numbers the empty one, as WKB has it."""
    numbers = place or (float("nan"),) * len(dimensions)
    return _head(1, order, dimensions) + _numbers([numbers], order)


def line(*points: Point, order: str = "<", dimensions: str = "XY") -> bytes:
    """A line through some points."""
    count = struct.pack(f"{order}I", len(points))
    return _head(2, order, dimensions) + count + _numbers(points, order)


def polygon(*rings: Sequence[Point], order: str = "<", dimensions: str = "XY") -> bytes:
    """A polygon of rings."""
    body = b"".join(struct.pack(f"{order}I", len(ring)) + _numbers(ring, order) for ring in rings)
    return _head(3, order, dimensions) + struct.pack(f"{order}I", len(rings)) + body


def collection(*parts: bytes, kind: int = 7, order: str = "<") -> bytes:
    """A collection of geometries, or a multipoint and so on by its kind."""
    return _head(kind, order, "XY") + struct.pack(f"{order}I", len(parts)) + b"".join(parts)
