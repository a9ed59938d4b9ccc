"""`convert_to_deltalake`: a Delta table of existing files, Parquet's or an Iceberg table's.

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
    """A table of PyIceberg, as far as conversions need it."""

    @property
    def metadata_location(self) -> str:
        """Where the metadata is that its catalog names."""
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

    The files of an Iceberg table (extra `iceberg`) are those of its current snapshot; its columns
    keep their ids, and its metadata stays, but does not follow the Delta table. Rows that it has
    deleted one by one are deleted by deletion vectors; a type that was promoted is one that was
    widened.

    Args:
        uri: the directory; of an Iceberg table also the metadata file that its catalog names, or
            its PyIceberg table.
        mode: if there is a Delta table, `error` fails and `ignore` leaves it as it is.
        partition_by: the partition columns as a schema. None takes them from directories such as
            `p=1`: `long` or `date` where all values are, else `string`.
        partition_strategy: `hive` for directories such as `year=2020/month=1`, `directory` for
            `2020/1`, in the order of `partition_by`.
        name: of the table.
        description: of the table.
        configuration: table properties.
        storage_options: as for `DeltaTable`.
        source_format: `parquet` or `iceberg`; None is Iceberg where there is Iceberg metadata.
        collect_stats: whether data is read for statistics. Footers do not suffice: their bounds
            may be truncated or missing. Without, only the number of rows of each file is recorded.
        commit_properties: as for `DeltaTable`, and so are the others.
        post_commithook_properties: which maintenance follows the commit.
        filesystem: instead of the options.
        progress: counts files.
        default_timezone: of times in the names of directories, which carry no zone.

    Raises:
        TableExistsError: there is a Delta table, and the mode is `error`.
        SchemaMismatchError: files have different types for the same column.
        InvalidInputError: there is no Parquet file, or a path lacks a partition column; or the
            Iceberg table has no equal in Delta, such as with default values.

    Cost: one listing, all footers; with statistics, the columns that get some. Of an Iceberg table
    the metadata instead of the listing, all files with deletes, and for deletes by values their
    columns of older files.
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
    """Write the log of a table of the files; `convert_to_deltalake` explains the arguments."""
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
    """What users ask of a table of existing files."""

    configuration: Mapping[str, str | None] | None = None
    name: str | None = None
    description: str | None = None
    partition_by: StructType | None = None
    partition_strategy: PartitionStrategy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSource:
    """Files that are no Delta table.

    Args:
        store: at their location.
        format: theirs; None is Iceberg where there is Iceberg metadata, else Parquet.
        metadata_name: of an Iceberg table: the file in `metadata/`; None is the newest.
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
        """Return what is at a location; `convert_to_deltalake` explains the arguments.

        Raises:
            InvalidInputError: it names a version, or there is no such format.
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
                f"cannot take over {self.store.root} with partition_by or partition_strategy: the "
                "partition spec of an Iceberg table decides"
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
    """Return the location of an Iceberg table and the name of its metadata, of a metadata file.

    Of any other location that one and None.
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
