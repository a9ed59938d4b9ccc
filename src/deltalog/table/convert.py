"""`convert_to_deltalake`: make a Delta table of existing Parquet files or an Iceberg table.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

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
        """The location of the metadata file that its catalog names."""
        ...


def convert_to_deltalake(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
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
    """Create a Delta table of existing Parquet files, which stay as they are.

    From an Iceberg table (extra `iceberg`), the Delta table gets the files of the current snapshot.
    Columns keep their ids. The Iceberg metadata stays, but does not follow the Delta table. Deleted
    rows become deletion vectors, and promoted types become widened types.

    Args:
        uri: the directory; for an Iceberg table also the metadata file that its catalog names, or
            the PyIceberg table.
        mode: if there is a Delta table, `error` fails and `ignore` leaves it as it is.
        partition_by: the partition columns as a schema. None infers them from directories such as
            `p=1`: `long` or `date` where all values fit, else `string`.
        partition_strategy: `hive` for directories such as `year=2020/month=1`, `directory` for
            `2020/1`, in the order of `partition_by`.
        name: name of the table.
        description: description of the table.
        configuration: table properties.
        storage_options: as for `DeltaTable`.
        source_format: `parquet` or `iceberg`; None means Iceberg where there is Iceberg metadata.
        collect_stats: whether to read data for statistics. Footers do not suffice: their bounds may
            be truncated or missing. Without it, only the number of rows of each file is recorded.
        commit_properties: as for `DeltaTable`.
        post_commithook_properties: maintenance after the commit, as for `DeltaTable`.
        filesystem: replaces `storage_options`.
        progress: counts files.
        default_timezone: zone of times in directory names, which have none.

    Raises:
        TableExistsError: there is a Delta table, and the mode is `error`.
        SchemaMismatchError: files have different types for the same column.
        InvalidInputError: there is no Parquet file, a path lacks a partition column, or the
            Iceberg table uses something that Delta lacks, such as default values.

    Cost: one listing and all footers; with statistics, also the columns that get them. An Iceberg
    table needs its metadata instead of the listing, all files with deletes, and for equality
    deletes their columns of older files.
    """
    source = ForeignSource.at(uri, source_format, storage_options, filesystem)
    store = source.store
    if mode not in {"error", "ignore"}:
        raise InvalidInputError(
            f"cannot convert {store.root} with mode={mode!r}: expected the mode error or ignore"
        )
    if has_table(store):
        if mode == "ignore":
            return
        raise TableExistsError(f"cannot convert {store.root}: it is a Delta table already")
    wanted = Wanted(
        configuration=configuration,
        name=name,
        description=description,
        partition_by=None if partition_by is None else as_schema(partition_by),
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


def convert_source(
    source: ForeignSource,
    wanted: Wanted,
    context: TableContext,
    *,
    collect_stats: bool,
    options: CommitOptions = USUAL,
    progress: Progress | None = None,
) -> None:
    """Write the log of a table of existing files; `convert_to_deltalake` explains the arguments."""
    conversion, configuration = source.planned(context, wanted)
    make_table(
        Convert(conversion=conversion, collect_stats=collect_stats),
        context,
        configuration,
        LocalEngine(),
        options,
        progress=progress,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The table that a conversion shall make."""

    configuration: Mapping[str, str | None] | None = None
    name: str | None = None
    description: str | None = None
    partition_by: StructType | None = None
    partition_strategy: PartitionStrategy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """Files that are not yet a Delta table.

    Args:
        store: at the location of the files.
        format: format of the files; None means Iceberg where there is Iceberg metadata, else
            Parquet.
        metadata_name: file in `metadata/` of an Iceberg table; None means the newest.
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
        """Return the files at a location; `convert_to_deltalake` explains the arguments.

        Raises:
            InvalidInputError: the location contains a version, or the format is unknown.
        """
        if source_format not in {"parquet", "iceberg", None}:
            raise InvalidInputError(
                f"cannot convert files of the format {source_format!r}: expected parquet or iceberg"
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
        """Return the plan of a table of the files, and its configuration.

        Raises:
            InvalidInputError: as `convert_to_deltalake`, or PyIceberg is missing.
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
                "partition spec of the Iceberg table defines the partitions; leave them out"
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
        """Return the plan of a table of the files, and the version that it would have.

        Cost: as a conversion without statistics; nothing is written.
        """
        context = TableContext(store=self.store, time_zone="UTC")
        conversion, configuration = self.planned(context, Wanted())
        return conversion, snapshot_of(context, conversion, configuration)


def divided_location(location: str) -> tuple[str, str | None]:
    """Split the location of an Iceberg metadata file into the table's location and the file name.

    Any other location is returned unchanged, with None.
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
