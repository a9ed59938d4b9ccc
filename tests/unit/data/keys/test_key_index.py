"""The key index: hashes of equal keys are equal, and a read with the index has the same rows."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import struct
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog import DeltaTable, Field, Schema, sql, write_deltalake
from deltalog.data.keys import hashing, lookup, writing
from deltalog.data.keys import packs as held
from deltalog.data.keys.hashing import hashes_of
from deltalog.data.scan.native import DUCKDB, plan_native
from deltalog.errors import DeltaError, InvalidInputError, StorageError
from deltalog.expressions import Literal, col
from deltalog.expressions.nodes import Comparison, In
from deltalog.operations import key_index
from deltalog.operations.changes import key_tasks
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.types import PrimitiveType, as_type
from deltalog.testing import CountingStore
from tests.support.facade import VECTORS, fresh_rows, make, rows, store_of
from tests.support.logs import DictStore
from tests.support.sharded import PickledTasks

LCASE = {"__COLLATIONS": {"k": "spark.UTF8_LCASE_RTRIM"}}


def column(kind: str, metadata: dict[str, Any] | None = None) -> Field:
    return Field("k", as_type(kind), metadata=metadata or {})


def hashed(kind: str, *values: Any, metadata: dict[str, Any] | None = None) -> list[int]:
    field = column(kind, metadata)
    array = pa.array(values, to_arrow_type(field.type))
    found: list[int] = hashes_of([array], [field]).tolist()
    return found


# --- hashes


def test_hashes_are_stable() -> None:
    assert hashed("long", 0, 1, -1, None) == PINNED["long"]
    assert hashed("string", "", "a", "deltalog!", "x" * 200, None) == PINNED["string"]
    assert hashed("double", 0.5, math.nan) == PINNED["double"]
    assert hashed("decimal(10,2)", Decimal("1.50")) == PINNED["decimal"]


NUMBERS = ["byte", "short", "integer", "long", "float", "double", "decimal(5,0)", "decimal(12,4)"]


def test_a_whole_number_has_one_hash_in_all_types() -> None:
    for value in (0, 1, -1, 100, -128):
        known = {hashed(kind, Decimal(value) if "dec" in kind else value)[0] for kind in NUMBERS}
        assert len(known) == 1


def test_decimals_are_hashed_without_trailing_zeros() -> None:
    for text in ("1.5", "-0.25", "99999.99", "0.0001", "-12345.6"):
        value = Decimal(text)
        kinds = ("decimal(12,4)", "decimal(20,6)", "decimal(38,10)")
        assert len({hashed(kind, value)[0] for kind in kinds}) == 1
    large = Decimal(10**30)
    assert hashed("decimal(38,0)", large) == hashed("decimal(38,4)", large)
    assert hashed("decimal(38,0)", large) != hashed("decimal(38,0)", Decimal(10**30 + 1))
    assert len(set(hashed("decimal(38,37)", Decimal("9." + "9" * 37), Decimal(9)))) == 2


def test_nan_and_zero_have_one_hash() -> None:
    odd = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
    assert len(set(hashed("double", math.nan, odd, -math.nan))) == 1
    assert len(set(hashed("double", 0.0, -0.0))) == 1
    assert hashed("float", 0.1) == hashed("double", struct.unpack("<f", struct.pack("<f", 0.1))[0])
    assert len(set(hashed("double", 2.0**63, -(2.0**63), 1e300, math.inf, -math.inf))) == 5


def test_a_date_has_the_hash_of_its_midnight() -> None:
    for day in (dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)):
        midnight = dt.datetime(day.year, day.month, day.day)  # noqa: DTZ001  # has no zone
        assert hashed("date", day) == hashed("timestamp_ntz", midnight)


def test_strings_of_one_collation_key_have_one_hash() -> None:
    assert len(set(hashed("string", "Ä", "ä ", "ä  ", metadata=LCASE))) == 1
    assert len(set(hashed("string", "Ä", "ä", "ä "))) == 3


def test_different_keys_have_different_hashes() -> None:
    strings = {"x" * n for n in range(300)} | {"\0" * n for n in range(20)}
    strings |= {f"{n}" for n in range(3000)}
    assert len(set(hashed("string", *sorted(strings)))) == len(strings)
    assert len(set(hashed("long", *range(-5000, 5000), None))) == 10_001
    assert len(set(hashed("binary", b"", None, b"\0"))) == 3


def test_a_slice_has_the_hashes_of_its_rows() -> None:
    for kind, values in (
        ("string", ["a", None, "b" * 9, "c" * 200, "", "d"]),
        ("long", [1, None, 3, 4, 5, 6]),
        ("decimal(9,2)", [Decimal("1.5"), None, Decimal(3), Decimal("0.25"), None, Decimal(6)]),
        ("boolean", [True, None, False, True, None, True]),
    ):
        field = column(kind)
        array = pa.array(values, to_arrow_type(field.type))
        whole = hashes_of([array], [field]).tolist()
        assert hashes_of([array.slice(2, 3)], [field]).tolist() == whole[2:5]


# --- reads agree with a model


MOMENT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
KINDS: dict[str, Callable[[int], Any]] = {
    "byte": lambda n: n - 100,
    "short": lambda n: n * 7,
    "integer": lambda n: n * -13,
    "long": lambda n: n * 10**15,
    "float": lambda n: [0.0, -0.0, math.nan, math.inf][n] if n < 4 else n / 8,
    "double": lambda n: [0.0, -0.0, math.nan, -math.inf][n] if n < 4 else n / 3,
    "boolean": lambda n: n % 2 == 0,
    "decimal(9,2)": lambda n: Decimal(n * 25) / 100,
    "decimal(38,10)": lambda n: Decimal(n * 10**20) / 10**10,
    "date": lambda n: dt.date(2024, 1, 1) + dt.timedelta(n),
    "timestamp": lambda n: MOMENT + dt.timedelta(microseconds=n),
    "timestamp_ntz": lambda n: MOMENT.replace(tzinfo=None) + dt.timedelta(hours=n),
    "string": lambda n: ["", "\0", "é", "x" * 300][n] if n < 4 else f"key {n}",
    "binary": lambda n: bytes(range(n)),
}
COLLATED = "string LCASE_RTRIM"
KINDS[COLLATED] = lambda n: f"{'Key' if n % 2 else 'kEY'} {n // 2}{' ' * (n % 3)}"


def same(kind: str, one: Any, other: Any) -> bool:
    """Equality of SQL, except that NULL equals NULL."""
    if one is None or other is None:
        return one is other
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if kind == COLLATED:
        return bool(one.rstrip(" ").lower() == other.rstrip(" ").lower())
    return bool(one == other)


def model_table(kind: str, rng: random.Random, **options: Any) -> tuple[DeltaTable, list[Any]]:
    """A table of several files, of which some have an index, and its rows."""
    metadata = LCASE if kind == COLLATED else {}
    key = column(kind.split(maxsplit=1)[0], metadata)
    schema = Schema([key, Field("n", PrimitiveType("integer"))])
    make_key = KINDS[kind]
    table = DeltaTable.create(DictStore(), schema=schema, configuration={**VECTORS, **options})
    known: list[Any] = []

    def append(count: int) -> None:
        some = [
            (None if rng.random() < 0.1 else make_key(rng.randrange(120)), len(known) + n)
            for n in range(count)
        ]
        known.extend(some)
        data = pa.table(
            {
                "k": pa.array([one[0] for one in some], to_arrow_type(key.type)),
                "n": pa.array([one[1] for one in some], pa.int32()),
            }
        )
        write_deltalake(table, data, mode="append")

    append(60)
    append(1)
    table.alter.set_key_index(["k"])
    append(0)
    table.optimize.key_index()
    append(30)
    table.optimize.key_index()
    append(20)
    gone = {rng.randrange(len(known)) for _ in range(15)}
    table.delete(f"n IN ({', '.join(map(str, sorted(gone)))})")
    return table, [row for row in known if row[1] not in gone]


def probes(kind: str, rng: random.Random, data_type: Any) -> list[tuple[Any, Callable[..., bool]]]:
    """Conditions, and what they mean for a key."""
    make_key = KINDS[kind]

    def constant(value: Any) -> Literal:
        return Literal(value, data_type)

    found: list[tuple[Any, Callable[..., bool]]] = []
    for _ in range(12):
        one = make_key(rng.randrange(125))
        found.append((Comparison("=", col("k"), constant(one)), lambda k, o=one: _eq(kind, k, o)))
        found.append((Comparison("<=>", constant(one), col("k")), lambda k, o=one: _eq(kind, k, o)))
    some = [make_key(rng.randrange(125)) for _ in range(7)]
    options = (*map(constant, some), constant(None))
    found.append((In(col("k"), options), lambda k: any(_eq(kind, k, o) for o in some)))
    found.append((col("k").is_null(), lambda k: k is None))
    one = some[0]
    either = Comparison("=", col("k"), constant(one)) | col("k").is_null()
    found.append((either, lambda k: k is None or _eq(kind, k, one)))
    found.append((Comparison("<=>", col("k"), constant(None)), lambda k: k is None))
    found.append((Comparison("=", col("k"), constant(None)), lambda _: False))
    both = Comparison("=", col("k"), constant(one)) & Comparison("=", col("k"), constant(some[1]))
    found.append((both, lambda k: _eq(kind, k, one) and _eq(kind, k, some[1])))
    return found


def _eq(kind: str, key: Any, other: Any) -> bool:
    return key is not None and other is not None and same(kind, key, other)


def check(table: DeltaTable, kind: str, known: list[Any], rng: random.Random) -> None:
    data_type = table.snapshot.configuration.schema.fields_named("k")[0].type
    for condition, means in probes(kind, rng, data_type):
        found: list[Any] = (
            table.scan(predicate=condition, columns=["n"]).to_table()["n"].to_pylist()
        )
        assert sorted(found) == sorted(n for k, n in known if means(k)), condition
        assert table.scan(predicate=condition).count() == len(found)


@pytest.mark.parametrize("kind", KINDS)
def test_lookups_agree_with_a_model(kind: str) -> None:
    rng = random.Random(kind)
    table, known = model_table(kind, rng)
    check(table, kind, known, rng)
    data_type = table.snapshot.configuration.schema.fields_named("k")[0].type
    for condition, _ in probes(kind, rng, data_type):
        text = str(table.scan(predicate=condition).explain())
        assert "key index of k" in text or " 0 to read" in text


@pytest.mark.parametrize("kind", ["long", "string", COLLATED, "double"])
def test_changes_agree_with_a_model(kind: str) -> None:
    rng = random.Random(kind)
    table, known = model_table(kind, rng)
    data_type = table.snapshot.configuration.schema.fields_named("k")[0].type
    for number in range(6):
        key = KINDS[kind](rng.randrange(120))
        is_key = Comparison("=", col("k"), Literal(key, data_type))
        if number % 2:
            table.delete(is_key)
            known = [row for row in known if not _eq(kind, row[0], key)]
        else:
            table.update({"n": col("n") + 1000}, predicate=is_key)
            known = [(k, n + 1000 if _eq(kind, k, key) else n) for k, n in known]
        assert rows(table, "n") == sorted(n for _, n in known)
        if number == 3:
            table.optimize.key_index()
    check(table, kind, known, rng)


def test_a_merge_agrees_with_a_model() -> None:
    rng = random.Random(5)
    table, known = model_table("long", rng)
    keys = [KINDS["long"](n) for n in rng.sample(range(150), 40)]
    source = pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array(range(40), pa.int32())})
    for condition in ("t.k = s.k", "t.k <=> s.k"):
        merge = table.merge(source, condition, source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        by_key = dict(zip(keys, range(40), strict=True))
        there = {k for k, _ in known}
        known = [(k, by_key.get(k, n)) for k, n in known]
        known += [(k, n) for k, n in by_key.items() if k not in there]
        found = [(row["k"], row["n"]) for row in table.to_pyarrow_table().to_pylist()]
        assert Counter(found) == Counter(known)


def test_hits_of_other_keys_are_not_returned(monkeypatch: Any) -> None:
    """All hashes are equal to those of some other keys."""
    real = hashing.hashes_of

    def poor(*arguments: Any) -> Any:
        return real(*arguments) & (3 << 62)

    monkeypatch.setattr(hashing, "hashes_of", poor)
    monkeypatch.setattr(lookup, "hashes_of", poor)
    rng = random.Random(4)
    table, known = model_table("string", rng)
    check(table, "string", known, rng)
    table.delete("k = 'key 7'")
    check(table, "string", [row for row in known if row[0] != "key 7"], rng)


# --- random histories


KEEPS_LOG = {"delta.enableExpiredLogCleanup": "false"}


class History:
    """A table of keys, its rows by a model, and those of earlier versions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        properties = {**(VECTORS if rng.random() < 0.7 else {}), **KEEPS_LOG}
        schema = Schema([column("long"), Field("n", PrimitiveType("integer"))])
        self.table = DeltaTable.create(DictStore(), schema=schema, configuration=properties)
        self.known: list[tuple[int | None, int]] = []
        self.table.alter.set_key_index(["k"])
        self.earlier = {self.table.version(): self.known}

    def some(self, count: int) -> pa.Table:
        keys = [None if self.rng.random() < 0.05 else self.key() for _ in range(count)]
        numbers = [self.rng.randrange(1000) for _ in range(count)]
        return pa.table({"k": pa.array(keys, pa.int64()), "n": pa.array(numbers, pa.int32())})

    def key(self) -> int:
        return self.rng.randrange(60)

    def append(self) -> None:
        rows = self.some(self.rng.randrange(1, 40))
        write_deltalake(self.table, rows, mode="append")
        self.known = [*self.known, *zip(*rows.to_pydict().values(), strict=True)]

    def overwrite(self) -> None:
        rows = self.some(self.rng.randrange(1, 40))
        write_deltalake(self.table, rows, mode="overwrite")
        self.known = list(zip(*rows.to_pydict().values(), strict=True))

    def delete(self) -> None:
        gone = {self.key(), self.key()}
        self.table.delete(f"k IN ({', '.join(map(str, gone))})")
        self.known = [row for row in self.known if row[0] not in gone]

    def update(self) -> None:
        key, to = self.key(), self.key()
        self.table.update({"k": str(to)}, predicate=f"k = {key}")
        self.known = [(to if k == key else k, n) for k, n in self.known]

    def merge(self) -> None:
        keys = sorted({self.key() for _ in range(5)})
        source = pa.table({"k": keys, "n": pa.array([-1] * len(keys), pa.int32())})
        merge = self.table.merge(source, "t.k = s.k", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        there = {k for k, _ in self.known}
        self.known = [(k, -1 if k in keys else n) for k, n in self.known]
        self.known += [(k, -1) for k in keys if k not in there]

    def index(self) -> None:
        self.table.optimize.key_index()

    def compact(self) -> None:
        self.table.optimize.compact()

    def restore(self) -> None:
        version = self.rng.choice(sorted(self.earlier))
        self.table.restore(version)
        self.known = self.earlier[version]

    def harm(self) -> None:
        files = store_of(self.table).files
        for path in packs(self.table):
            if self.rng.random() < 0.3:
                how = self.rng.choice(["missing", "cut", "zeros", "bits"])
                data = harmed(files.pop(path), how, self.rng)
                files |= {} if data is None else {path: data}

    def check(self) -> None:
        self.earlier[self.table.version()] = self.known
        keys = [self.key() for _ in range(4)]
        for wanted in (keys[:1], keys):
            scan = self.table.scan(predicate=col("k").is_in(wanted))
            found = Counter(map(tuple, (row.values() for row in scan.to_table().to_pylist())))
            assert found == Counter(row for row in self.known if row[0] in wanted)


ACTIONS = (
    "append",
    "append",
    "overwrite",
    "delete",
    "update",
    "merge",
    "index",
    "index",
    "compact",
)


HISTORIES = int(os.environ.get("DELTALOG_HISTORIES", "12"))


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_histories_agree_with_a_model(seed: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(writing, "LEAST_ROWS", 10)
    monkeypatch.setattr(writing, "MOST_ROWS", 100)
    monkeypatch.setattr(key_index, "_MOST_SMALL", 2)
    history = History(random.Random(seed))
    for _ in range(14):
        getattr(history, history.rng.choice((*ACTIONS, "restore", "harm")))()
        if history.rng.random() < 0.3:
            forget()
        history.check()


# --- damaged, missing and stale packs


def packs(table: DeltaTable) -> list[str]:
    return sorted(path for path in store_of(table).files if path.endswith(".keys"))


def forget() -> None:
    """As in another process."""
    held._HELD.packs.clear()
    held._HELD.listings.clear()


def harmed(data: bytes, how: str, rng: random.Random) -> bytes | None:
    match how:
        case "missing":
            return None
        case "cut":
            return data[: rng.randrange(len(data))]
        case "empty":
            return b""
        case "zeros":
            return bytes(len(data))
        case "longer":
            return data + b"\0"
        case _:
            found = bytearray(data)
            for _ in range(3):
                found[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            return bytes(found)


@pytest.fixture(scope="module")
def indexed() -> tuple[dict[str, bytes], list[Any]]:
    """The files of a table with two packs, and its rows."""
    table, known = model_table("string", random.Random(11))
    return dict(store_of(table).files), known


@pytest.mark.parametrize("is_held", [False, True], ids=["new process", "open packs"])
@pytest.mark.parametrize("how", ["missing", "cut", "empty", "zeros", "longer", "bits"])
def test_damaged_packs_change_no_rows(how: str, is_held: bool, indexed: Any) -> None:
    rng = random.Random(how)
    files, known = indexed
    for number in range(5):
        forget()
        table = DeltaTable(DictStore(dict(files)))
        if is_held:
            assert table.scan(predicate=col("k") == known[0][0]).count() > 0
        own = store_of(table).files
        for path in packs(table)[: number % 2 + 1]:
            data = harmed(own[path], how, rng)
            if data is None:
                del own[path]
            else:
                own[path] = data
        if not is_held:
            forget()
        keys = [f"key {rng.randrange(120)}" for _ in range(6)]
        for wanted in ([keys[0]], keys):
            found = table.scan(predicate=col("k").is_in(wanted), columns=["n"]).to_table()
            assert rows_of_one(found) == sorted(n for k, n in known if k in wanted)
        if not number:
            table.optimize.key_index()
            check(table, "string", known, rng)


def rows_of_one(found: pa.Table) -> list[Any]:
    values: list[Any] = found.column(0).to_pylist()
    return sorted(values)


def test_a_pack_of_another_table_is_not_used() -> None:
    one, known = model_table("long", random.Random(1))
    other, _ = model_table("long", random.Random(2))
    forget()
    for path in packs(one):
        del store_of(one).files[path]
    for path in packs(other):
        store_of(one).files[path] = store_of(other).files[path]
    check(one, "long", known, random.Random(3))
    assert "0 rows in 0 files" in str(one.scan(predicate="k = 1").explain())


def test_a_file_that_was_written_again_is_not_looked_up() -> None:
    """Another writer breaks the rule that data files do not change, and says so in the log."""
    store = DictStore()
    write_deltalake(store, pa.table({"k": list(range(50))}))
    table = DeltaTable(store)
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    (path,) = [name for name in store.files if name.endswith(".parquet")]
    other = DictStore()
    write_deltalake(other, pa.table({"k": list(range(100, 180))}))
    (new,) = [name for name in other.files if name.endswith(".parquet")]
    store.files[path] = other.files[new]
    from deltalog._util.json import dumps
    from deltalog.log.names import commit_path

    add = {"path": path, "partitionValues": {}, "size": len(store.files[path])}
    add |= {"modificationTime": 5, "dataChange": True}
    store.files[commit_path(2)] = dumps({"add": add})
    table = DeltaTable(store)
    assert rows(table) == list(range(100, 180))
    assert table.scan(predicate="k = 120").to_table().num_rows == 1


def test_an_index_that_states_another_number_of_rows_is_not_used(caplog: Any) -> None:
    table = make(pa.table({"k": list(range(50))}))
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    forget()
    scan = table.scan(predicate="k = 7")
    (task,) = scan.tasks()
    from dataclasses import replace

    assert task.indexed is not None
    wrong = replace(task, indexed=replace(task.indexed, positions=pa.array([3]), num_rows=49))
    assert wrong.to_table()["k"].to_pylist() == [7]
    assert "expected a file of 49 rows, found 50" in caplog.text


# --- cost


def spread(num_files: int = 12, **configuration: str) -> DeltaTable:
    """A table whose statistics exclude no file, with an index."""
    table = make(
        pa.table({"k": [0, 10_000], "v": ["", ""]}).slice(0, 0),
        configuration={**VECTORS, **configuration},
    )
    for file in range(num_files):
        keys = [-1, 100_000, *range(file, 10_000, num_files)]
        data = pa.table({"k": keys, "v": [f"{key}" for key in keys]})
        write_deltalake(table, data, mode="append")
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    return table


def look_up(predicate: str) -> Callable[[DeltaTable], Any]:
    return lambda table: table.scan(predicate=predicate).to_table()


def read_files(table: DeltaTable, act: Callable[[DeltaTable], Any]) -> set[str]:
    """Return the data files that something reads."""
    counting = CountingStore(store_of(table))
    act(DeltaTable(counting))
    verbs = ("read", "read_ranges", "read_many", "open")
    return {
        path for path in counting.paths(*verbs) if path.endswith(".parquet") and "/" not in path
    }


def test_a_lookup_reads_only_the_file_with_the_key() -> None:
    table = spread()
    for key, count in ((77, 1), (4321, 1), (20_000, 0)):
        assert len(read_files(table, look_up(f"k = {key}"))) == count
    several = "k IN (1, 13, 25, 2)"  # the first three are in one file
    assert len(read_files(table, lambda opened: opened.scan(predicate=several).to_table())) == 2
    assert len(read_files(table, lambda opened: opened.scan(predicate="k > 5").to_table())) == 12
    text = str(table.scan(predicate="k = 77").explain())
    assert "key index of k: 1 row in 1 file, 11 files are not read" in text


def test_changes_read_only_the_files_with_their_keys() -> None:
    def merge(opened: DeltaTable) -> None:
        source = pa.table({"k": [5, 17, 50_000], "v": ["new"] * 3})
        merge = opened.merge(source, "t.k = s.k", source_alias="s", target_alias="t")
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        assert "key index of k: 2 rows in 1 file, 11 files are not read" in str(merge.explain())
        merge.execute()

    table = spread()
    assert len(read_files(table, lambda opened: opened.delete("k = 77"))) == 1
    assert (
        len(read_files(table, lambda opened: opened.update({"v": "'u'"}, predicate="k = 78"))) == 1
    )
    assert len(read_files(table, merge)) == 1
    assert fresh_rows(table, "k").count(77) == 0
    found = DeltaTable(store_of(table)).scan(predicate="k IN (5, 17, 50000, 78)").to_table()
    assert Counter(found["v"].to_pylist()) == {"new": 3, "u": 1}


def test_a_warm_lookup_reads_no_listing_and_one_bucket() -> None:
    table = spread()
    counting = CountingStore(store_of(table))
    opened = DeltaTable(counting)
    opened.scan(predicate="k = 77").to_table()
    counting.reset()
    opened.scan(predicate="k = 78").to_table()
    assert "list_from" not in counting.counts
    of_packs = [call for call in counting.calls if call.paths[0].endswith(".keys")]
    assert len(of_packs) == 1
    assert of_packs[0].size_bytes < 8 * 1024


def test_engines_let_deltalog_read_rows_that_the_index_finds(tmp_path: Path) -> None:
    for file in range(3):
        keys = list(range(file, 6000, 3))
        data = pa.table({"k": keys, "v": [str(key) for key in keys]})
        write_deltalake(tmp_path / "t", data, mode="append")
    table = DeltaTable(tmp_path / "t")
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    query = "SELECT count(*) AS n, max(v || '!') AS v FROM t WHERE k IN (5, 7000, 11)"
    assert sql(query, t=table).to_arrow().to_pylist() == [{"n": 2, "v": "5!"}]
    scan = table.scan(predicate="k = 5")
    assert plan_native(scan, DUCKDB).reasons == ("the key index finds the rows",)
    assert not plan_native(table.scan(predicate="k > 5"), DUCKDB).reasons
    filtered = table.to_pyarrow_dataset().to_table(filter=pc.field("k") == 5)
    assert filtered["v"].to_pylist() == ["5"]


# --- building, and other operations


def test_a_commit_indexes_its_large_files() -> None:
    table = make(pa.table({"k": [1]}))
    table.alter.set_key_index(["k"])
    write_deltalake(table, pa.table({"k": list(range(10))}), mode="append")
    assert packs(table) == []
    write_deltalake(table, pa.table({"k": list(range(5000))}), mode="append")
    assert len(packs(table)) == 1
    assert "not in the key index, so read without it: 2 files" in str(
        table.scan(predicate="k=1").explain()
    )
    assert table.optimize.key_index()["numFilesAdded"] == 2
    assert "without" not in str(table.scan(predicate="k = 1").explain())
    assert table.scan(predicate="k = 1").to_table().num_rows == 3


def test_building_again_does_nothing() -> None:
    table = spread()
    before = dict(store_of(table).files)
    report = table.optimize.key_index()
    assert (report["numFilesIndexed"], report["numFilesAdded"], report["numPacksRemoved"]) == (
        12,
        0,
        0,
    )
    assert dict(store_of(table).files) == before


def test_many_small_packs_are_merged_without_reading_data(monkeypatch: Any) -> None:
    table = make(pa.table({"k": [-1]}))
    table.alter.set_key_index(["k"])
    for n in range(10):
        write_deltalake(table, pa.table({"k": list(range(n, 20_000, 10))}), mode="append")
    table.delete("k = 3")  # without vectors: the file is written again
    assert len(packs(table)) == 11
    monkeypatch.setattr(key_tasks, "read_tasks", lambda _: iter(()))
    monkeypatch.setattr(writing, "LEAST_ROWS", 1)
    report = table.optimize.key_index()
    assert report["numPacks"] == 3  # that of the file with one row is new, one has no live file
    monkeypatch.undo()
    assert len(packs(table)) == 3
    for key in (4, 3, 19_999):
        found = table.scan(predicate=f"k = {key}").to_table()["k"].to_pylist()
        assert found == ([] if key == 3 else [key])


def test_packs_have_a_limited_number_of_rows(monkeypatch: Any) -> None:
    monkeypatch.setattr(writing, "MOST_ROWS", 2500)
    table = spread()
    assert len(packs(table)) == 6
    assert table.scan(predicate="k = 9999").to_table().num_rows == 1


def test_rewritten_and_restored_files_are_found() -> None:
    table = spread()
    version = table.version()
    table.optimize.compact()
    assert table.scan(predicate="k = 77").to_table().num_rows == 1
    table.optimize.key_index()
    assert len(packs(table)) == 2  # vacuum deletes the pack without live files
    assert "11 files are not read" not in str(table.scan(predicate="k = 77").explain())
    table.restore(version)
    assert table.scan(predicate="k = 77").to_table().num_rows == 1
    assert "11 files are not read" in str(table.scan(predicate="k = 77").explain())


def test_main_and_branches_share_packs() -> None:
    table = spread()
    draft = table.branch("b")
    assert "11 files are not read" in str(draft.scan(predicate="k = 77").explain())
    write_deltalake(draft, pa.table({"k": list(range(10**6, 10**6 + 2000))}), mode="append")
    assert "11 files are not read" in str(draft.scan(predicate="k = 77").explain())
    for one in (table, draft):
        one.optimize.key_index()
    assert len(packs(table)) == 2
    draft.publish()
    table.update_incremental()
    found = "key index of k: 1 row in 1 file"
    assert found in str(table.scan(predicate=f"k = {10**6}").explain())
    again = table.branch("c")
    again.alter.set_key_index(None)
    assert len(packs(table)) == 2


def test_vacuum_deletes_packs_that_no_live_file_needs() -> None:
    table = spread()
    (old,) = packs(table)
    table.optimize.compact()
    assert len(packs(table)) == 2
    deleted = table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert old in deleted
    assert len(packs(table)) == 1
    assert table.scan(predicate="k = 77").to_table().num_rows == 1
    table.alter.set_key_index(["v"])
    assert len(packs(table)) == 1
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert packs(table) == []
    table.optimize.key_index()
    assert len(packs(table)) == 1
    table.alter.set_key_index(None)
    assert packs(table) == []


def test_a_renamed_column_stays_the_key() -> None:
    table = make(
        pa.table({"k": list(range(2000)), "v": list(range(2000))}),
        configuration={"delta.columnMapping.mode": "name"},
    )
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    table.alter.rename_column("k", "key")
    text = str(table.scan(predicate="key = 5").explain())
    assert "key index of key: 1 row in 1 file" in text
    assert table.scan(predicate="key = 5").to_table().num_rows == 1
    table.alter.drop_columns(["key"])
    assert "key index" not in str(table.scan(predicate="v = 5").explain())
    with pytest.raises(InvalidInputError, match="set_key_index"):
        table.optimize.key_index()


def test_a_widened_column_stays_the_key() -> None:
    for before, after in (("integer", "long"), ("integer", "double"), ("date", "timestamp_ntz")):
        key = KINDS[before]
        values = pa.array([key(n) for n in range(2000)], to_arrow_type(as_type(before)))
        table = make(
            pa.table({"k": values, "v": list(range(2000))}),
            configuration={"delta.enableTypeWidening": "true"},
        )
        table.alter.set_key_index(["k"])
        table.optimize.key_index()
        table.alter.set_column_type("k", as_type(after))
        forget()
        value: Any = key(7)
        if before == "date":
            value = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001  # has no zone
        if after == "double":
            value = float(value)
        found = table.scan(predicate=Comparison("=", col("k"), Literal(value, as_type(after))))
        assert "1 row in 1 file" in str(found.explain())
        assert found.to_table()["v"].to_pylist() == [7]


def test_a_key_of_two_columns() -> None:
    table = make(
        pa.table({"a": [n // 50 for n in range(2000)], "b": [n % 50 for n in range(2000)]})
    )
    table.alter.set_key_index(["a", "b"])
    table.optimize.key_index()
    one = table.scan(predicate="a = 3 AND b IN (4, 5, 77) AND a + b = 8")
    assert "2 rows in 1 file" in str(one.explain())
    assert one.to_table().to_pylist() == [{"a": 3, "b": 5}]
    assert "key index" not in str(table.scan(predicate="a = 3").explain())


def test_only_columns_with_hashes_can_be_a_key() -> None:
    table = make(
        pa.table({"p": ["x"], "s": [[1]], "k": [1]}),
        partition_by=["p"],
    )
    for names, text in (
        (["p"], "partition"),
        (["s"], "array"),
        (["nope"], "nope"),
        ([], "columns"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            table.alter.set_key_index(names)
    with pytest.raises(InvalidInputError, match="different"):
        table.alter.set_key_index(["k", "K"])
    with pytest.raises(InvalidInputError, match="set_key_index"):
        table.optimize.key_index()


def test_a_commit_succeeds_if_the_index_cannot_be_written(caplog: Any) -> None:
    table = make(pa.table({"k": [1]}))
    table.alter.set_key_index(["k"])
    store = store_of(table)

    class Refusing(CountingStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".keys"):
                raise OSError("full")
            super().put_if_absent(path, data)

    write_deltalake(DeltaTable(Refusing(store)), pa.table({"k": list(range(2000))}), mode="append")
    assert "key index of version 2" in caplog.text
    assert DeltaTable(store).scan(predicate="k = 1").to_table().num_rows == 2


def test_without_numpy_the_index_is_not_used(monkeypatch: Any, caplog: Any) -> None:
    table = spread()
    import sys

    monkeypatch.setitem(sys.modules, "deltalog.data.keys.lookup", None)
    assert table.scan(predicate="k = 77").to_table().num_rows == 1
    assert "cannot use the key index" in caplog.text


PINNED: dict[str, list[int]] = {
    "long": [8848935107335307795, 13692675483189245491, 4322099436404362561, 2930708094412383753],
    "string": [
        8848935107335307795,
        6710297054750640772,
        6332661351741850352,
        17931527697378631041,
        2930708094412383753,
    ],
    "double": [13858820600436190080, 9120364689472598774],
    "decimal": [4938568074440166870],
}


# --- who indexes new files


def test_a_write_indexes_its_files_without_reading_them(monkeypatch: Any) -> None:
    inner = DictStore()
    store = CountingStore(inner)
    write_deltalake(store, pa.table({"k": [1] * 1000}))
    table = DeltaTable(store)
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    monkeypatch.setattr(key_tasks, "read_tasks", None)
    store.reset()
    write_deltalake(table, pa.table({"k": list(range(5000))}), mode="append")
    assert len([path for path in inner.files if path.endswith(".keys")]) == 2
    store.reset()
    assert table.scan(predicate="k = 4999").to_table().num_rows == 1
    assert not [path for path in store.paths("list_from") if "_keys" in path]  # it is known


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_write_has_the_hashes_of_a_build(kind: str, monkeypatch: Any) -> None:
    """The pack of a write equals that of a build: it has the same name, a digest."""
    monkeypatch.setattr(writing, "LEAST_ROWS", 1)
    data, metadata = ("string", LCASE) if kind == COLLATED else (kind, {})
    schema = Schema([Field("k", as_type(data), metadata=metadata)])
    table = DeltaTable.create(DictStore(), schema=schema, configuration=MAPPED)
    table.alter.set_key_index(["k"])
    values = [None, *(KINDS[kind](n) for n in range(40))]
    rows = pa.table({"k": pa.array(values, to_arrow_type(as_type(data)))})
    write_deltalake(table, rows, mode="append")
    (written,) = packs(table)
    content = store_of(table).files.pop(written)
    table.optimize.key_index()
    assert {path: store_of(table).files[path] for path in packs(table)} == {written: content}


MAPPED = {"delta.columnMapping.mode": "name"}


def test_a_failed_write_leaves_a_pack_that_vacuum_deletes() -> None:
    table = make(pa.table({"k": [1]}))
    table.alter.set_key_index(["k"])
    table.alter.add_constraint({"small": "k < 3000"})
    parts = [pa.table({"k": list(range(2000))}), pa.table({"k": [5000]})]
    reader = pa.RecordBatchReader.from_batches(
        parts[0].schema, [batch for part in parts for batch in part.to_batches()]
    )
    with pytest.raises(DeltaError):
        write_deltalake(table, reader, mode="append")
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert packs(table) == []


def test_engines_index_in_tasks(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(key_tasks, "_LEAST_TASK_BYTES", 1)
    for number in range(6):
        rows = pa.table({"k": list(range(number, 6000, 6))})
        write_deltalake(tmp_path, rows, mode="append", configuration=VECTORS)
    engine = PickledTasks(num_tasks=3)
    table = DeltaTable(tmp_path, engine=engine)
    table.alter.set_key_index(["k"])
    counts: list[tuple[int, int]] = []
    report = table.optimize.key_index(progress=lambda *pair: counts.append(pair))
    assert (report["numFilesIndexed"], report["numRowsAdded"], report["numPacksAdded"]) == (
        6,
        6000,
        3,
    )
    assert [(name, len(inputs)) for name, _, inputs in engine.sent] == [("_index_group", 3)]
    assert counts[-1] == (6, 6)
    assert "5 files are not read" in str(table.scan(predicate="k = 77").explain())
    assert table.scan(predicate="k = 77").to_table().num_rows == 1


def test_compacted_files_are_indexed_after_the_commit(monkeypatch: Any) -> None:
    """Copied row groups are not decoded while they are written."""
    table = spread()
    assert len(packs(table)) == 1
    table.optimize.compact()
    assert len(packs(table)) == 2
    assert "without an entry" not in str(table.scan(predicate="k = 77").explain())
    monkeypatch.setattr(key_tasks, "read_tasks", None)  # a masked file is not read again
    table.delete("k = 78")
    assert len(packs(table)) == 2


@pytest.mark.parametrize("null_safe", [False, True])
def test_a_merge_by_several_columns_reads_only_found_rows(null_safe: bool) -> None:
    numbers = list(range(3000))
    store = DictStore()
    for part in range(3):
        some = numbers[part::3]
        rows = pa.table({"a": [n % 50 for n in some], "b": [str(n) for n in some], "v": some})
        write_deltalake(store, rows, mode="append", configuration=VECTORS)
    table = DeltaTable(store)
    table.alter.set_key_index(["a", "b"])
    table.optimize.key_index()
    keys = [7, 1234, 2999, 40_000]
    source = pa.table(
        {
            "a": pa.array([*(n % 50 for n in keys), None], pa.int64()),
            "b": [*map(str, keys), "x"],
            "v": [-1] * 5,
        }
    )
    equal = "<=>" if null_safe else "="
    merge = table.merge(
        source, f"t.a {equal} s.a AND t.b {equal} s.b", source_alias="s", target_alias="t"
    )
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    assert "key index of a, b: 3 rows in 2 files" in str(merge.explain())
    done = merge.execute()
    assert (done["num_target_rows_updated"], done["num_target_rows_inserted"]) == (3, 2)
    found = {(row["a"], row["b"]): row["v"] for row in table.to_pyarrow_table().to_pylist()}
    expected: dict[Any, int] = {(n % 50, str(n)): n for n in numbers}
    expected |= {(n % 50, str(n)): -1 for n in keys}
    assert found == {**expected, (None, "x"): -1}


def test_a_long_lived_writer_reads_no_pack(monkeypatch: Any) -> None:
    """Also if memory holds only one of the packs that it has written."""
    monkeypatch.setattr(held, "_MOST_HELD_BYTES", 1)
    store = CountingStore(DictStore())
    write_deltalake(store, pa.table({"k": [0] * 1000}))
    table = DeltaTable(store)
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    store.reset()
    for number in range(6):
        write_deltalake(table, pa.table({"k": [number] * 1000}), mode="append")
    assert not [path for path in store.paths("read_ranges", "list_from") if "_keys" in path]
    assert table.scan(predicate="k = 5").count() == 1000


def test_a_scan_looks_its_keys_up_once(tmp_path: Path, monkeypatch: Any) -> None:
    write_deltalake(tmp_path, pa.table({"k": list(range(5000))}))
    table = DeltaTable(tmp_path)
    table.alter.set_key_index(["k"])
    table.optimize.key_index()
    real, calls = lookup.look_up, list[str]()

    def counted(snapshot: Any, predicate: Any, *rest: Any) -> Any:
        calls.append(str(predicate))
        return real(snapshot, predicate, *rest)

    monkeypatch.setattr(lookup, "look_up", counted)
    scan = table.scan(predicate="k = 77")
    assert plan_native(scan, DUCKDB).reasons == ("the key index finds the rows",)
    assert "1 row in 1 file" in str(scan.explain())
    assert scan.to_table()["k"].to_pylist() == [77]
    assert len(calls) == 1


def test_vacuum_keeps_packs_if_the_store_fails() -> None:
    table = spread()
    before = packs(table)

    class Failing(DictStore):
        def read_ranges(self, path: str, ranges: Any) -> list[bytes]:
            if path.endswith(".keys"):
                raise StorageError("the network is down")
            return super().read_ranges(path, ranges)

    forget()
    files = store_of(table).files
    failing = DeltaTable(Failing(files))
    with pytest.raises(StorageError, match="network"):
        failing.vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert [path for path in before if path in files] == before
