"""Listings: shares, schemas and tables, by pages.

Protocol: List Shares, Get Share, List Schemas in a Share, List Tables in a Schema, List all Tables
in a Share
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from deltalog._json import JsonObject, dumps, loads
from deltalog.errors import MalformedLogError, MalformedMessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share: what is given to a recipient as one.

    Args:
        id: never changes, and no other share of the server has it.
    """

    name: str
    id: str | None = None
    display_name: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema: tables under one name."""

    name: str
    share: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a schema.

    Args:
        location: told only where the recipient may read the table's directory itself.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Some of the items, and the token by which the next ones are asked for.

    Args:
        next_page_token: None at the end of the listing. Fewer items than asked for are no end.
    """

    items: tuple[T, ...] = ()
    next_page_token: str | None = None


def share_from_json(node: JsonObject) -> Share:
    """One item of the listing of shares."""
    return Share(
        name=node.required("name", str),
        id=node.optional("id", str),
        display_name=node.optional("displayName", str),
        comment=node.optional("comment", str),
        properties=node.mapping_of_strings("properties") or {},
    )


def schema_from_json(node: JsonObject) -> Schema:
    """One item of the listing of schemas."""
    return Schema(name=node.required("name", str), share=node.required("share", str))


def table_from_json(node: JsonObject) -> Table:
    """One item of a listing of tables."""
    return Table(
        name=node.required("name", str),
        schema=node.required("schema", str),
        share=node.required("share", str),
        share_id=node.optional("shareId", str),
        id=node.optional("id", str),
        location=node.optional("location", str),
        auxiliary_locations=node.texts("auxiliaryLocations") or (),
        access_modes=node.texts("accessModes") or (),
    )


def _share_to_json(share: Share) -> dict[str, Any]:
    return {
        "name": share.name,
        "id": share.id,
        "displayName": share.display_name,
        "comment": share.comment,
        "properties": dict(share.properties) or None,
    }


def _schema_to_json(schema: Schema) -> dict[str, Any]:
    return {"name": schema.name, "share": schema.share}


def _table_to_json(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "schema": table.schema,
        "share": table.share,
        "shareId": table.share_id,
        "id": table.id,
        "location": table.location,
        "auxiliaryLocations": list(table.auxiliary_locations) or None,
        "accessModes": list(table.access_modes) or None,
    }


_ENCODERS: Final[Mapping[type, Callable[[Any], dict[str, Any]]]] = {
    Share: _share_to_json,
    Schema: _schema_to_json,
    Table: _table_to_json,
}


def parse_page(data: bytes, parse: Callable[[JsonObject], T], where: str = "listing") -> Page[T]:
    """One page of a listing.

    Args:
        data: the body.
        parse: `share_from_json`, `schema_from_json` or `table_from_json`.
        where: what was listed, for errors.

    Raises:
        MalformedMessageError: the body is no such page.
    """
    node = message_object(data, where)
    items = node.values.get("items")
    if items is None:
        items = []
    if not isinstance(items, list):
        raise MalformedMessageError(f"{where}.items: expected a list")
    return Page(
        items=tuple(
            parse(JsonObject(item, f"{where}.items[{index}]", MalformedMessageError))
            for index, item in enumerate(items)
        ),
        next_page_token=node.optional("nextPageToken", str) or None,
    )


def parse_share(data: bytes) -> Share:
    """The body of `GET /shares/{share}`.

    Raises:
        MalformedMessageError: it tells no share.
    """
    share = message_object(data, "share").child("share", share_from_json)
    if share is None:
        raise MalformedMessageError("share: the answer holds none")
    return share


def encode_page(page: Page[Share] | Page[Schema] | Page[Table]) -> bytes:
    """The body of a listing's answer."""
    body: dict[str, Any] = {"items": [_present(_ENCODERS[type(one)](one)) for one in page.items]}
    if page.next_page_token is not None:
        body["nextPageToken"] = page.next_page_token
    return dumps(body)


def encode_share(share: Share) -> bytes:
    """The body of the answer to `GET /shares/{share}`."""
    return dumps({"share": _present(_share_to_json(share))})


def message_object(data: bytes, where: str) -> JsonObject:
    """The one object of a message, whose faults are `MalformedMessageError`."""
    try:
        values = loads(data, where)
    except MalformedLogError as error:
        raise MalformedMessageError(str(error)) from None
    return JsonObject(values, where, MalformedMessageError)


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
