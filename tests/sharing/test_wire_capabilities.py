"""The header by which client and server agree on a format."""

from __future__ import annotations

import pytest

from deltalog.sharing.wire.requests import Capabilities, encode_capabilities, parse_capabilities


@pytest.mark.protocol("SHARE-CAP-01", "SHARE-CAP-02")
def test_capabilities_in_any_case() -> None:
    found = parse_capabilities(
        " ResponseFormat = DELTA , parquet ; readerFeatures=DeletionVectors,columnMapping;"
        "includeEndStreamAction=TRUE;later=1;asyncquery=true;;="
    )
    assert found == Capabilities(
        response_formats=("delta", "parquet"),
        reader_features=frozenset({"deletionvectors", "columnmapping"}),
        include_end_stream_action=True,
        asynchronous=True,
    )
    assert parse_capabilities(encode_capabilities(found)) == found
    for header in (None, "", "readerfeatures=x"):
        assert parse_capabilities(header).formats == ("parquet",)
