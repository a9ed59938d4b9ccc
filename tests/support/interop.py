"""Who reads and writes what deltalog writes: asked of the engines themselves.

Each case is a table with one feature or one type, and the rows that it has. Each engine is asked
for the rows, and to append some: it is right, it refuses, or it is wrong. `make interop` writes the
answers to `src/deltalog/protocol/features/engines.json`, from which the documentation, `doctor` and
errors speak; tests ask again, each in the tier that has the engine.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from deltalog import DeltaTable, Field, Schema, enable_preview, write_deltalake
from deltalog.errors import DeltaError
from deltalog.protocol.features import FEATURES
from deltalog.protocol.features.registry import Kind
from deltalog.protocol.features.support import INVARIANTS_IN_USE, MAPPED_BY_VERSION
from deltalog.schema.variant.reader import decode
from deltalog.schema.variant.shredding import encode
from tests.support.reference import Spark, spark_process

ROOT: Final = Path(__file__).resolve().parents[2]
ANSWERS: Final = ROOT / "src" / "deltalog" / "protocol" / "features" / "engines.json"
DUCKDB: Final = ROOT / ".cache" / "tpc"

RIGHT, REFUSES, WRONG = "right", "refuses", "wrong"
Rows = list[dict[str, Any]]
Columns = Mapping[str, Any]
"""Values by column."""
Answers = dict[str, dict[str, str]]
"""Engine → case → what became of it."""

ID: Final = Field("id", "long")
ROWS: Final = {"id": [1, 2, 3], "v": ["a", "b", None]}
MORE: Final = {"id": [9], "v": ["z"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table, and what happens if engines write it.

    Args:
        make: writes it to a directory.
        rows: that it has.
        more: columns of a row to append.
        new: the row as it must be then; None if it is what was appended.
        bad: a row, or `DELETE`, that a writer must refuse.
        closed: what must be refused, `read` or `write`, of this table by its path.
    """

    make: Callable[[str], None]
    rows: Columns
    more: Columns | None = None
    new: Mapping[str, Any] | None = None
    bad: Columns | None = None
    closed: tuple[str, ...] = ()


# --- The tables


def _with(
    data: Any = ROWS, properties: Mapping[str, str] | None = None, **options: Any
) -> Callable[[str], None]:
    def make(place: str) -> None:
        rows = data if isinstance(data, pa.Table) else pa.table(data)
        configuration = {f"delta.{name}": text for name, text in (properties or {}).items()}
        write_deltalake(place, rows, configuration=configuration, **options)

    return make


def _declared(
    fields: Sequence[Field],
    data: Columns | pa.Table,
    properties: Mapping[str, str] | None = None,
    **options: Any,
) -> Callable[[str], None]:
    def make(place: str) -> None:
        configuration = {f"delta.{name}": text for name, text in (properties or {}).items()}
        DeltaTable.create(place, Schema(list(fields)), configuration=configuration, **options)
        write_deltalake(place, pa.table(data), mode="append")

    return make


def _vectors(place: str) -> None:
    _with(properties={"enableDeletionVectors": "true"})(place)
    DeltaTable(place).delete("id = 2")


def _checkpoint(place: str) -> None:
    """The rows of the first commit are in the checkpoint alone."""
    _with({"id": [1, 2], "v": ["a", "b"]}, {"checkpointPolicy": "v2"})(place)
    write_deltalake(place, pa.table({"id": [3], "v": pa.array([None], pa.string())}), mode="append")
    DeltaTable(place).create_checkpoint()
    Path(place, "_delta_log", f"{0:020}.json").unlink()


def _widened(place: str) -> None:
    fields = [Field("id", "long"), Field("v", "integer")]
    data = pa.table({"id": [1, 2], "v": pa.array([1, 2], pa.int32())})
    _declared(fields, data, {"enableTypeWidening": "true"})(place)
    DeltaTable(place).alter.set_column_type("v", "long")
    write_deltalake(place, pa.table({"id": [3], "v": [2**40]}), mode="append")


def _constrained(place: str) -> None:
    _with()(place)
    DeltaTable(place).alter.add_constraint({"positive": "id > 0"})


def _clustered(place: str) -> None:
    _with()(place)
    DeltaTable(place).alter.set_clustering_columns(["id"])


def _named(feature: str) -> Callable[[str], None]:
    """A table whose protocol names a feature that does nothing in it."""

    def make(place: str) -> None:
        _with()(place)
        commit = Path(place, "_delta_log", f"{0:020}.json")
        lines = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
        listed = [*FEATURES[feature].requires, feature]
        read = [name for name in listed if FEATURES[name].kind is Kind.READER_WRITER]
        for line in lines:
            if "protocol" in line:
                line["protocol"] = {
                    "minReaderVersion": 3 if read else 1,
                    "minWriterVersion": 7,
                    **({"readerFeatures": read} if read else {}),
                    "writerFeatures": listed,
                }
        text = "".join(json.dumps(line) + "\n" for line in lines)
        commit.write_text(text, "utf-8")
        commit.with_suffix(".crc").unlink(missing_ok=True)  # has the protocol, too

    return make


def _by_version(place: str) -> None:
    versions = {"minReaderVersion": "2", "minWriterVersion": "5"}
    _with(properties={"columnMapping.mode": "name", **versions})(place)


def _variants(*values: Any) -> Any:
    pairs = [encode(value) for value in values]
    parts = [pa.array([pair[at] for pair in pairs], pa.binary()) for at in (0, 1)]
    return pa.StructArray.from_arrays(parts, names=["metadata", "value"])


def _with_variants(place: str, *, shredded: bool = False) -> None:
    properties = {"delta.enableVariantShredding": "true"} if shredded else {}
    DeltaTable.create(place, Schema([ID, Field("v", "variant")]), configuration=properties)
    write_deltalake(place, pa.table({"id": [1, 2], "v": _variants({"a": 1}, "x")}), mode="append")


VARIANTS: Final = {"id": [1, 2], "v": [{"a": 1}, "x"]}


def _draft(feature: str, kind: str, values: Any) -> Callable[[str], None]:
    def make(place: str) -> None:
        enable_preview(feature)
        _declared([ID, Field("v", kind)], pa.table({"id": [1], "v": values}))(place)

    return make


_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
_MAPPED: Final = {"columnMapping.mode": "name"}
_BAD: Final = {"id": [-1], "v": ["bad"]}
_DELETE: Final[Columns] = {"DELETE": []}
_IDENTITY: Final = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    "delta.identity.allowExplicitInsert": False,
}
_NTZ: Final = dt.datetime(2024, 2, 29, 12, 30, 1, 500_000)  # noqa: DTZ001  # that is the type
_AT: Final = _NTZ.replace(tzinfo=dt.UTC)


_CLOSED: Final = {
    "catalogManaged": ("read", "write"),
    "adaptiveMetadata": ("read", "write"),
    "redirectReaderWriter-preview": ("read", "write"),
    "redirectWriterOnly-preview": ("write",),
    "coordinatedCommits-preview": ("write",),
}
"""Features of which a path tells too little: the newest commits or the rows are elsewhere."""


def _usual(make: Callable[[str], None], **options: Any) -> Case:
    return Case(make=make, rows=ROWS, more=MORE, **options)


def _property(**properties: str) -> Case:
    return _usual(_with(properties={k.replace("__", "."): v for k, v in properties.items()}))


def _features() -> dict[str, Case]:
    field_v = Field("v", "string")
    rule = '{"expression": {"expression": "id > 0"}}'
    doubled = Field("v", "long", metadata={"delta.generationExpression": "id * 2"})
    defaulted = Field("v", "string", metadata={"CURRENT_DEFAULT": "'d'"})
    numbered = Field("id", "long", metadata=_IDENTITY)
    usual = {
        "none": _usual(_with()),
        "appendOnly": _usual(_with(properties={"appendOnly": "true"}), bad=_DELETE),
        INVARIANTS_IN_USE: _usual(
            _declared([Field("id", "long", metadata={"delta.invariants": rule}), field_v], ROWS),
            bad=_BAD,
        ),
        "checkConstraints": _usual(_constrained, bad=_BAD),
        "changeDataFeed": _property(enableChangeDataFeed="true"),
        "generatedColumns": Case(
            make=_declared([ID, doubled], {"id": [1, 2]}),
            rows={"id": [1, 2], "v": [2, 4]},
            more={"id": [9]},
            new={"id": 9, "v": 18},
            bad={"id": [5], "v": [5]},
        ),
        "columnMapping": _usual(_with(properties=_MAPPED)),
        "columnMapping by id": _usual(_with(properties={"columnMapping.mode": "id"})),
        MAPPED_BY_VERSION: _usual(_by_version),
        "identityColumns": Case(
            make=_declared([numbered, field_v], {"v": ["a", "b"]}),
            rows={"id": [1, 2], "v": ["a", "b"]},
            more={"v": ["z"]},
            new={"id": 3, "v": "z"},
            bad={"id": [1], "v": ["z"]},
        ),
        "deletionVectors": Case(make=_vectors, rows={"id": [1, 3], "v": ["a", None]}, more=MORE),
        "timestampNtz": Case(
            make=_with({"id": [1], "v": pa.array([_NTZ], pa.timestamp("us"))}),
            rows={"id": [1], "v": [_NTZ]},
            more={"id": [9], "v": [_NTZ]},
        ),
        "v2Checkpoint": _usual(_checkpoint),
        "typeWidening": Case(
            make=_widened,
            rows={"id": [1, 2, 3], "v": [1, 2, 2**40]},
            more={"id": [9], "v": [2**41]},
        ),
        "variantType": Case(make=_with_variants, rows=VARIANTS),
        "variantShredding": Case(
            make=lambda place: _with_variants(place, shredded=True), rows=VARIANTS
        ),
        "geospatial": Case(
            make=_draft("geospatial", "geometry(4326)", pa.array([_POINT])),
            rows={"id": [1], "v": [_POINT]},
        ),
        "timestampNanos": Case(
            make=_draft(
                "timestampNanos", "timestamp_nanos", pa.array([1], pa.timestamp("ns", "UTC"))
            ),
            rows={"id": [1], "v": ["1970-01-01T00:00:00.000000001"]},
        ),
        "intervalTypes": Case(
            make=_draft("intervalTypes", "interval year to month", pa.array([14], pa.int32())),
            rows={"id": [1], "v": [14]},
        ),
        "rowTracking": _property(enableRowTracking="true"),
        "inCommitTimestamp": _property(enableInCommitTimestamps="true"),
        "clustering": _usual(_clustered),
        "allowColumnDefaults": Case(
            make=_declared([ID, defaulted], {"id": [1]}),
            rows={"id": [1], "v": ["d"]},
            more={"id": [9]},
            new={"id": 9, "v": "d"},
        ),
        "icebergCompatV1": _property(enableIcebergCompatV1="true", columnMapping__mode="name"),
        "icebergCompatV2": _property(enableIcebergCompatV2="true", columnMapping__mode="name"),
        "icebergCompatV3": _property(enableIcebergCompatV3="true", columnMapping__mode="name"),
        "materializePartitionColumns": Case(
            make=_with(
                properties={"enableMaterializePartitionColumnsFeature": "true"},
                partition_by=["v"],
            ),
            rows=ROWS,
            more=MORE,
        ),
        "collations": Case(
            make=_declared([ID, Field("v", "string").collate("UTF8_LCASE")], ROWS),
            rows=ROWS,
            more=MORE,
        ),
    }
    others = {
        name: _usual(_named(name), closed=_CLOSED.get(name, ()))
        for name in FEATURES
        if name not in usual
    }
    return usual | others


def _decimals(width: int, scale: int) -> Any:
    digits = "".join(str(n % 9 + 1) for n in range(width))
    number = Decimal(digits).scaleb(-scale) if width <= 28 else Decimal(f"{digits}E-{scale}")
    return pa.array([number, -number, None], pa.decimal128(width, scale))


TYPES: Final[Mapping[str, Any]] = {
    "boolean": pa.array([True, False, None]),
    "byte": pa.array([127, -128, None], pa.int8()),
    "short": pa.array([32767, -32768, None], pa.int16()),
    "integer": pa.array([2**31 - 1, -(2**31), None], pa.int32()),
    "long": pa.array([2**63 - 1, -(2**63), 0], pa.int64()),
    "float": pa.array([1.5, math.inf, None], pa.float32()),
    "double": pa.array([0.1, math.nan, None]),
    "decimal(9,2)": _decimals(9, 2),
    "decimal(18,4)": _decimals(18, 4),
    "decimal(38,10)": _decimals(38, 10),
    "string": pa.array(["it's", "größer", None]),
    "binary": pa.array([b"\x00\xff", b"", None]),
    "date": pa.array([dt.date(2024, 2, 29), dt.date(1969, 12, 31), None]),
    "timestamp": pa.array([_AT, dt.datetime(1969, 7, 20, 20, 17, tzinfo=dt.UTC), None],
                          pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([_NTZ, dt.datetime(1969, 7, 20), None],  # noqa: DTZ001
                              pa.timestamp("us")),
    "array": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None]),
    "array of structs": pa.array([[{"a": 1, "b": [b"x"]}, None], [], None]),
    "map of arrays": pa.array([[("a", [1, None])], [], None],
                              pa.map_(pa.string(), pa.list_(pa.int32()))),
    "struct of decimals": pa.array([{"m": Decimal("1.50"), "at": _AT}, None, None],
                                   pa.struct([("m", pa.decimal128(20, 2)),
                                              ("at", pa.timestamp("us", "UTC"))])),
}  # fmt: skip
PARTITIONS: Final = ("boolean", "integer", "decimal(9,2)", "string", "date", "timestamp")
SPACED: Final = "names such as `a b`"


def _types() -> dict[str, Case]:
    found = {}
    for name, values in TYPES.items():
        data = pa.table({"id": [1, 2, 3], "v": values})
        rows = {"id": [1, 2, 3], "v": values.to_pylist()}
        found[name] = Case(make=_with(data), rows=rows)
        if name in PARTITIONS:
            made = _with(data, partition_by=["v"])
            found[f"partitions of {name}"] = Case(make=made, rows=rows)
    spaced = {"id": [1, 2], "a b": ["x", None]}
    found[SPACED] = Case(make=_with(spaced, _MAPPED), rows=spaced)
    return found


CASES: Final[Mapping[str, Mapping[str, Case]]] = {"features": _features(), "types": _types()}


def all_cases() -> dict[str, Case]:
    """Each case by its name."""
    return {name: case for cases in CASES.values() for name, case in cases.items()}


def make_tables(directory: Path) -> dict[str, Path]:
    """Make the table of each case below a directory; each name, and where its table is."""
    places = {}
    for number, (name, case) in enumerate(all_cases().items()):
        places[name] = directory / f"t{number:03}"
        case.make(str(places[name]))
    return places


# --- Comparing rows


def plain(value: Any) -> Any:  # noqa: PLR0911, C901  # one line for each kind of value
    """A value as all engines could mean it: of one text for equal numbers, moments and bytes."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if value is None or str(value) in {"NaT", "<NA>"}:
        return None
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        number = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
        return f"{number:f}".rstrip("0").rstrip(".") if "." in f"{number:f}" else f"{number:f}"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        at = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return at.isoformat()
    if isinstance(value, dt.date):
        return f"{value.isoformat()}T00:00:00"
    if isinstance(value, dict) and set(value) == {"metadata", "value"}:
        return plain(decode(bytes(value["metadata"]), bytes(value["value"])))
    if isinstance(value, dict):
        return [[plain(key), plain(one)] for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value)


def bag(rows: Rows) -> list[str]:
    """Rows in no order."""
    return sorted(json.dumps([[name, plain(value)] for name, value in row.items()]) for row in rows)


def expected_of(case: Case) -> Rows:
    """The rows of a case, one by one."""
    names = list(case.rows)
    return [
        dict(zip(names, values, strict=True)) for values in zip(*case.rows.values(), strict=True)
    ]


def judge(case: Case, ask: Callable[[], Rows], *, has_null: bool = True) -> str:
    """What became of a question for the rows; pandas has one value for NULL and NaN."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, wanted = bag(ask()), bag(expected_of(case))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a panic of Rust is a refusal, too
        return REFUSES
    if "read" in case.closed:
        return WRONG
    if not has_null:
        found, wanted = ([one.replace('"NaN"', "null") for one in rows] for rows in (found, wanted))
    return RIGHT if sorted(found) == sorted(wanted) else WRONG


# --- Engines that are in this process


def _by_query_builder(place: Path) -> Rows:
    import deltalake

    table = deltalake.DeltaTable(place)
    found = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return pa.table(found).to_pylist()


def _by_scan(place: Path) -> Rows:
    import deltalake

    return pa.table(deltalake.DeltaTable(place).scan()).to_pylist()


def _by_arrow(place: Path) -> Rows:
    import deltalake

    table = deltalake.DeltaTable(place)
    rows = pa.table(table.to_pyarrow_table())
    assert bag(rows.to_pylist()) == bag(table.to_pyarrow_dataset().to_table().to_pylist())
    frame = table.to_pandas()
    assert [len(frame), frame["id"].isna().sum()] == [len(rows), rows["id"].null_count]
    return rows.to_pylist()


def _by_polars(place: Path) -> Rows:
    import polars as pl

    return pl.scan_delta(str(place)).collect().to_arrow().to_pylist()


LOCAL: Final[Mapping[str, Callable[[Path], Rows]]] = {
    "deltalake 1.6: QueryBuilder": _by_query_builder,
    "deltalake 1.6: scan": _by_scan,
    "deltalake 1.6: to_pandas, to_pyarrow_*": _by_arrow,
    "Polars 2.1": _by_polars,
}


def local_answers(places: Mapping[str, Path]) -> Answers:
    """What deltalake and Polars read."""
    cases = all_cases()
    return {
        engine: {name: judge(cases[name], partial(ask, place)) for name, place in places.items()}
        for engine, ask in LOCAL.items()
    }


SHARING: Final = "delta-sharing 1.4"


def sharing_answers(places: Mapping[str, Path], directory: Path) -> Answers:
    """What the official client reads of a server of deltalog."""
    import delta_sharing

    from deltalog.sharing.server import app
    from tests.support.asgi import serving
    from tests.support.sharing import config_of, write_profile

    named = {name: f"s.d.{place.name}" for name, place in places.items()}
    config = config_of({named[name]: {"location": str(at)} for name, at in places.items()})
    cases = all_cases()
    with serving(app(config)) as url:
        profile = write_profile(directory / "profile.share", f"{url}/delta-sharing/")

        def ask(name: str) -> Rows:
            frame = delta_sharing.load_as_pandas(f"{profile}#{named[name]}")
            rows: Rows = frame.to_dict("records")
            return rows

        found = {name: judge(cases[name], partial(ask, name), has_null=False) for name in places}
    return {SHARING: found}


# --- DuckDB, in an environment of its own


DELTA_SCAN: Final = "DuckDB 1.5"


def duckdb_answers(places: Mapping[str, Path]) -> Answers:
    """What DuckDB's extension reads."""
    texts = ("variantType", "variantShredding")
    questions = [
        f"SELECT {'id, v::JSON::VARCHAR AS v' if name in texts else '*'} FROM delta_scan('{at}')"  # noqa: S608
        for name, at in places.items()
    ]
    replies = ask_duckdb(questions)
    cases = all_cases()
    return {
        DELTA_SCAN: {
            name: judge(_texts(cases[name]) if name in texts else cases[name], reply)
            for name, reply in zip(places, replies, strict=True)
        }
    }


def ask_duckdb(statements: Sequence[str]) -> list[Callable[[], Rows]]:
    """Answers of DuckDB, each of which raises if the statement failed."""
    script = Path(__file__).with_name("interop_duckdb.py")
    done = subprocess.run(
        [str(DUCKDB / "bin" / "python"), str(script)],
        input=repr(list(statements)).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    import pickle

    def give(reply: Any) -> Rows:
        if isinstance(reply, str):
            raise RuntimeError(reply)  # noqa: TRY004  # it is DuckDB's error
        rows: Rows = reply
        return rows

    return [partial(give, reply) for reply in pickle.loads(done.stdout)]


def _texts(case: Case) -> Case:
    """The case with variants as JSON."""
    texts = [json.dumps(value, separators=(",", ":")) for value in case.rows["v"]]
    return Case(make=case.make, rows={**case.rows, "v": texts})


# --- Delta Spark


SPARK: Final = "Delta Spark 4.4"


def spark_answers(places: Mapping[str, Path], spark: Spark) -> Answers:
    """What Delta Spark reads."""

    def ask(place: Path, columns: str) -> Rows:
        return spark.read(place, columns=columns).to_pylist()

    cases = all_cases()
    found = {}
    for name, place in places.items():
        is_variant = name.startswith("variant")
        columns = "id, to_json(v) AS v" if is_variant else "*"
        case = _texts(cases[name]) if is_variant else cases[name]
        found[name] = judge(case, partial(ask, place, columns))
    return {SPARK: found}


# --- Writing


Append = Callable[[Path, Columns], None]


def judge_writing(case: Case, place: Path, append: Append) -> str:
    """What became of a row that an engine appends, and of one that it must not."""
    sick = _sick(place)
    try:
        append(place, case.more or {})
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001
        return REFUSES
    new = dict(case.new) if case.new else {name: one[0] for name, one in (case.more or {}).items()}
    wanted = bag([*expected_of(case), new])
    try:
        found = bag(DeltaTable(place).to_pyarrow_table().to_pylist())
    except DeltaError:
        return WRONG
    if "write" in case.closed or found != wanted or _sick(place) - sick:
        return WRONG
    if case.bad is None:
        return RIGHT
    try:
        append(place, case.bad)
    except BaseException:  # noqa: BLE001
        return RIGHT
    return WRONG


def _sick(place: Path) -> set[str]:
    return {one.check for one in DeltaTable(place).doctor().findings if one.severity != "info"}


def _rows_for(place: Path, rows: Columns) -> pa.Table:
    schema = pa.schema(DeltaTable(place).schema().to_arrow())
    return pa.table({name: pa.array(one, schema.field(name).type) for name, one in rows.items()})


def _append_by_deltalake(place: Path, rows: Columns) -> None:
    import deltalake

    if "DELETE" in rows:
        deltalake.DeltaTable(place).delete("id = 1")
    else:
        deltalake.write_deltalake(str(place), _rows_for(place, rows), mode="append")


def _append_by_polars(place: Path, rows: Columns) -> None:
    import polars as pl

    if "DELETE" in rows:
        raise NotImplementedError
    frame = pl.from_arrow(_rows_for(place, rows))
    assert isinstance(frame, pl.DataFrame)
    frame.write_delta(str(place), mode="append")


def _literal(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP_NTZ'{value}'"
    return repr(value)


def _values(rows: Columns) -> str:
    values = ", ".join(_literal(one[0]) for one in rows.values())
    return f"({', '.join(rows)}) VALUES ({values})"


def _append_by_duckdb(place: Path, rows: Columns) -> None:
    if "DELETE" in rows:
        raise NotImplementedError
    values = _values(rows).replace("TIMESTAMP_NTZ", "TIMESTAMP ")
    statements = [f"ATTACH '{place}' AS x (TYPE delta)", f"INSERT INTO x {values}", "DETACH x"]
    for reply in ask_duckdb(statements):
        reply()


WRITERS: Final[Mapping[str, Append]] = {
    "deltalake 1.6": _append_by_deltalake,
    "Polars 2.1": _append_by_polars,
}


def writing_answers(
    directory: Path, engines: Mapping[str, Append], names: Sequence[str] | None = None
) -> Answers:
    """What engines write, of some cases or all; each table anew for each of them."""
    found: Answers = {}
    for number, (engine, append) in enumerate(engines.items()):
        found[engine] = {}
        for turn, (name, case) in enumerate(CASES["features"].items()):
            if case.more is not None and (names is None or name in names):
                place = directory / f"w{number}" / f"t{turn:03}"
                case.make(str(place))
                found[engine][name] = judge_writing(case, place, append)
    return found


def duckdb_writing(directory: Path) -> Answers:
    """What DuckDB writes."""
    return writing_answers(directory / "duckdb", {DELTA_SCAN: _append_by_duckdb})


def spark_writing(directory: Path, spark: Spark, names: Sequence[str] | None = None) -> Answers:
    """What Delta Spark writes."""

    def append(place: Path, rows: Columns) -> None:
        if "DELETE" in rows:
            spark.tell(place, "DELETE FROM T WHERE id = 1")
        else:
            spark.tell(place, f"INSERT INTO T {_values(rows)}")

    return writing_answers(directory / "spark", {SPARK: append}, names)


# --- The file


def kept() -> dict[str, Any]:
    """The answers in the repository: kind of question → engine → case → what became of it."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text("utf-8"))
    return found


def differing(kind: str, answers: Answers) -> list[str]:
    """Where answers are not those of the repository."""
    there = kept()[kind]
    return [
        f"{engine}, {name}: {found}, not {there.get(engine, {}).get(name)}"
        for engine, cases in answers.items()
        for name, found in cases.items()
        if there.get(engine, {}).get(name) != found
    ]


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="interop-") as scratch:
        yield Path(scratch)


def main() -> None:
    """Ask all engines, or some of them, and keep the answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("engines", nargs="*", default=["local", "sharing", "duckdb", "spark"])
    wanted = parser.parse_args().engines
    answers = kept() if ANSWERS.exists() else {"read": {}, "write": {}}
    with _scratch() as scratch:
        places = make_tables(scratch / "tables")
        if "local" in wanted:
            answers["read"] |= local_answers(places)
            answers["write"] |= writing_answers(scratch / "local", WRITERS)
        if "sharing" in wanted:
            answers["read"] |= sharing_answers(places, scratch)
        if "duckdb" in wanted:
            answers["read"] |= duckdb_answers(places)
            answers["write"] |= duckdb_writing(scratch)
        if "spark" in wanted:
            with spark_process() as spark:
                answers["read"] |= spark_answers(places, spark)
                answers["write"] |= spark_writing(scratch, spark)
    order = [SPARK, *LOCAL, "deltalake 1.6", DELTA_SCAN, SHARING]
    for kind, found in answers.items():
        answers[kind] = dict(sorted(found.items(), key=lambda one: order.index(one[0])))
    ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", "utf-8")
    sys.stdout.write(f"{ANSWERS.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
