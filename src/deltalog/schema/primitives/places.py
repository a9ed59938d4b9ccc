"""Geometries and geographies: their names, values, bounding boxes and Arrow metadata.

Contains the two spellings of a reference system: the protocol's (`OGC:CRS84`) and SQL's numbers
(4326). Values are ISO WKB. Bounding boxes are computed from the coordinates of points. A geography
has no box, because the shortest line between two of its points may leave the box of the points.

Protocol: RFC Geospatial types
"""

from __future__ import annotations

import re
import struct
from array import array
from sys import byteorder
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.json import dumps, loads
from deltalog._util.kernels import Array, arrow, compute, pc
from deltalog.errors import MalformedLogError
from deltalog.schema.primitives.row import ValueCodec
from deltalog.schema.primitives.strings import BYTES

if TYPE_CHECKING:
    from deltalog.schema.primitives.row import Box


WKB: Final = "geoarrow.wkb"
ALGORITHMS: Final = ("spherical", "vincenty", "thomas", "andoyer", "karney")
_CRS84: Final = "OGC:CRS84"
# Spark's name for a mix of reference systems. Such data cannot be stored, because a column type
# cannot have this system.
_ANY_SYSTEM: Final = "SRID:ANY"
_NAME: Final = re.compile(r"(geometry|geography)(?:\(\s*([^(),\s]+)\s*(?:,\s*(\w+)\s*)?\))?")
# Number of a reference system in SQL → its name. As in Spark, any other number is an EPSG number.
_SYSTEMS: Final = {0: "SRID:0", 4326: _CRS84}
_NUMBERS: Final = {name.lower(): number for number, name in _SYSTEMS.items()}

_HEADER: Final = 5  # the number of bytes of the byte order and the kind
_POINT: Final = 21
_LITTLE_POINT: Final = b"\x01\x01\x00\x00\x00"
_DIMENSIONS: Final = (2, 3, 3, 4)  # the number of coordinates in XY, XYZ, XYM and XYZM
_POINT_KIND, _LINE, _POLYGON = 1, 2, 3
_COLLECTIONS: Final = frozenset({4, 5, 6, 7})  # the kinds from multipoint to geometry collection
_PARTS: Final = frozenset({_POINT_KIND, _LINE, _POLYGON}) | _COLLECTIONS
_MAX_DEPTH: Final = 32


def canonical_geometry(name: str) -> str | None:
    """Return `geometry(<crs>)`, or None; SQL's numbers are accepted, the default is `OGC:CRS84`."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] != "geometry" or match[3]:
        return None
    return f"geometry({_system(match[2])})"


def canonical_geography(name: str) -> str | None:
    """Return `geography(<crs>, <algorithm>)`, or None; the default algorithm is `spherical`.

    The case of the algorithm is preserved: Delta Spark writes upper case, the protocol uses lower
    case.
    """
    match = _NAME.fullmatch(name)
    if match is None or match[1] != "geography":
        return None
    algorithm = match[3] or ALGORITHMS[0]
    return f"geography({_system(match[2])}, {algorithm})" if _is_known(algorithm) else None


def _is_known(algorithm: str) -> bool:
    return algorithm.lower() in ALGORITHMS


def _system(text: str | None) -> str:
    if text is None:
        return _CRS84
    if not text.isdecimal():
        return text
    return _SYSTEMS.get(int(text), f"EPSG:{int(text)}")


def name_in_sql(name: str) -> str:
    """Return `GEOMETRY(4326)` for `geometry(OGC:CRS84)`; a system without a number is unchanged."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name.upper()
    system = match[2] or _CRS84
    authority, _, code = system.partition(":")
    number = _NUMBERS.get(system.lower())
    if number is None and authority.upper() == "EPSG" and code.isdecimal():
        number = int(code)
    return f"{match[1].upper()}({system if number is None else number})"


def wkb_metadata(system: str, algorithm: str | None = None) -> str:
    """Return GeoArrow's metadata: the reference system and, for a geography, the edges."""
    document: dict[str, str] = {"crs": system}
    if re.fullmatch(r"\w+:\w+", system) and not system.lower().startswith(("srid:", "projjson:")):
        document["crs_type"] = "authority_code"
    if algorithm is not None:
        document["edges"] = algorithm.lower()
    return dumps(document).decode()


def geometry_of(metadata: str) -> str | None:
    """Return the geometry type that GeoArrow's metadata describes; None for a geography."""
    document = _document_of(metadata)
    if document is None or document.get("edges") not in {None, "planar"}:
        return None
    return f"geometry({_system_of(document)})"


def geography_of(metadata: str) -> str | None:
    """Return the geography type that GeoArrow's metadata describes; None for a geometry."""
    document = _document_of(metadata)
    edges = None if document is None else document.get("edges")
    if document is None or not isinstance(edges, str) or not _is_known(edges):
        return None
    return f"geography({_system_of(document)}, {edges})"


def _document_of(metadata: str) -> dict[str, Any] | None:
    try:
        document = loads(metadata) if metadata else {}
    except MalformedLogError:
        return None
    return document if isinstance(document, dict) else None


def _system_of(document: dict[str, Any]) -> str:
    """Return the protocol's name of the reference system; `SRID:ANY` if it has no name."""
    found = document.get("crs")
    if isinstance(found, dict):  # PROJJSON, as written by geopandas
        named = found.get("id")
        if isinstance(named, dict) and "authority" in named and "code" in named:
            found = f"{named['authority']}:{named['code']}"
    if found is None:
        return _SYSTEMS[0]
    is_name = isinstance(found, str) and _NAME.fullmatch(f"geometry({found})") is not None
    return str(found) if is_name else _ANY_SYSTEM


class WkbExtensionType(pa.ExtensionType):
    """Arrow's extension type `geoarrow.wkb`, which Parquet files store as GEOMETRY or GEOGRAPHY.

    Used only to write files. Elsewhere, rows are plain binaries, and the field states the
    extension.

    Args:
        metadata: the result of `wkb_metadata`.
    """

    def __init__(self, metadata: str) -> None:
        self._metadata = metadata
        super().__init__(pa.binary(), WKB)

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the metadata."""
        return self._metadata.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        """Return the type for the metadata in a file or message."""
        del storage_type
        return cls(serialized.decode())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the metadata."""
        return type(self), (self._metadata,)

    def __eq__(self, other: object) -> bool:
        """Compare the metadata as well, because pyarrow does not."""
        return isinstance(other, WkbExtensionType) and other._metadata == self._metadata

    def __hash__(self) -> int:
        """Return the same hash for equal types."""
        return hash((self.extension_name, self._metadata))


def stored_wkb(system: str, algorithm: str | None = None) -> pa.DataType:
    """Return the Arrow type for writing files."""
    return WkbExtensionType(wkb_metadata(system, algorithm))


def check_wkb(values: Array) -> None:
    """Raise for values that do not begin with a valid ISO WKB header.

    Raises:
        ValueError: a header is invalid; the message shows the value's first bytes or kind.

    Cost: one pass; only distinct headers are checked in Python.
    """
    for head in pc.unique(pc.binary_slice(values, 0, _HEADER)).to_pylist():
        if head is not None:
            _kind_of(head, 0)


def _kind_of(data: bytes, at: int) -> tuple[str, int, int]:
    """Return the byte order (as in `struct`), the kind of geometry, and the dimensions."""
    order = {0: ">", 1: "<"}.get(data[at] if len(data) >= at + _HEADER else -1)
    if order is None:
        raise ValueError(f"expected ISO WKB, found bytes that begin {data[at : at + 5].hex()!r}")
    (code,) = struct.unpack_from(f"{order}I", data, at + 1)
    thousands, kind = divmod(code, 1000)
    if thousands >= len(_DIMENSIONS) or kind not in _PARTS:
        what = "EWKB, the form of PostGIS" if code >> 29 else f"the kind {code}"
        raise ValueError(
            f"expected ISO WKB of points, lines, polygons or collections, found {what}"
        )
    return order, kind, _DIMENSIONS[thousands]


def box(values: Array) -> Box | None:
    """Return the minimum and maximum X and Y of geometries; None if there are no points.

    Args:
        values: geometries as ISO WKB.

    Returns:
        The box; if a coordinate is infinite, so is the box.

    Raises:
        ValueError: a value is malformed.

    Cost: some kernels if all values are two-dimensional points in little-endian order, otherwise
        some microseconds per value.
    """
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    values = values.drop_null()
    if not len(values):
        return None
    found = _points(values)
    xs, ys = _scanned(values) if found is None else found
    ends = [pc.min_max(_numbers(axis)) for axis in (xs, ys)]
    low, high = (tuple(end[side].as_py() for end in ends) for side in ("min", "max"))
    return None if None in low else (low, high)


def _numbers(axis: Array) -> Array:
    """Return the numbers without NaN, which is the coordinate of empty points."""
    return axis.filter(compute.invert(compute.is_nan(axis)))


def _points(values: Array) -> tuple[Array, Array] | None:
    """Return X and Y of each value if all values are points, otherwise None."""
    if byteorder != "little":
        return None
    lengths: Any = compute.min_max(pc.binary_length(values))
    if lengths["min"].as_py() != _POINT or lengths["max"].as_py() != _POINT:
        return None
    heads = pc.unique(pc.binary_slice(values, 0, _HEADER)).to_pylist()
    if heads != [_LITTLE_POINT]:
        return None
    return _doubles(values, 5), _doubles(values, 13)


def _doubles(values: Array, start: int) -> Array:
    """Read eight bytes of each value as a double."""
    parts = pc.binary_slice(values, start, start + 8)
    chunks = parts.chunks if isinstance(parts, pa.ChunkedArray) else [parts]
    arrays = [
        pa.Array.from_buffers(pa.float64(), len(part), [None, _compact(part)]) for part in chunks
    ]
    return arrow.chunked_array(arrays, pa.float64())


def _compact(part: Array) -> pa.Buffer:
    """Return the data buffer of a binary array, beginning with the array's first value."""
    _, offsets, data = part.buffers()
    first = pa.Array.from_buffers(pa.int32(), part.offset + 1, [None, offsets])[part.offset].as_py()
    return data.slice(first)  # type: ignore[no-any-return]  # `data` is a buffer


def _scanned(values: Array) -> tuple[Array, Array]:
    """Return the X and Y values that determine the box; values are read one by one."""
    xs, ys = array("d"), array("d")
    for data in values.to_pylist():
        try:
            end = _scan(data, 0, xs, ys, depth=0)
        except struct.error as error:
            raise ValueError(f"expected ISO WKB, found a truncated value: {error}") from error
        if end != len(data):
            raise ValueError(f"expected ISO WKB of {end} bytes, found {len(data)}")
    return pa.array(xs, pa.float64()), pa.array(ys, pa.float64())


def _scan(data: bytes, at: int, xs: array[float], ys: array[float], *, depth: int) -> int:
    """Add the coordinates of one geometry to `xs` and `ys`; return the position after it."""
    order, kind, dimensions = _kind_of(data, at)
    at += _HEADER
    if kind == _POINT_KIND:
        return _extend(data, at, 1, dimensions, order, xs, ys)
    (count,) = struct.unpack_from(f"{order}I", data, at)
    at += 4
    if kind == _LINE:
        return _extend(data, at, count, dimensions, order, xs, ys)
    if kind == _POLYGON:
        for _ in range(count):
            (points,) = struct.unpack_from(f"{order}I", data, at)
            at = _extend(data, at + 4, points, dimensions, order, xs, ys)
        return at
    if depth == _MAX_DEPTH:
        raise ValueError(f"expected collections of at most {_MAX_DEPTH} levels")
    for _ in range(count):
        at = _scan(data, at, xs, ys, depth=depth + 1)
    return at


def _extend(  # noqa: PLR0917  # positional for speed, because it is called for each ring
    data: bytes, at: int, count: int, dimensions: int, order: str, xs: array[float],
    ys: array[float],
) -> int:  # fmt: skip
    end = at + 8 * dimensions * count
    if end > len(data):
        raise ValueError(f"expected ISO WKB of at least {end} bytes, found {len(data)}")
    if count:
        numbers = array("d")
        numbers.frombytes(data[at:end])
        if (order == "<") != (byteorder == "little"):
            numbers.byteswap()
        for axis, into in ((numbers[0::dimensions], xs), (numbers[1::dimensions], ys)):
            known = [number for number in axis if number == number]  # noqa: PLR0124  # excludes NaN
            into.extend((min(known), max(known)) if known else ())
    return end


def corner(point: tuple[float, ...]) -> str:
    """Format a corner of a box as in statistics: `POINT(x y)` in WKT."""
    return f"POINT({' '.join(map(repr, point))})"


GEOMETRY: Final = ValueCodec(conform=BYTES.conform, box=box)
GEOGRAPHY: Final = ValueCodec(conform=BYTES.conform)
