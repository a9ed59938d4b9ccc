"""Files of Spark's old calendar. The expected numbers were read by Spark 4.2."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.data.scan.transform import rebase_dates, rebase_timestamps
from tests.support.raw_tables import DataTable, struct_of

LEGACY = "org.apache.spark.legacyDateTime"
LEGACY_INT96 = "org.apache.spark.legacyINT96"
# 1000-02-29 was a day only in the old calendar: it becomes 1 March.
OLD_DAYS = [-719164, -354281, -354221, -354220, -141428, -141427, 0, None]
NEW_DAYS = [-719162, -354286, -354226, -354226, -141438, -141427, 0, None]
UTC = pa.timestamp("us", "UTC")
DAY_US = 86_400_000_000


def instants(values: list[int | None]) -> pa.Array[Any]:
    return pa.array(values, pa.int64()).view(UTC)


def as_numbers(array: Any) -> list[int | None]:
    kind = pa.int32() if array.type == pa.date32() else pa.int64()
    found: list[int | None] = array.view(kind).to_pylist()
    return found


@pytest.mark.protocol("D-69")
def test_dates_keep_their_day_of_the_month() -> None:
    dates = pa.array(OLD_DAYS, pa.int32()).view(pa.date32())
    assert as_numbers(rebase_dates(dates)) == NEW_DAYS


@pytest.mark.protocol("D-69")
@pytest.mark.parametrize(
    ("year", "day", "days_off"),
    [
        (1, 2, 2),
        (100, 1, 2),
        (200, 1, 1),
        (400, 1, -1),
        (1000, 1, -5),
        (1500, 1, -9),
        (1582, 1, -10),
    ],
)
def test_the_calendars_drift_apart(year: int, day: int, days_off: int) -> None:
    iso = (dt.date(year, 1, day) - dt.date(1970, 1, 1)).days
    dates = pa.array([iso - days_off], pa.int32()).view(pa.date32())
    assert as_numbers(rebase_dates(dates)) == [iso]


@pytest.mark.protocol("D-69")
def test_in_utc_timestamps_move_by_whole_days() -> None:
    old = [None if day is None else day * DAY_US + 1 for day in OLD_DAYS]
    new = [None if day is None else day * DAY_US + 1 for day in NEW_DAYS]
    assert as_numbers(rebase_timestamps(instants(old), "UTC")) == new


@pytest.mark.protocol("D-69")
@pytest.mark.parametrize(
    ("zone", "old", "new"),
    [
        # Java's old zones knew no local mean time; its new ones do.
        ("America/Los_Angeles", "1000-03-05T20:34:56.789012", "1000-02-28T20:27:54.789012"),
        ("America/Los_Angeles", "1500-03-11T08:00:01", "1500-03-01T07:52:59"),
        ("America/Los_Angeles", "1883-11-10T09:02:03", "1883-11-10T08:55:01"),
        ("America/Los_Angeles", "1883-11-18T20:03:00", "1883-11-18T20:03:00"),  # shown twice
        ("Europe/Berlin", "1893-03-31T23:03:00", "1893-03-31T23:09:32"),  # never shown
        ("America/Los_Angeles", "1900-01-01T00:00:00", "1900-01-01T00:00:00"),
        ("+02:30", "1500-03-10T21:30:00", "1500-02-28T21:30:00"),
        ("GMT-8", "1500-03-12T07:59:59", "1500-03-02T07:59:59"),
    ],
)
def test_clocks_of_a_zone(zone: str, old: str, new: str) -> None:
    stored = pa.array([dt.datetime.fromisoformat(old)], UTC)
    shown = pa.array([dt.datetime.fromisoformat(new)], UTC)
    assert rebase_timestamps(stored, zone).equals(shown)


def legacy_table(*notes: str, version: str = "2.4.8", int96: bool = False) -> DataTable:
    """1000-02-28 of the old calendar, and 1970-01-01, in a row group each."""
    nested = struct_of(("d", "date"), ("l", {"type": "array", "elementType": "timestamp"}))
    nested["fields"][1]["type"]["containsNull"] = True
    table = DataTable([("d", "date"), ("t", "timestamp"), ("n", nested)])
    day = pa.array([-354222, 0], pa.int32()).view(pa.date32())
    instant = instants([-354222 * DAY_US, 0])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), instant)
    data = pa.table(
        {"d": day, "t": instant, "n": pa.StructArray.from_arrays([day, lists], ["d", "l"])}
    )
    footer = {"org.apache.spark.version": version, **dict.fromkeys(notes, "")}
    add = table.add(
        data.replace_schema_metadata(footer),
        options={"use_deprecated_int96_timestamps": int96, "row_group_size": 1},
    )
    table.commit(add)
    return table


def test_notes_that_are_no_texts_say_nothing() -> None:
    table = DataTable([("d", "date")])
    data = pa.table({"d": pa.array([-354222], pa.int32()).view(pa.date32())})
    for notes in (
        {"org.apache.spark.version": b"\xff"},
        {"org.apache.spark.version": b"3.5.0", LEGACY: b"", "org.apache.spark.timeZone": b"\xff"},
    ):
        table.commit(table.add(data.replace_schema_metadata(notes)))
    assert len(table.rows()) == 2


OLD, NEW = (dt.datetime(1000, 3, 5, tzinfo=dt.UTC), dt.datetime(1000, 2, 28, tzinfo=dt.UTC))


@pytest.mark.protocol("D-69")
@pytest.mark.parametrize(
    ("table", "date", "time"),
    [
        (legacy_table(), NEW, NEW),
        (legacy_table(int96=True), NEW, NEW),
        (legacy_table(version="3.0.2"), OLD, OLD),
        (legacy_table(version="3.0.2", int96=True), OLD, NEW),
        (legacy_table(version="3.1.0", int96=True), OLD, OLD),
        (legacy_table(version="10.0.0"), OLD, OLD),
        (legacy_table(LEGACY, version="4.2.0"), NEW, NEW),
        (legacy_table(LEGACY, version="4.2.0", int96=True), NEW, OLD),
        (legacy_table(LEGACY_INT96, version="4.2.0"), OLD, OLD),
        (legacy_table(LEGACY_INT96, version="4.2.0", int96=True), OLD, NEW),
    ],
)
def test_the_footer_tells(table: DataTable, date: dt.datetime, time: dt.datetime) -> None:
    assert table.rows()[0] == (date.date(), time, {"d": date.date(), "l": [time]})


@pytest.mark.protocol("D-69")
def test_a_file_without_a_version_is_taken_as_it_is() -> None:
    table = DataTable([("d", "date")])
    data = pa.table({"d": [OLD.date()]}).replace_schema_metadata({LEGACY: ""})
    table.commit(table.add(data))
    assert table.rows() == [OLD.date()]


@pytest.mark.protocol("D-69")
@pytest.mark.parametrize("where", ["d = date'1000-02-28'", "t < timestamp'1000-03-01'"])
def test_bounds_of_the_footer_are_of_the_old_calendar(where: str) -> None:
    assert legacy_table().scan(where).count() == 1


@pytest.mark.protocol("D-69")
def test_without_a_zone_nothing_is_rebased() -> None:
    table = DataTable([("t", "timestamp_ntz")], features=["timestampNtz"])
    plain = OLD.replace(tzinfo=None)
    data = pa.table({"t": [plain]}).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    table.commit(table.add(data))
    assert table.rows() == [plain]


@pytest.mark.protocol("D-69")
def test_a_widened_date_is_rebased_first() -> None:
    table = DataTable([("t", "timestamp_ntz")], features=["timestampNtz", "typeWidening"])
    data = pa.table({"t": [OLD.date()]})
    footer = {"org.apache.spark.version": "2.4.8"}
    table.commit(table.add(data.replace_schema_metadata(footer)))
    assert table.rows() == [NEW.replace(tzinfo=None)]


@pytest.mark.protocol("D-69")
def test_the_writers_zone_is_in_the_footer() -> None:
    table = DataTable([("t", "timestamp")])
    stored = dt.datetime(1500, 3, 11, 8, 0, 1, tzinfo=dt.UTC)
    footer = {
        "org.apache.spark.version": "2.4.8",
        "org.apache.spark.timeZone": "America/Los_Angeles",
    }
    table.commit(table.add(pa.table({"t": [stored]}).replace_schema_metadata(footer)))
    assert table.rows() == [dt.datetime(1500, 3, 1, 7, 52, 59, tzinfo=dt.UTC)]


@pytest.mark.protocol("D-69")
@pytest.mark.parametrize(
    ("precision", "physical"),
    [(9, "INT32"), (18, "INT64"), (9, "FIXED_LEN_BYTE_ARRAY"), (38, "FIXED_LEN_BYTE_ARRAY")],
)
def test_decimals_in_every_encoding(precision: int, physical: str) -> None:
    kind = pa.decimal128(precision, 2)
    table = DataTable([("d", f"decimal({precision},2)")])
    values = [Decimal("-12.30"), Decimal("0.01"), None]
    options = {"store_decimal_as_integer": physical.startswith("INT"), "row_group_size": 1}
    add = table.add(pa.table({"d": pa.array(values, kind)}), options=options)
    table.commit(add)
    file = pq.ParquetFile(io.BytesIO(table.store.files[add["add"]["path"]]))
    assert file.schema.column(0).physical_type == physical
    assert table.rows() == values
    assert table.rows("d > 0") == [Decimal("0.01")]
