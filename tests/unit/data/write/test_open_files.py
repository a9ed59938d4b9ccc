"""Files that grow: their names, their directories, their statistics."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from deltalog.data.write import write_files
from deltalog.schema import Field
from tests.support.writes import (
    read_back,
    spec_of,
    stats_of,
    table,
    write,
)

PLAIN = table(Field("a", "long"), Field("p", "string"))


BY_P = table(Field("a", "long"), Field("p", "string"), partition_by=["p"])


@pytest.mark.protocol("DF-04", "ADD-02")
def test_a_file_has_a_name_of_its_own() -> None:
    spec = spec_of(PLAIN)
    first, second = (write_files(spec, [{"a": 1}]).adds[0] for _ in range(2))
    assert first.path != second.path
    uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert re.fullmatch(f"part-00000-{uuid}-c000.snappy.parquet", first.path)


@pytest.mark.protocol("D-05", "D-07")
def test_partitions_have_hive_directories() -> None:
    configuration = table(
        Field("a", "long"), Field("s", "string"), Field("t", "timestamp"), partition_by=["s", "t"]
    )
    moment = pa.array([1_704_067_200_500_000, None], pa.timestamp("us", "UTC"))
    spec = spec_of(configuration)
    written = write_files(spec, pa.table({"a": [1, 2], "s": ["x:y é/%", ""], "t": moment}))
    assert [add.path.rpartition("/")[0] for add in written.adds] == [
        "s=x%3Ay é%2F%25/t=2024-01-01 00%3A00%3A00.5",
        "s=__HIVE_DEFAULT_PARTITION__/t=__HIVE_DEFAULT_PARTITION__",
    ]
    assert read_back(spec, written).column("s").to_pylist() == ["x:y é/%", None]


@pytest.mark.protocol("CM-18")
@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({"randomizeFilePrefixes": "true"}, 2),
        ({"randomizeFilePrefixes": "true", "randomPrefixLength": "5"}, 5),
        ({"mapping": "name"}, 2),
        ({"mapping": "id"}, 2),
    ],
)
@pytest.mark.parametrize("partition_by", [[], ["p"]])
def test_directories_that_tell_nothing(
    options: dict[str, str], length: int, partition_by: list[str]
) -> None:
    configuration = table(
        Field("a", "long"), Field("p", "string"),
        partition_by=partition_by, mapping=options.get("mapping", "none"),
        **{name: text for name, text in options.items() if name != "mapping"},
    )  # fmt: skip
    (add,) = write(configuration, [{"a": 1, "p": "x"}]).adds
    directory, _, name = add.path.partition("/")
    assert re.fullmatch(f"[A-Za-z0-9]{{{length}}}", directory)
    assert name.startswith("part-00000-")


@pytest.mark.protocol("STAT-01", "STAT-09", "STAT-12")
def test_statistics_are_collected_over_all_batches() -> None:
    data = pa.table({"a": [3, 1, None, 2], "p": ["b", "a", "c", None]})
    (stats,) = stats_of(write(PLAIN, data.to_batches(max_chunksize=1)))
    assert stats == {
        "numRecords": 4,
        "minValues": {"a": 1, "p": "a"},
        "maxValues": {"a": 3, "p": "c"},
        "nullCount": {"a": 1, "p": 1},
    }
    assert stats_of(write(BY_P, [{"a": 3, "p": "x"}])) == [
        {"numRecords": 1, "minValues": {"a": 3}, "maxValues": {"a": 3}, "nullCount": {"a": 0}}
    ]


@pytest.mark.protocol("STAT-03")
def test_bounds_are_tight_where_they_could_be_wide() -> None:
    configuration = table(Field("a", "long"), features=["deletionVectors"])
    (stats,) = stats_of(write(configuration, [{"a": 1}]))
    assert stats["tightBounds"] is True


@pytest.mark.protocol("STAT-10")
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_the_table_chooses_which_columns_have_statistics(mapping: str) -> None:
    fields = [Field(f"c{number}", "long") for number in range(40)]
    row = [dict.fromkeys((field.name for field in fields), 1)]

    def counted(**properties: str) -> int:
        (stats,) = stats_of(write(table(*fields, mapping=mapping, **properties), row))
        return len(stats["nullCount"])

    assert counted() == 32
    assert counted(dataSkippingNumIndexedCols="3") == 3
    assert counted(dataSkippingNumIndexedCols="-1") == 40
    assert counted(dataSkippingStatsColumns="c39,C38,gone") == 2


@pytest.mark.protocol("STAT-06")
def test_texts_are_cut_as_the_table_says() -> None:
    configuration = table(Field("s", "string"), dataSkippingStringPrefixLength="3")
    (stats,) = stats_of(write(configuration, [{"s": "abcdef"}]))
    assert (stats["minValues"], stats["maxValues"]) == ({"s": "abc"}, {"s": "abc\x7f"})
