"""Catalogs, schemas and tables of a Unity Catalog server by their names.

Owns their listings, and how catalogs and schemas are made and dropped. The Delta API has none of
that.

Protocol: Unity Catalog API (all.yaml)
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.catalogs.protocol import Name, shown_name
from deltalog.catalogs.unity.client import Question, path_of
from deltalog.errors import CatalogError, DeltaError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog._json import JsonObject
    from deltalog.catalogs.unity.client import UnityClient

_MOST_PAGES: Final = 100_000
_MAY_EXIST: Final = frozenset({400, 409, 500})


@dataclass(frozen=True, slots=True)
class UnityNames:
    """What a server has, by name."""

    client: UnityClient

    def catalogs(self) -> list[str]:
        """The names of all catalogs."""
        return sorted(self._listed("list the catalogs", "/catalogs", {}, "catalogs"))

    def schemas(self, catalog: str) -> list[str]:
        """The names of a catalog's schemas."""
        what = f"list the schemas of {shown_name((catalog,))}"
        return sorted(self._listed(what, "/schemas", {"catalog_name": catalog}, "schemas"))

    def tables(self, catalog: str, schema: str) -> list[str]:
        """The names of a schema's tables."""
        what = f"list the tables of {shown_name((catalog, schema))}"
        query = {"catalog_name": catalog, "schema_name": schema}
        return sorted(self._listed(what, "/tables", query, "tables"))

    def has(self, name: Name) -> bool:
        """Whether there is a catalog, or a schema, of a name of one or two parts."""
        what = f"load {_kind(name)} {shown_name(name)}"
        try:
            self.client.send(Question(what=what, method="GET", path=_path(name)))
        except CatalogError as error:
            if error.status != 404:
                raise
            return False
        return True

    def missing(self, table: Name) -> str:
        """What is missing of a table that is not there, in words."""
        for kind, part in (("catalog", table[:1]), ("schema", table[:2])):
            with suppress(DeltaError):  # it only makes an error clearer
                if not self.has(part):
                    return f"there is no {kind} {shown_name(part)}"
        return f"there is no table {shown_name(table)} in the catalog"

    def create(
        self,
        name: Name,
        comment: str | None,
        location: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """Make a catalog, or a schema, whose name has two parts.

        Raises:
            CatalogError: with the status 409 if there is one.
        """
        body: dict[str, Any] = {"name": name[-1]}
        if len(name) > 1:
            body["catalog_name"] = name[0]
        more = {"comment": comment, "storage_root": location, "properties": properties}
        body |= {key: value for key, value in more.items() if value}
        kind, path = _kind(name), "/catalogs" if len(name) == 1 else "/schemas"
        what = f"create {kind} {shown_name(name)}"
        try:
            self.client.send(Question(what=what, method="POST", path=path, body=body))
        except CatalogError as error:
            # Servers disagree about the status.
            if error.status not in _MAY_EXIST or not self.has(name):
                raise
            raise CatalogError(f"cannot {what}: there is one", status=409) from error

    def drop(self, name: Name, *, cascade: bool) -> None:
        """Drop a catalog, or a schema, and what is in it if `cascade` says so."""
        question = Question(
            what=f"drop {_kind(name)} {shown_name(name)}",
            method="DELETE",
            path=_path(name),
            query={"force": "true"} if cascade else None,
        )
        self.client.send(question)

    def _listed(self, what: str, path: str, query: Mapping[str, str], member: str) -> list[str]:
        return [name for page in self._pages(what, path, query, member) for name in page]

    def _pages(
        self, what: str, path: str, query: Mapping[str, str], member: str
    ) -> Iterator[list[str]]:
        token, seen = "", set[str]()
        for _ in range(_MOST_PAGES):
            more = {"page_token": token} if token else {}
            question = Question(what=what, method="GET", path=path, query={**query, **more})
            names, token = self.client.ask(question, lambda node: _parse_page(node, member))
            yield names
            if not token:
                return
            if token in seen:
                break
            seen.add(token)
        raise CatalogError(f"cannot {what}: the pages of the listing do not end")


def _kind(name: Name) -> str:
    return "catalog" if len(name) == 1 else "schema"


def _path(name: Name) -> str:
    """The path of a catalog or a schema."""
    if len(name) == 1:
        return path_of("/catalogs/{name}", name=name[0])
    for part in name:
        if "." in part:  # dots divide names there, so it would be another schema
            raise InvalidInputError(
                f"cannot ask the server about {part!r}: with a dot that is no name there"
            )
    return path_of("/schemas/{name}", name=".".join(name))


def _parse_page(node: JsonObject, member: str) -> tuple[list[str], str]:
    listed = node.values.get(member) or ()
    names = []
    for index, one in enumerate(listed if isinstance(listed, list | tuple) else ()):
        where = f"{node.where}.{member}[{index}]"
        names.append(type(node)(one, where, node.error).required("name", str))
    return names, node.optional("next_page_token", str) or ""
