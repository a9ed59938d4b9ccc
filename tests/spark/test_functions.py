"""Functions of columns, beside Spark's compiled code, on generated rows.

The recorded answers of `tests/unit/expressions` are those of constants, which Spark computes
without compiling; a few functions differ between the two, and tables have columns.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.schema import from_arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    Make = Callable[[random.Random], Any]

ROWS: Final = 150
AT_ONCE: Final = 60
EXPRESSIONS: Final = Path(__file__).with_name("functions.sql").read_text("utf-8").splitlines()
_EDGES: Final = (0.0, -0.0, 1.0, -1.5, math.nan, math.inf, -math.inf, 1e-300, 1e300)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _small(chooser: random.Random) -> int:
    return chooser.randint(-5, 12)


def _integer(chooser: random.Random) -> int:
    return chooser.choice([0, 1, -1, 7, 2**31 - 1, -(2**31), chooser.randint(-(2**31), 2**31 - 1)])


def _long(chooser: random.Random) -> int:
    return chooser.choice([2**63 - 1, -(2**63), chooser.randint(-(2**63), 2**63 - 1), 5, -1, 0])


def _double(chooser: random.Random) -> float:
    return chooser.choice([*_EDGES, chooser.uniform(-1, 1), chooser.uniform(-1e6, 1e6)])


def _float(chooser: random.Random) -> float:
    value = chooser.choice([*_EDGES[:6], chooser.uniform(-1000, 1000)])
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def _text(most: int) -> Make:
    letters = "abcABC ,.:01_-äß€😀"
    return lambda chooser: "".join(chooser.choices(letters, k=chooser.randint(0, most)))


def _bytes(chooser: random.Random) -> bytes:
    return chooser.randbytes(chooser.choice([0, 1, 3, 4, 7, 31, 32, 33, 70]))


def _date(chooser: random.Random) -> dt.date:
    edges = [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(9999, 12, 31)]
    return chooser.choice(
        [*edges, dt.date(2000, 1, 1) + dt.timedelta(chooser.randint(-9999, 9999))]
    )


def _moment(chooser: random.Random) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=chooser.randint(-(10**16), 10**16))


def _decimal(digits: int, scale: int) -> Make:
    most = 10**digits - 1
    return lambda chooser: Decimal(chooser.choice([0, 1, chooser.randint(-most, most)])).scaleb(
        -scale
    )


def _list(make: Make, nulls: float = 0.15) -> Make:
    def values(chooser: random.Random) -> list[Any]:
        count = chooser.choice([0, 1, 2, 3, 5, 8])
        return [None if chooser.random() < nulls else make(chooser) for _ in range(count)]

    return values


def _map(chooser: random.Random) -> list[tuple[str, int | None]]:
    keys = chooser.sample("abcdef", chooser.randint(0, 3))
    return [(key, chooser.choice([None, _small(chooser)])) for key in keys]


_POINT: Final = pa.struct([("x", pa.int32()), ("y", pa.float64())])
_COLUMNS: Final[dict[str, tuple[Make, Any]]] = {
    "i": (_integer, pa.int32()),
    "k": (_small, pa.int32()),
    "l": (_long, pa.int64()),
    "d": (_double, pa.float64()),
    "d2": (_double, pa.float64()),
    "f": (_float, pa.float32()),
    "s": (_text(60), pa.string()),
    "t": (_text(2), pa.string()),
    "b": (_bytes, pa.binary()),
    "dt": (_date, pa.date32()),
    "ts": (_moment, pa.timestamp("us", "UTC")),
    "de": (_decimal(10, 2), pa.decimal128(10, 2)),
    "db": (_decimal(37, 5), pa.decimal128(38, 5)),
    "bo": (lambda chooser: chooser.random() < 0.5, pa.bool_()),
    "ai": (_list(_small), pa.list_(pa.int32())),
    "aj": (_list(_small), pa.list_(pa.int32())),
    "al": (_list(_long), pa.list_(pa.int64())),
    "ad": (_list(_double), pa.list_(pa.float64())),
    "ae": (_list(_double, 0), pa.list_(pa.float64())),
    "af": (_list(_float), pa.list_(pa.float32())),
    "as": (_list(_text(2)), pa.list_(pa.string())),
    "at": (_list(_text(1)), pa.list_(pa.string())),
    "aa": (_list(_list(_small)), pa.list_(pa.list_(pa.int32()))),
    "ast": (_list(lambda one: {"x": _small(one), "y": _double(one)}), pa.list_(_POINT)),
    "adt": (_list(_date), pa.list_(pa.date32())),
    "ade": (_list(_decimal(10, 2)), pa.list_(pa.decimal128(10, 2))),
    "ab": (_list(_bytes), pa.list_(pa.binary())),
    "m": (_map, pa.map_(pa.string(), pa.int32())),
    "n": (_map, pa.map_(pa.string(), pa.int32())),
    "st": (lambda one: {"x": _small(one), "y": _double(one)}, _POINT),
}


def _table(seed: int) -> pa.Table:
    chooser = random.Random(seed)
    return pa.table(
        {
            name: pa.array(
                [None if chooser.random() < 0.12 else make(chooser) for _ in range(ROWS)], kind
            )
            for name, (make, kind) in _COLUMNS.items()
        }
    )


def _plain(value: Any) -> Any:
    """A value that equals itself: NaN and both zeros as texts, the entries of maps in order."""
    match value:
        case float():
            return repr(value)
        case dt.datetime():
            return value.replace(tzinfo=None)
        case dict():
            return [_plain(part) for part in value.values()]
        case [tuple(), *_]:
            return sorted((repr(key), repr(_plain(item))) for key, item in value)
        case list():
            return [_plain(part) for part in value]
        case _:
            return value


@contextmanager
def compiled(spark: SparkSession) -> Iterator[None]:
    """Let Spark compile expressions, which the other tests spare it."""
    name = "spark.sql.codegen.factoryMode"
    before = str(spark.conf.get(name))
    spark.conf.set(name, "FALLBACK")
    try:
        yield
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize("first", range(0, len(EXPRESSIONS), AT_ONCE))
def test_columns_give_what_spark_gives(spark: SparkSession, first: int, tmp_path: Path) -> None:
    part = EXPRESSIONS[first : first + AT_ONCE]
    data = _table(seed=first)
    # From a file, and compiled, as at users: what Spark interprets has defects of its own.
    pq.write_table(data, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    named = [f"{sql} AS found{place}" for place, sql in enumerate(part)]
    with compiled(spark):
        theirs = frame.selectExpr(*named).toArrow()
    schema = from_arrow_schema(data.schema)
    for place, sql in enumerate(part):
        ours = evaluate(resolve(parse_sql(sql), schema), data).to_pylist()
        expected = theirs.column(place).to_pylist()
        assert list(map(_plain, ours)) == list(map(_plain, expected)), sql
