"""Tables that Iceberg's own library made, with row-level deletes and promoted columns.

The rows are what that library reads. The taken-over table is read by us and by Delta Spark.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types

from deltalog import DeltaTable, connect, convert_to_deltalake, write_deltalake
from deltalog.errors import InvalidInputError
from tests.support.iceberg_tables import Catalog, iceberg, in_order, path_of
from tests.support.reference import Spark, select
from tests.support.reference_scenarios import FULL

__all__ = ["iceberg"]

ID, K, N, S, REAL, X = range(1, 7)  # as Iceberg numbers them: parts after the columns
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": ID, "name": "id", "type": "long", "required": False},
        {"id": K, "name": "k", "type": "string", "required": False},
        {"id": N, "name": "n", "type": "int", "required": False},
        {
            "id": S,
            "name": "s",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [{"id": X, "name": "x", "type": "string", "required": False}],
            },
        },
        {"id": REAL, "name": "real", "type": "float", "required": False},
    ],
}
BY_K = [{"name": "k", "transform": "identity", "source-id": K, "field-id": 1000}]
Step = Sequence[Any]


def row(number: int, k: str | None = None) -> dict[str, Any]:
    """A row of SCHEMA; some values are NULL."""
    values: dict[int, Any] = {
        ID: number,
        K: k if k is not None else f"k{number % 2}",
        N: None if number % 5 == 0 else number % 7,
        S: None if number % 11 == 3 else {str(X): None if number % 3 == 0 else f"x{number % 4}"},
        REAL: number / 4,
    }
    return {str(name): value for name, value in values.items() if value is not None}


def rows(*numbers: int, k: str | None = None) -> list[dict[str, Any]]:
    return [row(number, k) for number in numbers]


def named(**values: Any) -> dict[str, Any]:
    """A row of an equality delete; what is left out is NULL."""
    numbers = {"id": ID, "k": K, "n": N, "x": X}
    return {str(numbers[name]): value for name, value in values.items()}


def in_s(x: str | None) -> dict[str, Any]:
    return {str(S): {} if x is None else {str(X): x}}


A_AND_B: list[Step] = [
    ["write", "a", rows(*range(10))],
    ["write", "b", rows(*range(10, 20))],
    ["commit", ["a"], []],
    ["commit", ["b"], []],
]
TWO_PARTITIONS: list[Step] = [
    ["write", "even", rows(*range(0, 20, 2))],
    ["write", "odd", rows(*range(1, 20, 2))],
    ["commit", ["even", "odd"], []],
]

# name → (version, is partitioned, steps)
STORIES: dict[str, tuple[int, bool, list[Step]]] = {
    "positions of two files": (2, False, [
        *A_AND_B,
        ["write_positions", "p", "a", [("a", 0), ("a", 9), ("b", 3)]],
        ["commit", [], ["p"]],
        ["write_positions", "q", "a", [("a", 0), ("a", 4)]],
        ["commit", [], ["q"]],
    ]),
    "positions of rows of the same commit": (2, False, [
        *A_AND_B,
        ["write", "c", rows(30, 31, 32)],
        ["write_positions", "p", "a", [("a", 1), ("c", 1)]],
        ["commit", ["c"], ["p"]],
    ]),
    "positions that are older than their file": (2, False, [
        *A_AND_B,
        ["write", "late", rows(30, 31, 32)],
        ["write_positions", "p", "a", [("a", 1), ("late", 1)]],
        ["commit", [], ["p"]],
        ["commit", ["late"], []],
    ]),
    "positions of another partition": (2, True, [
        *TWO_PARTITIONS,
        ["write_positions", "p", "even", [("even", 1), ("odd", 2)]],
        ["commit", [], ["p"]],
    ]),
    "positions of a file that is gone": (2, False, [
        *A_AND_B,
        ["write_positions", "p", "a", [("a", 1), ("b", 2)]],
        ["commit", [], ["p"]],
        ["drop", ["a"], []],
    ]),
    "deletes that are taken back": (2, False, [
        *A_AND_B,
        ["write_positions", "p", "a", [("a", 1), ("b", 2)]],
        ["commit", [], ["p"]],
        ["drop", [], ["p"]],
    ]),
    "equal to one column": (2, False, [
        *A_AND_B,
        ["write_equalities", "e", None, [ID], [named(id=3), named(id=15), named(id=99)]],
        ["commit", [], ["e"]],
        ["write", "c", rows(3, 15)],
        ["commit", ["c"], []],
    ]),
    "equal in the same commit": (2, False, [
        *A_AND_B,
        ["write", "c", rows(3, 15)],
        ["write_equalities", "e", None, [ID], [named(id=3), named(id=15)]],
        ["commit", ["c"], ["e"]],
    ]),
    "equal to NULL": (2, False, [
        *A_AND_B,
        ["write_equalities", "e", None, [N], [named()]],
        ["commit", [], ["e"]],
    ]),
    "equal to two columns": (2, False, [
        *A_AND_B,
        ["write_equalities", "e", None, [K, N],
         [named(k="k0", n=2), named(k="k1"), named(k="k1", n=4), named(k="k9", n=1)]],
        ["commit", [], ["e"]],
    ]),
    "equal to several sets of columns": (2, False, [
        *A_AND_B,
        ["write_equalities", "e", None, [ID], [named(id=1)]],
        ["write_equalities", "f", None, [N], [named(n=3)]],
        ["write_equalities", "g", None, [ID, K], [named(id=12, k="k0"), named(id=13, k="k0")]],
        ["commit", [], ["e", "f"]],
        ["commit", [], ["g"]],
    ]),
    "equal to a part of a struct": (2, False, [
        *A_AND_B,
        ["write_equalities", "e", None, [X, K], [
            {**in_s("x1"), str(K): "k1"}, {**in_s("x0"), str(K): "k1"}, {**in_s("x2"), str(K): "k0"}
        ]],
        ["commit", [], ["e"]],
        ["write_equalities", "f", None, [X], [in_s("x3")]],
        ["commit", [], ["f"]],
    ]),
    "equal to NULL in a struct": (2, False, [
        ["write", "a", rows(*range(4, 14))],  # no struct is NULL
        ["commit", ["a"], []],
        ["write_equalities", "e", None, [X], [in_s(None)]],
        ["commit", [], ["e"]],
    ]),
    "equal within a partition": (2, True, [
        *TWO_PARTITIONS,
        ["write_equalities", "e", "even", [N], [named(n=2), named(n=4)]],
        ["commit", [], ["e"]],
    ]),
    "equal in all partitions": (2, True, [
        *TWO_PARTITIONS,
        ["partitions", "removeField", "k"],
        ["write_equalities", "e", None, [N], [named(n=2), named(n=4)]],
        ["commit", [], ["e"]],
    ]),
    "equal before the table had partitions": (2, False, [
        *A_AND_B,
        ["partitions", "addField", "k"],
        *TWO_PARTITIONS,
        ["write_equalities", "e", "a", [ID], [named(id=2), named(id=5)]],
        ["write_equalities", "f", "even", [ID], [named(id=6), named(id=7)]],
        ["commit", [], ["e", "f"]],
    ]),
    "equal to a column that was added since": (2, False, [
        *A_AND_B,
        ["columns", "addColumn", "extra", ":int"],
        ["write_equalities", "e", None, [7, ID], [{"1": 4}, {"1": 5, "7": 1}]],
        ["commit", [], ["e"]],
    ]),
    "equal to a column that was renamed and promoted": (2, False, [
        *A_AND_B,
        ["write_equalities", "e", None, [N], [named(n=3)]],
        ["commit", [], ["e"]],
        ["columns", "renameColumn", "n", "number"],
        ["columns", "updateColumn", "number", ":long"],
        ["write", "c", rows(40, 41)],
        ["commit", ["c"], []],
        ["write_equalities", "f", None, [N], [named(n=1 << 40), named(n=5)]],
        ["commit", [], ["f"]],
    ]),
    "rewritten rows are as old as they were": (2, False, [
        *A_AND_B,
        ["write", "again", rows(*range(10))],
        ["rewrite", ["a"], ["again"]],
        ["write_equalities", "e", None, [ID], [named(id=4)]],
        ["commit", [], ["e"]],
        ["write", "newest", rows(*range(10, 20))],
        ["rewrite", ["b"], ["newest"]],
    ]),
    "all kinds together": (2, True, [
        *TWO_PARTITIONS,
        ["write_positions", "p", "even", [("even", 0), ("even", 1)]],
        ["write_equalities", "e", "even", [ID], [named(id=2), named(id=8)]],
        ["write_equalities", "f", None, [N], [named(n=6)]],
        ["commit", [], ["p", "e", "f"]],
    ]),
    "vectors": (3, False, [
        *A_AND_B,
        ["write_vectors", "v", {"a": [0, 3, 9], "b": [5]}],
        ["commit", [], ["v", "v1"]],
    ]),
    "vectors that replace others": (3, True, [
        *TWO_PARTITIONS,
        ["write_vectors", "v", {"even": [0, 3]}],
        ["commit", [], ["v"]],
        ["write_vectors", "w", {"even": [0, 3, 4], "odd": [1]}],
        ["commit", [], ["w", "w1"], ["v"]],
    ]),
    "a vector instead of positions": (2, False, [
        *A_AND_B,
        ["write_positions", "p", "a", [("a", 1), ("b", 2), ("b", 3)]],
        ["commit", [], ["p"]],
        ["set", "format-version", "3"],
        ["write_vectors", "v", {"a": [1, 5]}],
        ["commit", [], ["v"]],
    ]),
    "a vector and equal rows": (3, False, [
        *A_AND_B,
        ["write_vectors", "v", {"a": [1, 5]}],
        ["write_equalities", "e", None, [ID], [named(id=7), named(id=11)]],
        ["commit", [], ["v", "e"]],
    ]),
    "promoted types": (2, False, [
        *A_AND_B,
        ["columns", "updateColumn", "n", ":long"],
        ["columns", "updateColumn", "real", ":double"],
        ["write", "c", [row(40) | {"3": 1 << 40, "5": 0.1}]],
        ["commit", ["c"], []],
        ["write_positions", "p", "a", [("a", 1)]],
        ["commit", [], ["p"]],
    ]),
}  # fmt: skip

# What each of them has is in another one as well, beside more.
PLAIN = {
    "positions of two files",
    "positions of rows of the same commit",
    "equal to one column",
    "equal to two columns",
    "equal to NULL in a struct",
    "equal within a partition",
    "equal to a column that was added since",
    "vectors",
}


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows in the form of `Spark.iceberg`, which shows structs as texts: those are left out."""
    found = [{name: value for name, value in one.items() if name != "s"} for one in plain(table)]
    return sorted(found, key=lambda one: (int(one["id"]), repr(one)))


def plain(table: pa.Table) -> list[dict[str, Any]]:
    lineage = {"_row_id", "_last_updated_sequence_number"}
    names = [name for name in table.column_names if name not in lineage]
    found: list[dict[str, Any]] = table.select(names).to_pylist()
    return found


@pytest.mark.parametrize("name", [name for name in STORIES if FULL or name not in PLAIN])
def test_rows_are_those_that_iceberg_reads(tmp_path: Path, spark: Spark, name: str) -> None:
    path, clone = tmp_path / "t", tmp_path / "c"
    made(spark, path, *STORIES[name])
    expected = as_rows(spark.iceberg(path))
    assert expected
    with connect() as db:
        db.sql(f"CREATE TABLE c SHALLOW CLONE iceberg.`{path}` LOCATION '{clone}'")
    convert_to_deltalake(path)
    by_spark = spark.queries([select(place) for place in (path, clone)])
    for place, theirs in zip((path, clone), by_spark, strict=True):
        table = DeltaTable(place)
        assert as_rows(table.to_pyarrow_table()) == expected
        assert table.count() == len(expected)
        assert as_rows(theirs) == expected


@pytest.mark.parametrize(
    "name", ["all kinds together", "promoted types", "a vector and equal rows"]
)
def test_both_go_on_with_it(tmp_path: Path, spark: Spark, name: str) -> None:
    path = tmp_path / "t"
    made(spark, path, *STORIES[name])
    convert_to_deltalake(path)
    spark.tell(path, "DELETE FROM T WHERE id = 17", "UPDATE T SET id = id + 100 WHERE id = 6")
    ours = DeltaTable(path)
    ours.delete("id = 8")
    write_deltalake(ours, ours.to_pyarrow_table().slice(0, 1), mode="append")
    assert as_rows(spark.read(path)) == as_rows(DeltaTable(path).to_pyarrow_table())


def made(
    spark: Spark, path: Path, version: int, is_partitioned: bool, steps: Sequence[Step]
) -> None:
    spark.make_iceberg(
        path,
        SCHEMA,
        steps,
        spec=BY_K if is_partitioned else [],
        properties={"format-version": str(version)},
    )


@pytest.mark.parametrize("seed", range(12 if FULL else 3))
def test_rows_of_any_history_are_those_that_iceberg_reads(
    tmp_path: Path, spark: Spark, seed: int
) -> None:
    """Data and deletes of all kinds, in any order."""
    random = Random(seed)
    path = tmp_path / "t"
    version, is_partitioned = 2 + seed % 2, seed % 4 > 1
    made(
        spark,
        path,
        version,
        is_partitioned,
        list(_history(random, version, is_partitioned=is_partitioned)),
    )
    expected = as_rows(spark.iceberg(path))
    convert_to_deltalake(path)
    assert as_rows(DeltaTable(path).to_pyarrow_table()) == expected
    assert DeltaTable(path).count() == len(expected)
    assert as_rows(spark.read(path)) == expected


def _history(random: Random, version: int, *, is_partitioned: bool) -> Any:
    """Steps of a story; ids of rows may come again, as in a stream of changes."""
    sizes: dict[str, int] = {}
    vectors: dict[str, tuple[str, set[int]]] = {}
    for number in range(14):
        kind = random.choice(["data", "data", "positions", "equal", "equal", "both"])
        data, deletes, gone = [], [], []
        if kind in {"data", "both"} or not sizes:
            k = random.choice(["k0", "k1"]) if is_partitioned else None
            count = random.randrange(1, 12)
            name = f"d{number}"
            yield ["write", name, rows(*(random.randrange(40) for _ in range(count)), k=k)]
            data.append(name)
        known = [*sizes, *data]
        for name in data:
            sizes[name] = count
        target = random.choice(known)
        if kind in {"positions", "both"}:
            wanted = {random.randrange(sizes[target]) for _ in range(3)}
            if version == 2:
                named_rows = [(target, at) for at in sorted(wanted)]
                other = random.choice(known)
                named_rows += [(other, random.randrange(sizes[other]))]
                yield ["write_positions", f"p{number}", target, sorted(set(named_rows))]
            else:
                before = vectors.get(target)
                if before is not None:
                    gone.append(before[0])
                    wanted |= before[1]
                vectors[target] = (f"p{number}", wanted)
                yield ["write_vectors", f"p{number}", {target: sorted(wanted)}]
            deletes.append(f"p{number}")
        if kind in {"equal", "both"}:
            columns = random.choice([[ID], [N], [ID, K], [K, N]])
            chosen = [row(random.randrange(40)) for _ in range(3)]
            keys = [{str(c): one[str(c)] for c in columns if str(c) in one} for one in chosen]
            scope = random.choice([None, target])
            yield ["write_equalities", f"e{number}", scope, columns, keys]
            deletes.append(f"e{number}")
        yield ["commit", data, deletes, gone]


def test_a_struct_that_is_null_is_not_taken_for_one_that_holds_null(
    tmp_path: Path, spark: Spark
) -> None:
    """The specification says that it is the same, and Iceberg's library reads it otherwise."""
    steps: list[Step] = [
        *A_AND_B,
        ["write_equalities", "e", None, [X], [in_s(None)]],
        ["commit", [], ["e"]],
    ]
    spark.make_iceberg(tmp_path / "t", SCHEMA, steps, properties={"format-version": "2"})
    left = {one["id"] for one in as_rows(spark.iceberg(tmp_path / "t"))}
    assert {3, 14} <= left  # whose struct is NULL
    with pytest.raises(InvalidInputError, match="the whole struct is NULL in some rows"):
        convert_to_deltalake(tmp_path / "t")


def test_columns_that_were_dropped_since_still_delete_rows(tmp_path: Path, spark: Spark) -> None:
    """Iceberg's generic reader looks for such a column in vain: its rows are those of before."""
    path = tmp_path / "t"
    steps: list[Step] = [
        *A_AND_B,
        ["write_equalities", "e", None, [N], [named(n=3)]],
        ["commit", [], ["e"]],
        ["columns", "deleteColumn", "n"],
        ["columns", "addColumn", "n", ":string"],
    ]
    spark.make_iceberg(path, SCHEMA, steps, properties={"format-version": "2"})
    state = json.loads((path / "metadata" / "v6.metadata.json").read_text("utf-8"))
    expected = as_rows(spark.iceberg(path, state["current-snapshot-id"]))
    assert {one["n"] for one in expected} == {None, *range(7)} - {3}
    convert_to_deltalake(path)
    found = as_rows(DeltaTable(path).to_pyarrow_table())
    assert found == [{**one, "n": None} for one in expected]
    assert as_rows(spark.read(path)) == found


@pytest.mark.parametrize("kind", ["float", "double"])
def test_columns_that_cannot_be_compared_are_refused(
    tmp_path: Path, spark: Spark, kind: str
) -> None:
    steps: list[Step] = [*A_AND_B]
    if kind == "double":
        steps.append(["columns", "updateColumn", "real", ":double"])
    steps += [
        ["write_equalities", "e", None, [REAL], [{str(REAL): 0.5}]],
        ["commit", [], ["e"]],
    ]
    spark.make_iceberg(tmp_path / "t", SCHEMA, steps, properties={"format-version": "2"})
    with pytest.raises(InvalidInputError, match=f"whose type {kind} cannot be compared"):
        convert_to_deltalake(tmp_path / "t")


def test_promoted_parts_of_columns_are_read_by_delta_spark(iceberg: Catalog, spark: Spark) -> None:
    """Decimals, and types inside of structs, lists and maps; PyIceberg makes the table."""
    kinds = {
        "id": pa.int32(),
        "amount": pa.decimal128(5, 2),
        "s": pa.struct([("x", pa.int32())]),
        "l": pa.list_(pa.float32()),
        "m": pa.map_(pa.string(), pa.decimal128(12, 1)),
    }
    values: dict[str, list[Any]] = {
        "id": [1, None],
        "amount": [Decimal("1.25"), None],
        "s": [{"x": 7}, None],
        "l": [[0.5, None], None],
        "m": [[("k", Decimal("1.5"))], None],
    }
    held = pa.table({name: pa.array(values[name], kind) for name, kind in kinds.items()})
    table = iceberg.create(held.schema)
    table.append(held)
    with table.update_schema() as change:
        change.update_column("amount", types.DecimalType(9, 2))
    table.append(held.set_column(1, "amount", held["amount"].cast(pa.decimal128(9, 2))))
    with table.update_schema() as change:
        change.update_column("id", types.LongType())
        change.update_column("amount", types.DecimalType(20, 2))
        change.update_column(("s", "x"), types.LongType())
        change.update_column(("l", "element"), types.DoubleType())
        change.update_column(("m", "value"), types.DecimalType(25, 1))
    table.append(table.scan().to_arrow())
    expected = in_order(table.scan().to_arrow())
    convert_to_deltalake(table)
    assert in_order(DeltaTable(path_of(table)).to_pyarrow_table()) == expected
    found = spark.read(path_of(table))
    assert in_order(found) == expected
    # Delta Spark knows these changes: it widens further, and forgets them once files are rewritten.
    spark.tell(
        path_of(table),
        "ALTER TABLE T SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE T ALTER COLUMN amount TYPE DECIMAL(22, 2)",
        "INSERT INTO T SELECT * FROM T WHERE id = 1",
        "REORG TABLE T APPLY (PURGE)",
    )
    assert in_order(spark.read(path_of(table))) == in_order(
        DeltaTable(path_of(table)).to_pyarrow_table()
    )


def test_dates_that_became_moments_are_read_by_delta_spark(iceberg: Catalog, spark: Spark) -> None:
    """Version 3 has this promotion, which neither PyIceberg nor Iceberg's library makes yet."""
    table = iceberg.create(pa.schema([("d", pa.date32())]))
    days = [dt.date(1970, 1, 1), dt.date(2024, 10, 4), dt.date(1, 1, 1), None]
    table.append(pa.table({"d": pa.array(days, pa.date32())}))
    path = Path(table.metadata_location.removeprefix("file://"))
    state = json.loads(path.read_text("utf-8"))
    for schema in state["schemas"]:
        schema["fields"][0]["type"] = "timestamp"
    path.write_text(json.dumps(state), "utf-8")
    convert_to_deltalake(path)
    found = spark.read(path_of(table))
    assert in_order(found) == in_order(DeltaTable(path_of(table)).to_pyarrow_table())
    moments = {None if one is None else dt.datetime.combine(one, dt.time()) for one in days}
    assert set(found["d"].to_pylist()) == moments
