"""Catalogs, schemas and tables of a Unity Catalog server by their names.

Owns their listings, and how catalogs and schemas are made and dropped. The Delta API has none of
that.

Protocol: Unity Catalog API (all.yaml)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.catalogs.protocol import Name, shown_name
from deltalog.catalogs.unity.client import Question, path_of
from deltalog.errors import CatalogError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog._json import JsonObject
    from deltalog.catalogs.unity.client import UnityClient

_MOST_PAGES: Final = 100_000


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

    def has_catalog(self, catalog: str) -> bool:
        """Whether there is a catalog of a name."""
        return self._is_there(f"load catalog {shown_name((catalog,))}", _path((catalog,)))

    def has_schema(self, schema: Name) -> bool:
        """Whether there is a schema of a name of two parts."""
        return self._is_there(f"load schema {shown_name(schema)}", _path(schema))

    def create_catalog(self, catalog: str, more: Mapping[str, Any]) -> None:
        """Make a catalog; `more` has what is known besides its name."""
        what = f"create catalog {shown_name((catalog,))}"
        body = {"name": catalog, **more}
        self.client.send(Question(what=what, method="POST", path="/catalogs", body=body))

    def create_schema(self, schema: Name, more: Mapping[str, Any]) -> None:
        """Make a schema; `more` has what is known besides its name."""
        what = f"create schema {shown_name(schema)}"
        body = {"name": schema[1], "catalog_name": schema[0], **more}
        self.client.send(Question(what=what, method="POST", path="/schemas", body=body))

    def drop(self, name: Name, *, cascade: bool) -> None:
        """Drop a catalog, or a schema, and what is in it if `cascade` says so."""
        kind = "catalog" if len(name) == 1 else "schema"
        question = Question(
            what=f"drop {kind} {shown_name(name)}",
            method="DELETE",
            path=_path(name),
            query={"force": "true"} if cascade else None,
        )
        self.client.send(question)

    def _is_there(self, what: str, path: str) -> bool:
        try:
            self.client.send(Question(what=what, method="GET", path=path))
        except CatalogError as error:
            if error.status != 404:
                raise
            return False
        return True

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
