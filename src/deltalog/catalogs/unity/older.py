"""Tables in Unity Catalog's older API, for servers without the Delta API.

This module parses the entries of the older API, and commits through its commit coordinator.

Protocol: Unity Catalog API (all.yaml)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalog._util.json import JsonObject, dumps, loads
from deltalog.catalogs.protocol import CatalogTable, Name, StagedTable, TableType, shown_name
from deltalog.catalogs.unity.committer import add_commit, own_properties
from deltalog.catalogs.unity.messages import manages_commits, parse_commit, tail_of
from deltalog.errors import (
    CatalogError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    MalformedMessageError,
    TableExistsError,
)
from deltalog.expressions.render import simple_name
from deltalog.schema.codec import encode_schema, parse_schema
from deltalog.schema.types import PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.catalogs.unity.api import UnityApi
    from deltalog.log.context import LogTail, RatifiedCommit
    from deltalog.log.snapshot import Snapshot
    from deltalog.protocol.actions import Metadata
    from deltalog.schema import Field
    from deltalog.transaction.conflicts import WinningCommit


def find(api: UnityApi, name: Name) -> CatalogTable | None:
    """Return the entry of a table; None if the table does not exist."""
    try:
        node = api.older_table(name)
    except CatalogError as error:
        if error.status == 404:
            return None
        raise
    return _parsed(node, name)


def _parsed(node: JsonObject, name: Name) -> CatalogTable:
    try:
        properties = node.mapping_of_strings("properties") or {}
        is_managed = node.optional("table_type", str) == TableType.MANAGED.value
        return CatalogTable(
            name=name,
            location=node.optional("storage_location", str) or "",  # a view has no location
            table_type=TableType.MANAGED if is_managed else TableType.EXTERNAL,
            table_id=node.optional("table_id", str),
            comment=node.optional("comment", str),
            properties=properties,
            columns=_columns(node.values.get("columns")),
            provider=(node.optional("data_source_format", str) or "unknown").lower(),
        )
    except MalformedLogError as error:
        raise CatalogError(f"cannot load table {shown_name(name)}: {error}") from None


def _columns(listed: object) -> StructType | None:
    """Parse the schema from the columns of an entry; None if deltalog cannot parse it."""
    if not isinstance(listed, list) or not listed:
        return None
    try:
        return StructType(tuple(_field(one) for one in listed))
    except (DeltaError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _field(column: Any) -> Field:
    """Parse a column. Its `type_json` is Spark's JSON of the whole field, or only of the type."""
    found = loads(column["type_json"], "type_json")
    if not isinstance(found, dict) or "name" not in found:
        found = {"type": found}
    nullable = column.get("nullable", found.get("nullable", True))
    tree = {
        "type": "struct",
        "fields": [
            {"metadata": {}, **found, "name": column["name"], "nullable": nullable is not False}
        ],
    }
    return parse_schema(dumps(tree).decode()).fields[0]


def coordinator(api: UnityApi, name: Name, table: CatalogTable) -> OlderCoordinator | None:
    """Return the coordinator of a table's commits; None if the catalog does not coordinate them."""
    if table.table_id is None or not manages_commits(table.properties):
        return None
    return OlderCoordinator(api, name, table.table_id, table.location)


@dataclass(frozen=True, slots=True)
class OlderCoordinator:
    """Coordinates the commits of a table through the older API.

    Args:
        api: the catalog's API.
        name: the name of the table, which has three parts.
        table_id: the id of the table in the catalog.
        location: the location of the table, in the catalog's spelling.
    """

    api: UnityApi
    name: Name
    table_id: str
    location: str

    def tail(self) -> LogTail:
        """Return the latest commits of the table; see `Coordinator.tail`.

        Raises:
            CatalogError: a version is missing in the answer, perhaps because the server limits the
                size of answers.
        """
        node = self.api.older_commits(self.table_id, self.location, self.name)
        try:
            listed = node.values.get("commits") or []
            if not isinstance(listed, list):
                raise MalformedMessageError(f"{node.where}.commits: expected a list")
            commits = [
                parse_commit(type(node)(one, f"commits[{index}]", node.error))
                for index, one in enumerate(listed)
            ]
            found = tail_of(commits, node.required("latest_table_version", int))
            return replace(found, allowed=self.api.maintenance)
        except (MalformedLogError, InvalidInputError) as error:
            raise CatalogError(
                f"cannot get the commits of {shown_name(self.name)}: {error}"
            ) from None

    def propose(
        self,
        ratified: RatifiedCommit,
        commit: WinningCommit,
        before: Metadata | None,
        uniform: Mapping[str, Any] | None = None,
    ) -> LogTail | None:
        """Propose a staged commit; see `Coordinator.propose`. Iceberg metadata is not supported."""
        del uniform
        proposed = add_commit(commit, ratified)["commit"]
        body: dict[str, Any] = {
            "commit_info": {key.replace("-", "_"): value for key, value in proposed.items()}
        }
        if commit.metadata is not None and before is not None:
            body["metadata"] = _metadata(commit.metadata)
        self._send(body)
        # The answer contains no commits, but earlier commits may be unpublished.
        return self.tail()

    def tell_published(self, version: int) -> None:
        """Report the last published version; see `Coordinator.tell_published`."""
        self._send({"latest_backfilled_version": version})

    def report(self, commit: WinningCommit) -> None:
        """Do nothing, because the older API does not support such reports."""

    def _send(self, body: dict[str, Any]) -> None:
        about = {"table_id": self.table_id, "table_uri": self.location}
        self.api.older_commit({**about, **body}, self.name)


def register(api: UnityApi, name: Name, staged: StagedTable, snapshot: Snapshot) -> CatalogTable:
    """Register an external table in the catalog.

    Raises:
        TableExistsError: another table has the name.
    """
    metadata = snapshot.metadata
    body: dict[str, Any] = {
        "catalog_name": name[0],
        "schema_name": name[1],
        "name": name[2],
        "table_type": staged.table_type.value,
        "data_source_format": "DELTA",
        "columns": _column_infos(snapshot.configuration.schema, metadata),
        "storage_location": staged.location,
        "properties": own_properties(metadata.configuration),
    }
    if metadata.description:
        body["comment"] = metadata.description
    try:
        return _parsed(api.older_create(body, name), staged.name)
    except CatalogError as error:
        found = find(api, name) if error.status in {None, 400, 409, 500} else None
        if found is None:
            raise
        if found.location.rstrip("/") == staged.location.rstrip("/"):
            return found  # an earlier attempt had succeeded, but its answer was lost
        raise TableExistsError(
            f"cannot register {shown_name(name)}: the catalog has another table of that name"
        ) from error


def _metadata(metadata: Metadata) -> dict[str, Any]:
    columns = _column_infos(parse_schema(metadata.schema_string), metadata)
    found: dict[str, Any] = {
        "schema": {"columns": columns},
        "properties": {"properties": own_properties(metadata.configuration)},
    }
    if metadata.description is not None:
        found["description"] = metadata.description
    return found


def _column_infos(schema: StructType, metadata: Metadata) -> list[dict[str, Any]]:
    fields = loads(encode_schema(schema), "schema")["fields"]
    return [
        _column_info(field, tree, position, metadata)
        for position, (field, tree) in enumerate(zip(schema.fields, fields, strict=True))
    ]


def _column_info(
    field: Field, tree: dict[str, Any], position: int, metadata: Metadata
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": field.name,
        "type_text": simple_name(field.type),
        "type_json": dumps(tree).decode(),
        "type_name": _kind_of(tree["type"]),
        "position": position,
        "nullable": field.nullable,
    }
    if isinstance(field.type, PrimitiveType) and field.type.is_decimal:
        found |= {"type_precision": field.type.precision, "type_scale": field.type.scale}
    comment = tree.get("metadata", {}).get("comment")
    if isinstance(comment, str):
        found["comment"] = comment
    if field.name in metadata.partition_columns:
        found["partition_index"] = metadata.partition_columns.index(field.name)
    return found


def _kind_of(tree: Any) -> str:
    """Return the older API's name of a type: the name in the JSON of the schema, in upper case."""
    name = tree["type"] if isinstance(tree, dict) else tree.partition("(")[0]
    return str(name).upper().replace("INTEGER", "INT")
