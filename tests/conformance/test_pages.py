"""Tables of other writers read by pages: the same rows, with predicates and without."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa
import pytest

from deltalog.data.scan import plan_scan
from deltalog.errors import DeltaError
from deltalog.expressions import col
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.storage import open_store
from deltalog.storage.parquet.excerpt import PAGED
from tests.support.corpora import Entry, covering, readable_entries

pytestmark = pytest.mark.corpus
_MOST_ROWS = 100_000
_MOST_COLUMNS = 12  # one table has 2,000


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read whenever any can be left out."""
    monkeypatch.setattr(PAGED, "least_rows", 1)
    monkeypatch.setattr(PAGED, "most_share", 0.999)
    monkeypatch.setattr("deltalog.data.scan.task._GAP_ROWS", 1)


@contextlib.contextmanager
def without_pages() -> Iterator[None]:
    PAGED.is_on = False
    try:
        yield
    finally:
        PAGED.is_on = True


def _found(snapshot: Snapshot, name: str, value: object) -> str:
    """The rows that hold a value, with their positions, as a text: NaN is no value of its own."""
    try:
        names = list(snapshot.configuration.schema.names)
        if "_metadata" not in names:
            names.append("_metadata.row_index")
        scan = plan_scan(snapshot, columns=names, predicate=col(name) == value)
        return repr(scan.to_table().to_pylist())
    except DeltaError as error:
        return repr(error)


@pytest.mark.parametrize("entry", covering(readable_entries()), ids=str)
def test_rows_found_by_pages(entry: Entry) -> None:
    snapshot = load_snapshot(utc_context(open_store(str(entry.path))))
    with without_pages():
        rows = plan_scan(snapshot).to_table()
    assert plan_scan(snapshot).count() == rows.num_rows
    most_columns = _MOST_COLUMNS if 0 < rows.num_rows <= _MOST_ROWS else min(rows.num_rows, 2)
    for number, field in enumerate(list(rows.schema)[:most_columns]):
        if pa.types.is_nested(field.type) or isinstance(field.type, pa.BaseExtensionType):
            continue
        value = rows.column(number)[rows.num_rows // 2].as_py()
        if value is None or "." in field.name:
            continue
        with without_pages():
            expected = _found(snapshot, field.name, value)
        assert _found(snapshot, field.name, value) == expected
