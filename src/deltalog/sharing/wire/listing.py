"""Listings: pages of shares, schemas and tables.

Protocol: List Shares, Get Share, List Schemas in a Share, List Tables in a Schema, List all Tables
in a Share
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from deltalog._json import JsonObject, dumps
from deltalog.errors import MalformedMessageError
from deltalog.sharing.wire.codec import (
    MessageCodec,
    optional_text,
    parse_object,
    required_text,
    string_map,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A logical grouping of schemas that is shared with recipients.

    Args:
        id: "unique across the sharing server and stay[s] immutable through the share's lifecycle".
    """

    name: str
    id: str | None = None
    display_name: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A logical grouping of tables in a share."""

    name: str
    share: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a schema of a share.

    Args:
        location: given only to recipients that may read the table's directory.
        access_modes: `url` (signed URLs, the default) and `dir` (temporary credentials).
    """

    name: str
    schema: str
    share: str
    share_id: str | None = None
    id: str | None = None
    location: str | None = None
    auxiliary_locations: tuple[str, ...] = ()
    access_modes: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """`share.schema.table`."""
        return f"{self.share}.{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingPage(Generic[T]):
    """One page of a listing.

    Args:
        next_page_token: gets the next page; None at the end of the listing. "The server may return
            fewer than maxResults items even if there are more available."
    """

    items: tuple[T, ...] = ()
    next_page_token: str | None = None


SHARE: Final = MessageCodec(
    Share,
    name=required_text("name"),
    id=optional_text("id"),
    display_name=optional_text("displayName"),
    comment=optional_text("comment"),
    properties=string_map("properties"),
)
SCHEMA: Final = MessageCodec(Schema, name=required_text("name"), share=required_text("share"))
TABLE: Final = MessageCodec(
    Table,
    name=required_text("name"),
    schema=required_text("schema"),
    share=required_text("share"),
    share_id=optional_text("shareId"),
    id=optional_text("id"),
    location=optional_text("location"),
    auxiliary_locations=texts("auxiliaryLocations"),
    access_modes=texts("accessModes"),
)
_CODECS: Final[Mapping[type, MessageCodec[Any]]] = {Share: SHARE, Schema: SCHEMA, Table: TABLE}


def parse_page(data: bytes, codec: MessageCodec[T], where: str = "listing") -> ListingPage[T]:
    """Return one page of a listing.

    Args:
        data: the body of the response.
        codec: `SHARE`, `SCHEMA` or `TABLE`.
        where: what is listed, for errors.

    Raises:
        MalformedMessageError: the body is no such page.
    """
    node = parse_object(data, where)
    # "The items field may be an empty array or missing when no results are found", and so may
    # the token be an empty text: "The client must handle both cases."
    items = node.values.get("items")
    if not isinstance(items, list | None):
        raise MalformedMessageError(f"{where}.items: expected a list")
    return ListingPage(
        items=tuple(
            codec.parse(JsonObject(item, f"{where}.items[{index}]", MalformedMessageError))
            for index, item in enumerate(items or ())
        ),
        next_page_token=node.optional("nextPageToken", str) or None,
    )


def parse_share(data: bytes) -> Share:
    """Return the share in the body of `GET /shares/{share}`.

    Raises:
        MalformedMessageError: the body has no share.
    """
    share = parse_object(data, "share").child("share", SHARE.parse)
    if share is None:
        raise MalformedMessageError("share: the response has none")
    return share


def encode_page(page: ListingPage[Share] | ListingPage[Schema] | ListingPage[Table]) -> bytes:
    """Return the body of a page of a listing."""
    body: dict[str, Any] = {"items": [_CODECS[type(one)].encode(one) for one in page.items]}
    if page.next_page_token is not None:
        body["nextPageToken"] = page.next_page_token
    return dumps(body)


def encode_share(share: Share) -> bytes:
    """Return the body of the response to `GET /shares/{share}`."""
    return dumps({"share": SHARE.encode(share)})
