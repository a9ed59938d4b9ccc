"""Bad tables and bad calls: each has its own error, which says all that its reader needs.

A message says what was attempted, on what, what was expected, what was found, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, QueryBuilder, write_deltalake
from deltalog import errors as e
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log import names
from deltalog.testing import FaultyStore, InjectedFault
from tests.support import logs
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable

Break = Callable[[DataTable], None]
Ask = Callable[[DeltaTable], object]


def made() -> DataTable:
    """Columns `id` and `p` (its partition), a file of three rows in version 1."""
    table = DataTable(
        [("id", "long"), ("p", "integer")], partition_by=["p"], features=["deletionVectors"]
    )
    table.commit(table.add({"id": [1, 2, 3]}, path="one.parquet", partitionValues={"p": "1"}))
    return table


def _rewrite(table: DataTable, path: str, change: Callable[[bytes], bytes]) -> None:
    table.store.put(path, change(table.store.files[path]))


def _without(path: str) -> Break:
    return lambda table: table.store.delete_many([path])


def _head(*lines: str) -> Break:
    """Version 0 with these kinds of lines only."""

    def change(table: DataTable) -> None:
        actions = [table.protocol(), table.metadata()]
        kept = [action for action in actions if set(action) & set(lines)]
        logs.commit(table.store, 0, *kept)

    return change


def _torn(table: DataTable) -> None:
    _rewrite(table, names.commit_path(1), lambda data: data[:-20])


def _first_commit(content: bytes) -> Break:
    return lambda table: table.store.put(names.commit_path(0), content)


def _checkpoint(content: bytes) -> Break:
    def change(table: DataTable) -> None:
        table.store.delete_many([names.commit_path(0)])
        table.store.put(names.log_path(names.checkpoint_name(0)), content)

    return change


def _sidecar_gone(table: DataTable) -> None:
    actions = [table.protocol(), table.metadata(), logs.add("x")]
    paths = logs.v2_checkpoint(table.store, 1, actions)
    table.store.delete_many([paths[1], names.commit_path(0), names.commit_path(1)])


def _vector(**wrong: Any) -> Break:
    """A file whose deletion vector does not fit its descriptor."""

    def change(table: DataTable) -> None:
        vector = {**table.vector(0), **wrong}
        table.commit(
            table.add({"id": [1]}, path="two", partitionValues={"p": "2"}, deletionVector=vector)
        )

    return change


def _vector_bytes(change_bytes: Callable[[bytes], bytes]) -> Break:
    def change(table: DataTable) -> None:
        _vector()(table)
        (path,) = (path for path in table.store.files if path.startswith("deletion_vector"))
        _rewrite(table, path, change_bytes)

    return change


def _other_columns(table: DataTable) -> None:
    table.file({"id": [pa.scalar("x")]}, path="one.parquet")


def _add(path: str, **members: Any) -> Break:
    return lambda table: void(table.commit(logs.add(path, **members)))


def void(_: object) -> None:
    """Nothing."""


def _feature(name: str) -> Break:
    def change(table: DataTable) -> None:
        lists = {"readerFeatures": [name], "writerFeatures": [name]}
        table.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}})

    return change


def nothing(table: DataTable) -> None:
    """Leave the table as it is."""
    del table


def rows(table: DeltaTable) -> object:
    """Read everything."""
    return table.to_pyarrow_table()


@dataclass(frozen=True)
class Case:
    """What is broken, what is asked, what comes of it, and what the message must hold."""

    name: str
    damage: Break
    error: type[DeltaError]
    says: tuple[str, ...]
    ask: Ask = rows


ROOT = "memory://table"
BAD = [
    Case(
        "missing table",
        lambda table: table.store.files.clear(),
        e.TableNotFoundError,
        ("cannot open", ROOT, "expected a Delta table", "found nothing there"),
    ),
    Case("gap", _without(names.commit_path(0)), e.CheckpointMissingError, (ROOT, "version")),
    Case(
        "gap in the middle",
        lambda table: logs.commit(table.store, 3, logs.add("x")),
        e.LogGapError,
        (ROOT, "2"),
    ),
    Case("no protocol", _head("metaData"), e.NoProtocolError, (ROOT, "protocol")),
    Case("no metadata", _head("protocol"), e.NoMetadataError, (ROOT, "metaData")),
    Case("torn commit", _torn, e.MalformedLogError, ("version 1, line 1", ROOT)),
    *(
        Case(
            f"first commit {content!r}",
            _first_commit(content),
            e.MalformedLogError,
            ("version 0, line", "the JSON of an action is invalid", ROOT, names.commit_path(0)),
        )
        for content in (b"{bad", b'{"protocol": {bad', b'{"commitInfo":{}}\n{"prot')
    ),
    Case(
        "corrupt checkpoint",
        _checkpoint(b"PAR1 but not really"),
        e.CheckpointUnreadableError,
        (ROOT, f"{0:020d}.checkpoint.parquet"),
    ),
    Case("missing sidecar", _sidecar_gone, e.CheckpointUnreadableError, (ROOT, logs.SIDECAR_UUID)),
    Case("vector of another size", _vector(sizeInBytes=5), e.DeletionVectorError, ("5",)),
    Case(
        "vector with another checksum",
        _vector_bytes(lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        e.DeletionVectorError,
        ("expected checksum", "deletion vector 'u", "'two'", ROOT),
    ),
    Case("vector of more rows", _vector(cardinality=9), e.DeletionVectorError, ("9", "1")),
    Case(
        "torn vector file",
        _vector_bytes(lambda data: data[:10]),
        e.DeletionVectorError,
        ("the file ends after", "deletion vector 'u", "'two'", ROOT),
    ),
    Case("data file gone", _without("one.parquet"), e.DataFileMissingError, ("one.parquet",)),
    Case("other columns", _other_columns, e.DataFileUnreadableError, ("one.parquet", "id")),
    Case(
        "no Parquet file",
        lambda table: table.store.put("one.parquet", b"hello"),
        e.DataFileUnreadableError,
        ("one.parquet",),
    ),
    Case(
        "bad partition value",
        _add("one.parquet", partitionValues={"p": "seven"}),
        e.InvalidPartitionValueError,
        ("'seven'", "'p'", "integer"),
    ),
    Case(
        "path out of the table",
        _add("../../etc/passwd", partitionValues={"p": "1"}),
        e.UnsafePathError,
        ("../../etc/passwd",),
    ),
    Case(
        "path out of the table, encoded",
        _add("%2e%2e/secret", partitionValues={"p": "1"}),
        e.UnsafePathError,
        ("../secret",),
    ),
    Case("unknown feature", _feature("telepathy"), e.UnsupportedFeatureError, ("telepathy", ROOT)),
    Case(
        "catalog",
        _feature("catalogManaged"),
        e.CatalogManagedError,
        ("catalogManaged", ROOT, "pass its log tail"),
    ),
    Case(
        "version to come",
        nothing,
        e.VersionNotFoundError,
        ("version 7", ROOT, "the latest version is 1"),
        lambda table: table.load_as_version(7),
    ),
    Case(
        "bad predicate",
        nothing,
        InvalidInputError,
        ("id >",),
        lambda table: table.scan(predicate="id > > 3"),
    ),
    Case(
        "unknown column",
        nothing,
        InvalidInputError,
        ("'idd'", "did you mean 'id'"),
        lambda table: table.scan(columns=["idd"]),
    ),
    Case(
        "unknown column in a predicate",
        nothing,
        InvalidInputError,
        ("'idd'", "did you mean 'id'"),
        lambda table: table.scan(predicate="idd = 3"),
    ),
    Case(
        "bad operator",
        nothing,
        InvalidInputError,
        ("'~'", "not one of =, "),
        lambda table: table.file_uris(file_pruning_predicate=[("p", "~", 1)]),
    ),
    Case(
        "negative limit",
        nothing,
        InvalidInputError,
        ("limit=-1", "0 or more"),
        lambda table: table.scan(limit=-1),
    ),
    Case(
        "no file system",
        nothing,
        InvalidInputError,
        ("as filesystem a file system of fsspec or pyarrow", "found a str"),
        lambda table: table.to_pandas(filesystem="s3"),
    ),
    Case(
        "two starts",
        nothing,
        InvalidInputError,
        ("starting_version", "starting_timestamp", "give one of them"),
        lambda table: table.load_cdf(1, None, "2024-01-01"),
    ),
    Case(
        "columns as one text",
        nothing,
        InvalidInputError,
        ("columns='id, amount'", "a list of names", "['id', 'amount']"),
        lambda table: table.to_pandas(columns="id, amount"),
    ),
    Case(
        "columns by number",
        nothing,
        InvalidInputError,
        ("columns=[1]", "a list of names"),
        lambda table: table.scan(columns=[1]),  # type: ignore[list-item]
    ),
    Case(
        "a limit that is no number",
        nothing,
        InvalidInputError,
        ("limit='5'", "whole number"),
        lambda table: table.history("5"),  # type: ignore[arg-type]
    ),
    Case(
        "a dataset's schema of other columns",
        nothing,
        InvalidInputError,
        ("'idd'", "did you mean 'id'"),
        lambda table: table.to_pyarrow_dataset(schema=pa.schema([("idd", pa.int64())])),
    ),
    Case(
        "a dataset's schema that is none",
        nothing,
        InvalidInputError,
        ("pyarrow.Schema", "as_large_types"),
        lambda table: table.to_pyarrow_dataset(schema={"id": "long"}),  # type: ignore[arg-type]
    ),
    Case(
        "feed from a moment to come",
        nothing,
        e.VersionNotFoundError,
        ("changes 2099-01-01T00:00:00.000Z to 1", ROOT, "its versions are 0 to 1"),
        lambda table: table.load_cdf(starting_timestamp="2099-01-01"),
    ),
    Case(
        "feed from a truth",
        nothing,
        InvalidInputError,
        ("True", "ISO 8601"),
        lambda table: table.load_cdf(True),
    ),
    Case(
        "feed is off",
        nothing,
        e.ChangeDataFeedNotEnabledError,
        (ROOT, "delta.enableChangeDataFeed"),
        lambda table: table.load_cdf().read_all(),
    ),
    Case(
        "feed out of range",
        nothing,
        e.VersionNotFoundError,
        (ROOT, "allow_out_of_range"),
        lambda table: table.load_cdf(5),
    ),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_each_has_its_own_error(case: Case) -> None:
    table = made()
    case.damage(table)
    with pytest.raises(DeltaError) as error:
        case.ask(DeltaTable(table.store))
    assert type(error.value) is case.error
    assert error.value.code == case.error.code
    text = "\n".join([str(error.value), *getattr(error.value, "__notes__", ())])
    for part in case.says:
        assert part in text


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("file:///etc/hostname", "file:///etc/hostname"),
        ("/etc/hostname", "/etc/hostname"),
        ("nope://host/x", "nope"),
    ],
)
def test_paths_elsewhere_read_no_other_bytes_silently(path: str, known: str) -> None:
    """A shallow clone's absolute paths are allowed: what is there is no data file, and said so."""
    table = made()
    table.commit(logs.add(path, partitionValues={"p": "1"}))
    with pytest.raises(DeltaError) as error:
        DeltaTable(table.store).to_pyarrow_table()
    assert known in str(error.value)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("", "expected a table's location, found an empty string"),
        ("nope://x/y", "no file system is known for 'nope'"),
        ("htp://x/y", "locations; did you mean 'http'. Known are file, "),
        ("s33://x/y", "locations; did you mean 's3'. Known are file, "),
        ("jdbc:postgresql://x", "'jdbc:postgresql://x': this is the address of a database, and"),
        ("JDBC:sqlite:x.db", "this is the address of a database"),
        ("odbc:x", "this is the address of a database"),
        ("postgresql://x", "locations; this is the address of a database"),
        ("mysql+pymysql://x", "locations; this is the address of a database"),
        ("snowflake://x", "locations; this is the address of a database"),
        ("sqlite:///x.db", r"write_deltalake$"),
        ("databricks://x", "a table of Unity Catalog is uc://catalog.schema.table"),
        ("postgresql://me:hush@x/y", r"'postgresql://me:\*\*\*@x/y'"),
        (None, "found NoneType"),
        (5, "found int"),
        (b"/tmp", "found bytes"),
    ],
)
def test_what_is_no_location_is_refused(
    location: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        DeltaTable(location)
    with pytest.raises(InvalidInputError, match=message):
        write_deltalake(location, {"id": [1]})
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_the_name_of_a_driver_is_a_location(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "jdbc:x", {"id": [1]})
    assert DeltaTable(str(tmp_path / "jdbc:x")).count() == 1


@pytest.mark.parametrize("options", ["hush", ["hush"], 5])
def test_what_are_no_options_is_refused_without_showing_them(options: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected a mapping, or a callable") as error:
        DeltaTable("s3://bucket/table", storage_options=options)
    assert "hush" not in str(error.value)


SECRET = "c0rrect-h0rse-battery"  # noqa: S105 - nobody's
LEAKY = {
    "user": f"https://user:{SECRET}@127.0.0.1:9/table",
    "sas": f"https://127.0.0.1:9/table?sig={SECRET}&x=1",
    "signature": f"https://127.0.0.1:9/table?X-Amz-Signature={SECRET}",
}


@pytest.mark.parametrize("location", LEAKY.values(), ids=LEAKY.keys())
def test_nothing_tells_the_secrets_of_a_location(location: str) -> None:
    asks: list[Callable[[], object]] = [
        lambda: DeltaTable(location),
        lambda: DeltaTable(f"{location}@v3", 1),
        lambda: DeltaTable.is_deltatable(location),
    ]
    for ask in asks:
        with pytest.raises(DeltaError) as error:
            ask()
        assert SECRET not in f"{error.value!s} {error.value!r}"


def test_a_store_that_fails_is_named() -> None:
    store = FaultyStore(made().store, InjectedFault(verb="list_from"))
    with pytest.raises(e.StorageError, match="_delta_log"):
        DeltaTable(store)


def test_errors_leave_the_table_usable() -> None:
    table = made()
    opened = DeltaTable(table.store)
    with pytest.raises(InvalidInputError):
        opened.scan(columns=["nope"])
    with pytest.raises(e.VersionNotFoundError):
        opened.load_as_version(9)
    assert opened.to_pyarrow_table()["id"].to_pylist() == [1, 2, 3]


def test_a_query_over_a_broken_table_names_the_file() -> None:
    table = made()
    table.store.delete_many(["one.parquet"])
    query = QueryBuilder().register("t", DeltaTable(table.store))
    with pytest.raises(Exception, match=r"one\.parquet"):
        query.execute("select * from t").read_all()


def test_an_empty_store_is_no_table() -> None:
    with pytest.raises(e.TableNotFoundError) as error:
        DeltaTable(DictStore())
    assert isinstance(error.value, FileNotFoundError)
