"""A table described for people."""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from deltalog import (
    ArrayType,
    DeltaTable,
    Field,
    MapType,
    PrimitiveType,
    Schema,
    StructType,
    VariantType,
    col,
    write_deltalake,
)
from deltalog._util.readable import readable_size
from deltalog.errors import UnsupportedFeatureError
from deltalog.operations.delete import Delete
from deltalog.table.inspect.display import ShownFacts, card_of_rows, with_card
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.raw_tables import column, mapped, schema_string


class _Cells(HTMLParser):
    """The rows of the tables in a page, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.rows[-1][-1] += data


def _card_of(result: object) -> str:
    assert isinstance(result, ShownFacts)
    return result._repr_html_()


@pytest.fixture
def store() -> logs.DictStore:
    """Two files, of which one is removed; partitioned, clustered and described."""
    fields = [mapped("day", "date", 1, "c1"), mapped("value", "double", 2, "c2")]
    fields[1]["metadata"]["comment"] = "what was <measured>"
    found = logs.DictStore()
    head = logs.metadata(
        name="<b>sensors</b>",
        description="one & all",
        schemaString=schema_string(fields),
        partitionColumns=["day"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["columnMapping"],
        "writerFeatures": ["columnMapping", "clustering", "domainMetadata"],
    }
    clustering = logs.domain("delta.clustering", json.dumps({"clusteringColumns": [["c2"]]}))
    adds = [logs.add("a", size=1000), logs.add("b", size=2000)]
    logs.commit(found, 0, {"protocol": features}, head, clustering, *adds, time_ms=1000)
    logs.commit(found, 1, logs.remove("a"), time_ms=60_000)
    return found


def test_detail_has_the_keys_of_describe_detail(store: logs.DictStore) -> None:
    assert DeltaTable(store).detail() == {
        "format": "delta",
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "name": "<b>sensors</b>",
        "description": "one & all",
        "location": "memory://table",
        "createdAt": 1,
        "lastModified": 60_000,
        "version": 1,
        "partitionColumns": ["day"],
        "clusteringColumns": ["value"],
        "numFiles": 1,
        "sizeInBytes": 2000,
        "properties": {"delta.columnMapping.mode": "name"},
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "tableFeatures": ["clustering", "columnMapping", "domainMetadata"],
    }


def test_the_card_shows_what_people_look_for(store: logs.DictStore) -> None:
    cells = _Cells(DeltaTable(store)._repr_html_())
    assert cells.open == []
    assert cells.rows == [
        ["description", "one & all"],
        ["location", "memory://table"],
        ["version", "1 (1970-01-01 00:01:00Z)"],
        ["files", "1, 2.0 KiB"],
        ["partitioned by", "day"],
        ["clustered by", "value"],
        ["protocol", "reader 3, writer 7"],
        ["features", "clustering, columnMapping, domainMetadata"],
        ["properties", "delta.columnMapping.mode=name"],
        ["day", "date", "partition", ""],
        ["value", "double", "", "what was <measured>"],
    ]


def test_what_a_table_says_of_itself_is_no_markup(store: logs.DictStore) -> None:
    page = DeltaTable(store)._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;sensors&lt;/b&gt;" in page


def test_an_empty_table_has_a_card() -> None:
    rows = _Cells(DeltaTable(logs.table_of([]))._repr_html_()).rows
    assert ["files", "0, 0 bytes"] in rows
    assert DeltaTable(logs.table_of([])).detail()["sizeInBytes"] == 0


def test_the_card_of_a_wide_table_stays_small() -> None:
    store = logs.DictStore()
    fields = [column(f"c{number}", "long") for number in range(1000)]
    head = logs.metadata(schemaString=schema_string(fields))
    logs.commit(store, 0, logs.PROTOCOL, head)
    rows = _Cells(DeltaTable(store)._repr_html_()).rows
    assert len(rows) < 40
    assert rows[-1][0] == "… 980 more"


def test_a_table_that_cannot_be_read_can_be_shown() -> None:
    """Protocol, schema and history of any table; its files and rows are refused by name."""
    store = logs.DictStore()
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["telepathy"],
        "writerFeatures": ["telepathy"],
    }
    logs.commit(store, 0, {"protocol": protocol}, logs.metadata(), logs.add("f"))
    table = DeltaTable(store)
    assert "telepathy" in table._repr_html_()
    assert table.detail()["tableFeatures"] == ["telepathy"]
    assert len(table.history()) == 1
    for ask in (
        table.count,
        table.scan,
        table.file_uris,
        table.partitions,
        table.get_add_actions,
        table.deletion_vectors,
        table.to_pandas,
        table.to_pyarrow_dataset,
        table.load_cdf,
    ):
        with pytest.raises(UnsupportedFeatureError, match="telepathy"):
            ask()


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes_are_readable(size_bytes: int, text: str) -> None:
    assert readable_size(size_bytes) == text


def test_a_schema_shows_how_it_is_made() -> None:
    schema = Schema(
        [
            Field("id", "long", nullable=False),
            Field("tags", ArrayType("string", contains_null=False)),
            Field("facts", MapType("string", StructType([Field("price", "decimal(10,2)")]))),
            Field("notes", VariantType(), metadata={"comment": "it's free"}),
        ]
    )
    names = {kind.__name__: kind for kind in (ArrayType, Field, MapType, StructType, VariantType)}
    assert eval(repr(schema), {**names, "PrimitiveType": PrimitiveType}) == schema  # noqa: S307
    assert repr(Schema([Field("id", "long")])) == "StructType([Field('id', PrimitiveType('long'))])"


def test_metadata_is_shown_without_the_text_of_the_schema() -> None:
    metadata = DeltaTable(logs.table_of([])).metadata()
    assert metadata.schema_string
    assert "schema_string" not in repr(metadata)


def test_the_card_tells_the_rows_that_the_log_knows() -> None:
    store = logs.DictStore()
    adds = [logs.add(name, stats='{"numRecords":1500}') for name in ("a", "b")]
    logs.commit(store, 0, logs.PROTOCOL, logs.metadata(), *adds)
    assert ["rows", "3,000"] in _Cells(DeltaTable(store)._repr_html_()).rows
    logs.commit(store, 1, logs.add("c", stats='{"numRecords":-1}'))
    names = [row[0] for row in _Cells(DeltaTable(store)._repr_html_()).rows]
    assert "files" in names
    assert "rows" not in names


def test_the_card_shows_some_rows(tmp_path: Path) -> None:
    long = "<b>" + "x" * 300
    rows = pa.table({"id": [1, None], "text": [long, "y"], "many": [[1, 2], []]})
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    assert _Cells(table._repr_html_()).rows[-2:] == [
        ["1", long[:199] + "…", "[1, 2]"],
        ["NULL", "y", "[]"],
    ]
    write_deltalake(tmp_path, pa.table({"id": range(100)}), mode="append", schema_mode="merge")
    shown = _Cells(DeltaTable(tmp_path)._repr_html_()).rows
    assert [len(row) for row in shown[-6:]] == [0, 3, 3, 3, 3, 3]  # names, then five rows
    table = DeltaTable(tmp_path)
    table.delete()
    assert _Cells(table._repr_html_()).rows[-1][0] == "many"  # the last column


def test_a_card_without_rows_says_why(store: logs.DictStore, tmp_path: Path) -> None:
    page = DeltaTable(store)._repr_html_()
    assert "rows cannot be shown" in page
    assert "there is no such file" in page
    late = pa.table({"at": pa.array([2**60], pa.timestamp("us")), "n": [7]})
    write_deltalake(tmp_path, late)
    at, number = _Cells(DeltaTable(tmp_path)._repr_html_()).rows[-1]
    assert (at, number) == ("+38504-08-17 21:30:06.846976", "7")


def test_what_is_made_of_a_table_is_no_markup_either(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    fields = [Field("id", "long"), Field(hostile, "long", metadata={"comment": hostile})]
    mapped = {"delta.columnMapping.mode": "name", hostile: hostile}
    place = tmp_path / "<script>"
    table = DeltaTable.create(place, Schema(fields[:1]), configuration={"a": "b"})
    table.alter.set_table_properties(mapped, raise_if_not_exists=False)
    table.alter.add_columns(fields[1:])
    pages = [
        table._repr_html_(),
        table.diff(0)._repr_html_(),
        table.scan(predicate=col(hostile) == 1).explain()._repr_html_(),
        table.describe()._repr_html_(),
        table.history()._repr_html_(),
        table.doctor()._repr_html_(),
        table.schema()._repr_html_(),
        table.properties._repr_html_(),
        _card_of(table.detail()),
        _card_of(table.update({hostile: "1"}, predicate="id = 1")),
        _card_of(table.delete("id = 1", dry_run=True)),
    ]
    with table.transaction() as tx:
        pages.append(_card_of(tx.do(Delete.where("id = 2"))))
    for page in pages:
        assert _Cells(page).open == []
        assert "<script" not in page
        assert (
            "&lt;script&gt;" in page or "UPDATE" in page or "num_" in page or "DELETE" in page
        )  # results are numbers alone


def test_results_are_dictionaries_with_a_card(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path / "t", Schema([Field("id", "long")]))
    write_deltalake(table, pa.table({"id": range(2000)}), mode="append")
    done = table.delete("id < 1500")
    assert type(done).__mro__[1] is dict
    assert json.loads(json.dumps(done))["num_deleted_rows"] == 1500
    again = pickle.loads(pickle.dumps(done))
    assert (again, again.title) == (done, "DELETE")
    copied: Any = copy.copy(done)
    assert copied.title == "DELETE"
    page = _card_of(done)
    assert "<strong>DELETE: 1,500 rows deleted</strong><details><summary " in page
    assert ["copied rows", "500"] in _Cells(page).rows
    assert all(cells[1] != "0" for cells in _Cells(page).rows)
    for result, title in (
        (table.optimize.compact(), "OPTIMIZE"),
        (table.merge(pa.table({"id": [1]}), "s.id = t.id", "s", "t").when_not_matched_insert_all()
         .execute(), "MERGE"),
        (table.restore(1), "RESTORE"),
        (table.repair(), "FSCK"),
        (table.truncate(), "TRUNCATE"),
    ):  # fmt: skip
        assert re.search(rf"<strong>{title}[:<]", _card_of(result))


def test_values_of_a_card_are_as_people_read_them() -> None:
    facts = {
        "execution_time_ms": 12_345,
        "scan_time_ms": 8,
        "num_rows": 1_234_567,
        "size_bytes": 3 << 20,
        "filesAdded": {"avg": 0.5, "totalSize": 2048},
        "is_so": True,
        "nothing": None,
        "names": list("abc") * 10,
        "files": pa.table({"path": ["<b>"] * 30}),
    }
    facts["timestamp"] = 1_700_000_000_000
    page = ShownFacts(facts, title="<i>")._repr_html_()
    rows = _Cells(page).rows
    assert ["timestamp", "2023-11-14 22:13:20Z"] in rows
    assert ["execution_time_ms", "12.3 s"] in rows
    assert ["scan_time_ms", "8 ms"] in rows
    assert ["num_rows", "1,234,567"] in rows
    assert ["size_bytes", "3.0 MiB"] in rows
    assert ["totalSize", "2.0 KiB"] in rows
    assert ["is_so", "True"] in rows
    assert "nothing" not in [row[0] for row in rows if row]
    assert next(row[1] for row in rows if row[0] == "names").endswith(", … 10 more")
    assert "30 rows" in page
    assert rows.count(["<b>"]) == 20
    assert "<b>" not in page


def test_the_card_of_a_branch_says_so(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", [{"id": 1}])
    write_deltalake(tmp_path / "t", [{"id": 2}], mode="append")
    table = DeltaTable(tmp_path / "t")
    draft = table.branch("nightly")
    cells = _Cells(draft._repr_html_()).rows
    assert ["branch", "nightly, from version 1 of main"] in cells
    assert ["location", f"{tmp_path / 't'}@nightly"] in cells
    assert not any(row[:1] == ["branch"] for row in _Cells(table._repr_html_()).rows)
    soon = table.branch("soon", expires_after=timedelta(days=1))
    assert (
        "; expires 2"
        in next(row for row in _Cells(soon._repr_html_()).rows if row[0] == "branch")[1]
    )


def test_a_table_without_properties_shows_only_defaults(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", [{"id": 1}])
    page = DeltaTable(tmp_path / "t").properties._repr_html_()
    assert "no property is set" in page
    assert "0 set" not in page
    assert ["delta.appendOnly", "false", "Refuse to delete or change rows."] in _Cells(page).rows


def test_properties_show_what_is_set_and_what_holds_by_default(tmp_path: Path) -> None:
    given = {"delta.appendOnly": "true", "mine": "x", "delta.checkpointInterval": "ten"}
    table = DeltaTable.create(
        tmp_path / "t", Schema([Field("id", "long")]), configuration={"delta.appendOnly": "true"}
    )
    page = type(table.properties)(given)._repr_html_()
    rows = [row for row in _Cells(page).rows if row]
    assert ["delta.appendOnly", "true", "false", "Refuse to delete or change rows."] in rows
    assert ["mine", "x", "", ""] in rows
    wrong = next(row for row in rows if row[0] == "delta.checkpointInterval")
    assert wrong[2] == "10"
    assert "found 'ten'" in wrong[3]
    kept = next(row for row in rows if row[0] == "delta.logRetentionDuration")
    assert kept[1] == "interval 30 days"
    assert sum(row[0] == "delta.appendOnly" for row in rows) == 1
    assert "3 set" in page


def test_a_schema_is_shown_as_a_tree() -> None:
    inner = Schema([Field("x", "long", nullable=False)])
    limited = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)", "comment": "<b>"}
    schema = Schema(
        [
            Field("code", "string", metadata=limited),
            Field("pairs", MapType("string", ArrayType(inner))),
            Field("n", "long").identity(start=5),
            Field("d", "date", metadata={"delta.columnMapping.physicalName": "col-1"}).default("1"),
            Field("g", "long").generated_as("n + 1"),
        ]
    )
    page = schema._repr_html_()
    rows = _Cells(page).rows
    assert page.count("<b>") == 0
    assert ["", "varchar(3)", "", "<b>"] in rows  # the name is in a piece of its own
    assert "value.element.x" in page
    assert "identity from 5 by 1" in page
    assert "default 1; stored as col-1" in page
    assert "generated as n + 1" in page
    many = Schema([Field(f"c{number}", "long") for number in range(1000)])._repr_html_()
    assert "… 700 more" in many
    assert ">about</th>" in page
    assert ">type</th>" in many
    assert ">about</th>" not in many  # nothing is known about these columns


# --- Scans, rows and mistakes in a notebook


class _Shell:
    """What deltalog asks of IPython's shell: formatters, and the class that shows tracebacks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = ModuleType("IPython")
        module.get_ipython = lambda: self  # type: ignore[attr-defined]  # a module of the test
        monkeypatch.setitem(sys.modules, "IPython", module)
        self.display_formatter = self
        self.formatters = {"text/html": self}
        self.type_printers: dict[type, Any] = {}

    def for_type(self, kind: type, show: Any) -> None:
        self.type_printers[kind] = show


def test_rows_of_head_are_a_card_and_other_arrow_tables_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = _Shell(monkeypatch)
    write_deltalake(tmp_path, pa.table({"a": [1, None], "b": ["<i>", "x"]}))
    rows = DeltaTable(tmp_path).head()
    show = shell.type_printers[pa.Table]
    assert _Cells(show(rows)).rows[1:] == [["1", "<i>"], ["NULL", "x"]]
    assert show(pa.table({"a": [1]})) is None
    wide = pa.table({f"c{number}": [1] * 200 for number in range(30)})
    shell.type_printers[pa.Table] = "of another library"
    assert "of 200 rows and 30 columns" in (card_of_rows(with_card(wide)) or "")
    assert shell.type_printers[pa.Table] == "of another library"


def test_without_a_notebook_nothing_is_kept(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    assert card_of_rows(DeltaTable(tmp_path).head()) is None


def test_the_card_of_a_scan_has_its_plan_and_rows_of_one_file() -> None:
    place = f"memory://{uuid4()}"
    for number in range(3):
        write_deltalake(place, pa.table({"a": [number] * 4}), mode="append")
    counting = CountingStore(DeltaTable(place).snapshot.store)
    scan = DeltaTable(counting).scan(predicate="a >= 0")
    page = scan._repr_html_()
    assert "files: 3 in the table, 3 to read" in page
    assert len(_Cells(page).rows) == 1 + 4
    read = {path for call in counting.calls for path in call.paths if path.endswith(".parquet")}
    assert len(read) == 1
    ordered = DeltaTable(place).scan(limit=2, order_by="a")._repr_html_()
    assert "some rows" not in ordered
    assert "some rows" not in DeltaTable(place).scan(predicate="a > 7")._repr_html_()


def test_a_scan_whose_file_is_gone_has_a_card_with_the_reason(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    scan = DeltaTable(tmp_path).scan()
    next(tmp_path.glob("*.parquet")).unlink()
    page = scan._repr_html_()
    assert "rows cannot be shown" in page
    assert "there is no such file" in page


def test_properties_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    given = {"b": "1", "delta.appendOnly": "false", "a": "2"}
    write_deltalake(tmp_path, {"id": [1]}, configuration=given)
    table = DeltaTable(tmp_path)
    assert list(table.detail()["properties"]) == ["a", "b", "delta.appendOnly"]
    assert "a=2, b=1, delta.appendOnly=false" in table._repr_html_()
