"""`convert_to_deltalake`: create a Delta table from existing Parquet files or an Iceberg table.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

from deltalog._util.argument_types import checked_types, wrong_argument
from deltalog.catalogs.table_uri import open_table_store
from deltalog.errors import InvalidInputError, TableExistsError
from deltalog.log.context import TableContext
from deltalog.log.listing import has_table
from deltalog.operations.convert import (
    Conversion,
    Convert,
    configuration_in_place,
    plan_conversion,
    snapshot_of,
)
from deltalog.operations.convert_iceberg import (
    configuration_with_ids,
    mapped_by_id,
    plan_iceberg_conversion,
)
from deltalog.operations.create import as_schema
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import make_table
from deltalog.table.defaults import new_table_with_defaults
from deltalog.transaction.properties import USUAL, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog._util.cards import Progress
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.convert_files import PartitionStrategy
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.schema import StructType
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.transaction import (
        CommitProperties,
        PostCommitHookProperties,
    )

SourceFormat = Literal["parquet", "iceberg"]
_METADATA_DIRECTORY: Final = "metadata"
_METADATA_ENDING: Final = ".metadata.json"


class IcebergTable(Protocol):
    """The part of a PyIceberg table that conversions need."""

    @property
    def metadata_location(self) -> str:
        """The location of the table's current metadata file."""
        ...


@checked_types
def convert_to_deltalake(  # noqa: PLR0913, PLR0917  # deltalake's parameters, and more
    uri: str | PurePath | Store | IcebergTable,
    mode: Literal["error", "ignore"] = "error",
    partition_by: Any = None,
    partition_strategy: PartitionStrategy | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: StorageOptions | None = None,
    *,
    source_format: SourceFormat | None = None,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    filesystem: Any = None,
    progress: Progress | None = None,
    default_timezone: str = "UTC",
) -> None:
    """Create a Delta table from existing Parquet files, without changing or copying them.

    From an Iceberg table (needs the extra `iceberg`), the Delta table gets the files of the current
    snapshot and the column ids. Row-level deletes become deletion vectors, and promoted types
    become widened types. The Iceberg metadata is not deleted, but later commits do not update it.

    Args:
        uri: the directory. For an Iceberg table, also the path of a metadata file, or a PyIceberg
            table.
        mode: what to do if a Delta table already exists: `error` raises, `ignore` does nothing.
        partition_by: the partition columns, as a schema. None infers them from directory names such
            as `p=1`. The type is `long` or `date` if all values have this form, otherwise `string`.
        partition_strategy: `hive` for directories such as `year=2020/month=1`, `directory` for
            directories such as `2020/1`, in the order of `partition_by`.
        name: name of the table.
        description: description of the table.
        configuration: table properties.
        storage_options: see `DeltaTable`.
        source_format: `parquet` or `iceberg`. None means `iceberg` if there is Iceberg metadata,
            otherwise `parquet`.
        collect_stats: whether to read the data to compute statistics, because the bounds in footers
            may be truncated or missing. False records only the number of rows of each file.
        commit_properties: see `DeltaTable`.
        post_commithook_properties: see `DeltaTable`.
        filesystem: a file system to use instead of `storage_options`.
        progress: see `DeltaTable`; counts files.
        default_timezone: time zone of timestamps in directory names.

    Raises:
        TableExistsError: a Delta table already exists, and the mode is `error`.
        SchemaMismatchError: files have different types for the same column.
        InvalidInputError: there are no Parquet files, the directory contains tables, a path lacks a
            partition column, or the Iceberg table uses a feature that Delta lacks, such as default
            values.

    Cost: one listing, and reading all footers. With statistics, also reading the columns that have
    statistics. For an Iceberg table: its metadata instead of the listing, all files with row-level
    deletes, and for equality deletes also their columns of older data files.
    """
    source = ForeignSource.at(uri, source_format, storage_options, filesystem)
    store = source.store
    if mode not in {"error", "ignore"}:
        raise InvalidInputError(
            f"cannot convert {store.root} with mode={mode!r}: expected 'error' or 'ignore'"
        )
    if has_table(store):
        if mode == "ignore":
            return
        raise TableExistsError(f"cannot convert {store.root}: it is already a Delta table")
    wanted = Wanted(
        configuration=configuration,
        name=name,
        description=description,
        partition_by=None if partition_by is None else _partition_schema(partition_by),
        partition_strategy=partition_strategy,
    )
    convert_source(
        source,
        wanted,
        TableContext(store=store, time_zone=default_timezone),
        collect_stats=collect_stats,
        options=CommitOptions(properties=commit_properties, hooks=post_commithook_properties),
        progress=progress,
    )


def _partition_schema(partition_by: Any) -> StructType:
    names = [partition_by] if isinstance(partition_by, str) else partition_by
    if isinstance(names, list | tuple) and any(isinstance(name, str) for name in names):
        expected = f"a schema, such as pa.schema([({str(names[0])!r}, pa.string())]), or None"
        raise wrong_argument("convert_to_deltalake", "partition_by", partition_by, expected)
    return as_schema(partition_by)


def convert_source(
    source: ForeignSource,
    wanted: Wanted,
    context: TableContext,
    *,
    collect_stats: bool,
    options: CommitOptions = USUAL,
    progress: Progress | None = None,
) -> None:
    """Write the log of a table of existing files; see `convert_to_deltalake` for the arguments."""
    conversion, configuration = source.planned(context, wanted)
    make_table(
        Convert(conversion=conversion, collect_stats=collect_stats),
        context,
        configuration,
        LocalEngine(),
        options,
        takes_files=True,
        progress=progress,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The table that a conversion creates; see `convert_to_deltalake` for the fields."""

    configuration: Mapping[str, str | None] | None = None
    name: str | None = None
    description: str | None = None
    partition_by: StructType | None = None
    partition_strategy: PartitionStrategy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """Files that are not yet a Delta table.

    Args:
        store: store of the directory that contains the files.
        format: `parquet` or `iceberg`; None means `iceberg` if there is Iceberg metadata, otherwise
            `parquet`.
        metadata_name: name of the Iceberg metadata file in `metadata/`; None means the newest file.
    """

    store: Store
    format: SourceFormat | None
    metadata_name: str | None = None

    @classmethod
    def at(
        cls,
        uri: str | PurePath | Store | IcebergTable,
        source_format: str | None = None,
        storage_options: StorageOptions | None = None,
        filesystem: Any = None,
    ) -> Self:
        """Return the files at a location; see `convert_to_deltalake` for the arguments.

        Raises:
            InvalidInputError: the location contains a version, or the format is unknown.
        """
        if source_format not in {"parquet", "iceberg", None}:
            raise InvalidInputError(
                f"source_format: expected parquet or iceberg, found {source_format!r}"
            )
        given: Any = uri
        location = getattr(given, "metadata_location", None)
        text = location or (str(given) if isinstance(given, str | PurePath) else "")
        place, name = divided_location(text)
        given = given if name is None else place
        store, at = open_table_store(given, storage_options, filesystem)
        if at is not None:
            raise InvalidInputError(
                f"cannot convert {uri!r}: expected a location without a version"
            )
        kind: Any = "iceberg" if name is not None else source_format
        return cls(store=store, format=kind, metadata_name=name)

    def planned(
        self, context: TableContext, wanted: Wanted
    ) -> tuple[Conversion, TableConfiguration]:
        """Return the plan of the conversion, and the configuration of the new table.

        Raises:
            InvalidInputError: see `convert_to_deltalake`; or PyIceberg is not installed.
        """
        if not self._is_iceberg():
            conversion = plan_conversion(
                context,
                partition_by=wanted.partition_by,
                partition_strategy=wanted.partition_strategy,
            )
            return conversion, configuration_in_place(_new_table(conversion, wanted))
        if wanted.partition_by is not None or wanted.partition_strategy is not None:
            raise InvalidInputError(
                f"cannot convert {self.store.root} with partition_by or partition_strategy: the "
                "partition spec of the Iceberg table defines the partitions; omit these arguments"
            )
        conversion = plan_iceberg_conversion(context, self.metadata_name)
        mapped = replace(
            wanted,
            configuration=mapped_by_id(wanted.configuration, conversion),
            description=wanted.description or conversion.description,
        )
        return conversion, configuration_with_ids(_new_table(conversion, mapped), conversion)

    def _is_iceberg(self) -> bool:
        if self.format is not None:
            return self.format == "iceberg"
        listed = self.store.list_from(_METADATA_DIRECTORY, "")
        return any(info.name.endswith(_METADATA_ENDING) for info in listed)

    def snapshot(self) -> tuple[Conversion, Snapshot]:
        """Return the plan of the conversion, and a snapshot of the table that it would create.

        Cost: that of a conversion without statistics; nothing is written.
        """
        context = TableContext(store=self.store, time_zone="UTC")
        conversion, configuration = self.planned(context, Wanted())
        return conversion, snapshot_of(context, conversion, configuration)


def divided_location(location: str) -> tuple[str, str | None]:
    """Split the location of an Iceberg metadata file into the table's location and the file name.

    For any other location, return the location and None.
    """
    table, sign, name = location.rpartition(f"/{_METADATA_DIRECTORY}/")
    is_file = bool(sign) and "/" not in name and name.endswith(_METADATA_ENDING)
    return (table, name) if is_file else (location, None)


def _new_table(conversion: Conversion, wanted: Wanted) -> TableConfiguration:
    return new_table_with_defaults(
        conversion.schema,
        partition_columns=conversion.partition_columns,
        configuration=wanted.configuration,
        name=wanted.name,
        description=wanted.description,
        features=conversion.features,
    )
