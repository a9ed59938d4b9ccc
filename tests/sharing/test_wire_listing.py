"""Pages of listings."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.codec import MessageCodec
from deltalog.sharing.wire.lines import (
    SCHEMA,
    SHARE,
    TABLE,
    ListingPage,
    Schema,
    Share,
    Table,
    encode_page,
    encode_share,
    parse_page,
    parse_share,
)


@pytest.mark.protocol("SHARE-LS-01", "SHARE-LS-03", "SHARE-LS-04", "SHARE-LS-T")
def test_pages_are_read_and_written() -> None:
    share = Share(
        name="vaccine_share",
        id="edacc4a7-6600-4fbb-85f3-a62a5ce6761f",
        display_name="Vaccines",
        properties={"a": "b"},
    )
    table = Table(name="t", schema="s", share="vaccine_share", share_id="x", access_modes=("url",))
    pages: list[tuple[ListingPage[Any], MessageCodec[Any]]] = [
        (ListingPage(items=(share,), next_page_token="n"), SHARE),  # noqa: S106
        (ListingPage(items=(Schema(name="s", share="x"),)), SCHEMA),
        (ListingPage(items=(table,)), TABLE),
    ]
    for page, codec in pages:
        assert parse_page(encode_page(page), codec) == page
    assert parse_share(encode_share(share)) == share


@pytest.mark.protocol("SHARE-PG-02")
@pytest.mark.parametrize("body", [b"{}", b'{"items":[],"nextPageToken":""}', b'{"items":null}'])
def test_a_listing_ends(body: bytes) -> None:
    assert parse_page(body, SHARE) == ListingPage()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":{}}', b'{"items":[1]}', b'{"items":[{}]}'])
def test_what_is_no_page(body: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        parse_page(body, SHARE)
