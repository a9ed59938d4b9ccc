from __future__ import annotations

import dataclasses

import pytest

from deltalog.protocol.actions import (
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
)


@pytest.mark.protocol("D-18")
@pytest.mark.parametrize(
    ("offset", "expected"), [(None, "uab^-aqEH"), (0, "uab^-aqEH@0"), (4, "uab^-aqEH@4")]
)
def test_the_id_of_a_deletion_vector(offset: int | None, expected: str) -> None:
    """The derived field `uniqueId` of the protocol: no offset is not offset 0."""
    vector = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="ab^-aqEH", size_bytes=1, cardinality=1, offset=offset
    )
    assert vector.unique_id == expected


def test_what_is_no_text_or_number_in_commit_info_does_not_count() -> None:
    good = CommitInfo(values={"inCommitTimestamp": 5, "txnId": "x"})
    assert (good.in_commit_timestamp_ms, good.txn_id) == (5, "x")
    bad = CommitInfo(values={"inCommitTimestamp": "5", "txnId": 7})
    assert (bad.in_commit_timestamp_ms, bad.txn_id) == (None, None)


def test_the_text_of_a_domain_in_both_forms() -> None:
    assert DomainMetadata(domain="d", configuration='{"a": 1}').text == '{"a": 1}'
    assert DomainMetadata(domain="d", configuration={"a": "1"}).text == '{"a":"1"}'


def test_actions_are_values() -> None:
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    assert protocol == Protocol(min_reader_version=1, min_writer_version=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        protocol.min_reader_version = 3  # type: ignore[misc]  # what is tested


def test_the_schema_is_not_shown() -> None:
    metadata = Metadata(id="1", schema_string="long" * 100, created_time_ms=7)
    assert "longlong" not in repr(metadata)
    assert metadata.created_time == 7
