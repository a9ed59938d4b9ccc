from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.features.in_commit_timestamps import (
    InCommitTimestamps,
    enablement,
    next_timestamp_ms,
)

ON = {"delta.enableInCommitTimestamps": "true"}


LATER = ON | {
    "delta.inCommitTimestampEnablementVersion": "3",
    "delta.inCommitTimestampEnablementTimestamp": "1000",
}


@pytest.mark.protocol("B-22")
def test_from_when_on_commits_carry_their_time() -> None:
    assert enablement(TableProperties(ON), supported=True) == InCommitTimestamps()
    since = enablement(TableProperties(LATER), supported=True)
    assert since == InCommitTimestamps(version=3, timestamp_ms=1000)
    assert since is not None
    assert [since.covers(version) for version in (2, 3, 4)] == [False, True, True]


@pytest.mark.protocol("B-22")
def test_without_property_or_feature_there_are_none() -> None:
    off = LATER | {"delta.enableInCommitTimestamps": "false"}
    assert enablement(TableProperties(off), supported=True) is None
    assert enablement(TableProperties(LATER), supported=False) is None
    assert enablement(TableProperties({}), supported=True) is None


def test_half_an_enablement_is_an_error() -> None:
    half = ON | {"delta.inCommitTimestampEnablementVersion": "3"}
    with pytest.raises(InvalidMetadataError, match="expected both"):
        enablement(TableProperties(half), supported=True)


@pytest.mark.protocol("B-22")
def test_time_never_stands_still() -> None:
    assert next_timestamp_ms(900, 1000) == 1001
    assert next_timestamp_ms(1000, 1000) == 1001
    assert next_timestamp_ms(2000, 1000) == 2000
    assert next_timestamp_ms(5, None) == 5
