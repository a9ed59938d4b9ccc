from __future__ import annotations

import pytest

from deltalog.data.write.options import codec_of
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import (
    PARQUET_CODECS,
    TableProperties,
    canonical_key,
    check_settable,
)


@pytest.mark.protocol("D-38")
@pytest.mark.parametrize(
    ("key", "canonical"),
    [
        ("delta.APPENDONLY", "delta.appendOnly"),
        ("DELTA.minreaderversion", "delta.minReaderVersion"),
        ("delta.enableChangeDataCapture", "delta.enableChangeDataFeed"),
        ("delta.constraints.Positive", "delta.constraints.positive"),
        ("my.Key", "my.Key"),
        ("delta.universalFormat.iceberg.x", "delta.universalFormat.iceberg.x"),
        ("delta.feature.rowTracking", "delta.feature.rowTracking"),
    ],
)
def test_known_keys_in_any_case(key: str, canonical: str) -> None:
    assert canonical_key(key) == canonical


@pytest.mark.protocol("PROP-01")
def test_an_unknown_key_of_delta_is_kept_and_not_settable() -> None:
    assert TableProperties({"delta.future": "x"}).configuration == {"delta.future": "x"}
    with pytest.raises(InvalidInputError, match=r"did you mean 'delta\.appendOnly'"):
        check_settable({"delta.appendOnyl": "true"})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"delta.checkpointInterval": "0"}, "whole number of 1 or more"),
        ({"delta.columnMapping.maxColumnId": "4"}, "only writers may set it"),
        ({"delta.isolationLevel": "SnapshotIsolation"}, "expected Serializable"),
        ({"delta.minWriterVersion": "x"}, "whole number"),
        ({"delta.appendOnly": "true", "DELTA.appendonly": "false"}, "given twice"),
        ({"delta.columnMapping.mode": "names"}, "expected one of none, id, name"),
        ({"delta.parquet.compression.codec": "rar"}, "expected one of uncompressed, none, snappy"),
        ({"delta.parquet.compression.codec": "lzo"}, "found 'lzo'"),
        ({"delta.parquet.compression.codec": ""}, "found ''"),
    ],
)
def test_what_a_user_may_not_set(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_settable(properties)


@pytest.mark.parametrize(
    ("key", "given", "stored"),
    [
        ("delta.columnMapping.mode", "NAME", "name"),
        ("delta.appendOnly", "True", "true"),
        ("delta.enableChangeDataFeed", " TRUE ", "true"),
        ("delta.isolationLevel", "serializable", "Serializable"),
        ("delta.checkpointPolicy", "V2", "v2"),
        ("delta.parquet.compression.codec", "Zstd", "zstd"),
        ("delta.autoOptimize.autoCompact", "AUTO", "auto"),
        ("delta.autoOptimize.autoCompact", "False", "false"),
        ("delta.checkpointInterval", " +20 ", "20"),
        ("delta.universalFormat.enabledFormats", "Iceberg", "iceberg"),
        ("delta.logRetentionDuration", "30 days", "interval 30 days"),
        ("delta.logRetentionDuration", "INTERVAL  1  WEEK", "interval 1 week"),
        ("delta.logRetentionDuration", "interval 2 days 12 hours", "interval 60 hours"),
        ("delta.logRetentionDuration", "interval 1.5 seconds", "interval 1500 milliseconds"),
        ("delta.logRetentionDuration", "+7 days", "interval 7 days"),
    ],
)
def test_values_are_stored_as_other_engines_know_them(key: str, given: str, stored: str) -> None:
    assert check_settable({key: given}) == {key: stored}


def test_every_value_that_is_stored_means_what_was_given() -> None:
    given = "interval 3 weeks 1 day 2.000001 seconds"
    [stored] = check_settable({"delta.logRetentionDuration": given}).values()
    assert stored == "interval 1900802000001 microseconds"
    assert TableProperties({"delta.logRetentionDuration": stored}).log_retention_ms == (
        TableProperties({"delta.logRetentionDuration": given}).log_retention_ms
    )


def test_what_a_user_may_set_keeps_its_text() -> None:
    asked = {
        "Delta.logRetentionDuration": "interval 1 days",
        "delta.constraints.A": "x > 1",
        "z": "",
    }
    assert check_settable(asked) == {
        "delta.logRetentionDuration": "interval 1 days",
        "delta.constraints.a": "x > 1",
        "z": "",
    }


@pytest.mark.parametrize("codec", [*PARQUET_CODECS, "ZSTD", "Snappy"])
def test_every_codec_that_can_be_set_can_be_written(codec: str) -> None:
    asked = check_settable({"delta.parquet.compression.codec": codec})
    assert codec_of(None, TableProperties(asked))
