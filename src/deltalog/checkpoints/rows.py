"""Actions as rows of a checkpoint: a struct column for each kind, one of which is not null.

Owns the columns that table properties require: statistics as JSON or typed, typed partition values.
The caller decides which actions there are; `writer` owns files and names.

Protocol: Checkpoint Schema
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._json import dumps
from deltalog.actions import arrow
from deltalog.actions.codec import action_to_json
from deltalog.checkpoints.schema import PARTITION_VALUES, PARTITION_VALUES_PARSED, nulls
from deltalog.kernels import compute
from deltalog.partition_values import extract, parse_column
from deltalog.schema import StructType
from deltalog.schema.arrow import to_arrow_type
from deltalog.stats import indexed_columns, leaves_of_schema, nest, stats_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.actions.model import Action, DomainMetadata
    from deltalog.configuration import TableConfiguration
    from deltalog.stats import StatsLeaf


FILE_KINDS: Final = ("add", "remove")
_SMALL_TYPES: Final[Mapping[str, pa.DataType]] = {
    "protocol": arrow.PROTOCOL_TYPE,
    "metaData": arrow.METADATA_TYPE,
    "txn": arrow.TXN_TYPE,
    "domainMetadata": arrow.DOMAIN_TYPE,
}
_V2_TYPES: Final[Mapping[str, pa.DataType]] = {
    "checkpointMetadata": arrow.CHECKPOINT_METADATA_TYPE,
    "sidecar": arrow.SIDECAR_TYPE,
}


def stats_leaves(configuration: TableConfiguration) -> list[StatsLeaf]:
    """The leaves of `stats_parsed`, by physical names; none if typed statistics are not written.

    Protocol: Checkpoint Schema (`stats_parsed`), Table Properties
    """
    properties = configuration.properties
    if not properties.checkpoint_write_stats_as_struct:
        return []
    partitions = set(configuration.physical_partition_columns)
    fields = [
        field for field in configuration.physical_schema.fields if field.name not in partitions
    ]
    indexed = indexed_columns(
        StructType(fields),
        num_indexed_columns=properties.data_skipping_num_indexed_cols,
        columns=configuration.physical_stats_columns,
    )
    bounds = configuration.may_have_deletion_vectors
    return leaves_of_schema(stats_schema(indexed, tight_bounds=bounds))


class ActionRows:
    """Makes tables of actions, all of one schema.

    Args:
        configuration: of the table; its properties decide which statistics are written.
        kinds: of action, a column for each.
        time_zone: of partition values without one.
        domains: of the table; in the draft their configuration is a map, today it is a string.

    Attributes:
        schema: of the tables.
        leaves: of the statistics that `adds` takes.
    """

    def __init__(
        self,
        configuration: TableConfiguration,
        kinds: Iterable[str],
        *,
        time_zone: str,
        domains: Sequence[DomainMetadata] = (),
    ) -> None:
        self.leaves: list[StatsLeaf] = stats_leaves(configuration)
        self._time_zone = time_zone
        self._partitions = _parsed_partitions(configuration)
        self._json = configuration.properties.checkpoint_write_stats_as_json
        types = {
            **_SMALL_TYPES,
            **_V2_TYPES,
            "rowIdHighWaterMark": arrow.HIGH_WATER_MARK_TYPE,
            "domainMetadata": _domain_type(domains),
            "add": self._add_type(),
            "remove": arrow.REMOVE_TYPE,
        }
        self.schema: pa.Schema = pa.schema([pa.field(kind, types[kind]) for kind in kinds])
        self._nothing = self.schema.empty_table()

    def values(self, actions: Iterable[Action]) -> pa.Table:
        """A row for each of a few actions, in order."""
        objects = [action_to_json(action) for action in actions]
        columns = [
            pa.array(
                [_arrow_value(item.get(field.name), field.type) for item in objects], field.type
            )
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def removes(self, tombstones: pa.Table) -> pa.Table:
        """A row for each tombstone.

        Args:
            tombstones: has the members of `REMOVE_TYPE`.
        """
        members = {field.name: tombstones.column(field.name) for field in arrow.REMOVE_TYPE}
        return self._rows("remove", {**members, "dataChange": _all_false(tombstones.num_rows)})

    def adds(self, files: pa.Table, stats: Sequence[pa.ChunkedArray[Any]]) -> pa.Table:
        """A row for each live file.

        Args:
            files: of `FILE_SCHEMA`.
            stats: a column for each of `leaves`.

        Raises:
            InvalidPartitionValueError: a text cannot be parsed as its column's type.
        """
        members: dict[str, Any] = {field.name: files.column(field.name) for field in arrow.ADD_TYPE}
        members["dataChange"] = _all_false(files.num_rows)
        # "When this property is set to `false`, this field should be omitted from the checkpoint."
        if not self._json:
            del members["stats"]
        if self._partitions:
            members[PARTITION_VALUES_PARSED] = self._parsed_values(files)
        if self.leaves:
            members["stats_parsed"] = self._parsed_stats(stats)
        return self._rows("add", members)

    def _add_type(self) -> pa.StructType:
        fields: list[pa.Field[Any]] = [
            field for field in arrow.ADD_TYPE if self._json or field.name != "stats"
        ]
        if self._partitions:
            fields.append(pa.field(PARTITION_VALUES_PARSED, pa.struct(self._partitions_arrow())))
        if self.leaves:
            empty = [pa.chunked_array([nulls(0, kind)]) for _, kind in self.leaves]
            fields.append(pa.field("stats_parsed", self._parsed_stats(empty).type))
        return pa.struct(fields)

    def _partitions_arrow(self) -> list[pa.Field[Any]]:
        return [pa.field(field.name, to_arrow_type(field.type)) for field in self._partitions]

    def _parsed_values(self, files: pa.Table) -> pa.Array[Any]:
        texts = files.column(PARTITION_VALUES)
        columns = [
            parse_column(
                extract(texts, field.name),
                field.type,
                column=field.name,
                time_zone=self._time_zone,
            )
            for field in self._partitions
        ]
        result: pa.Array[Any] = pa.StructArray.from_arrays(columns, fields=self._partitions_arrow())
        return result

    def _parsed_stats(self, stats: Sequence[pa.ChunkedArray[Any]]) -> pa.Array[Any]:
        paths = [path for path, _ in self.leaves]
        table = nest(list(zip(paths, stats, strict=True))).combine_chunks()
        absent = reduce(compute.and_, (column.is_null() for column in stats))
        columns = [_one_chunk(column) for column in table.columns]
        result: pa.Array[Any] = pa.StructArray.from_arrays(
            columns, fields=list(table.schema), mask=_one_chunk(absent)
        )
        return result

    def _rows(self, kind: str, members: Mapping[str, Any]) -> pa.Table:
        fields = self.schema.field(kind).type
        columns = [_one_chunk(members[field.name]) for field in fields]
        actions = pa.StructArray.from_arrays(columns, fields=list(fields))
        rows = len(actions)
        nothing = self._nothing  # shared between calls; threads may replace it
        if nothing.num_rows < rows:
            columns = [nulls(rows, field.type) for field in self.schema]
            nothing = self._nothing = pa.Table.from_arrays(columns, schema=self.schema)
        table = nothing.slice(0, rows)
        place = self.schema.get_field_index(kind)
        return table.set_column(place, self.schema.field(kind), actions)


def _parsed_partitions(configuration: TableConfiguration) -> StructType:
    """The partition columns whose values are written typed, by physical names."""
    if not configuration.properties.checkpoint_write_stats_as_struct:
        return StructType([])
    by_name = {field.name: field for field in configuration.physical_schema.fields}
    return StructType([by_name[name] for name in configuration.physical_partition_columns])


def _domain_type(domains: Sequence[DomainMetadata]) -> pa.DataType:
    draft = [not isinstance(domain.configuration, str) for domain in domains]
    if not draft or not all(draft):
        return arrow.DOMAIN_TYPE
    fields = [
        pa.field(field.name, arrow.STRING_MAP) if field.name == "configuration" else field
        for field in arrow.DOMAIN_TYPE
    ]
    return pa.struct(fields)


def _arrow_value(value: Any, data_type: Any) -> Any:
    """A member of a JSON object as the Python value that Arrow expects."""
    if isinstance(value, dict):
        if pa.types.is_map(data_type):
            return list(value.items())
        if pa.types.is_string(data_type):  # a domain of the draft beside today's
            return dumps(value).decode()
        return {field.name: _arrow_value(value.get(field.name), field.type) for field in data_type}
    return value


def _all_false(rows: int) -> pa.Array[Any]:
    # A checkpoint changes no data: earlier versions added or removed these files.
    return pa.repeat(pa.scalar(value=False), rows)


def _one_chunk(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
