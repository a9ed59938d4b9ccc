"""The options of writes (`option(…)`). Their names are Delta's, in upper or lower case.

This module checks which options can be combined. The core interprets `delta.` properties.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from deltalog._util.json import dumps, loads
from deltalog.data.write.options import WriterProperties
from deltalog.errors import InvalidInputError
from deltalog.operations.changes.file_options import FileOptions
from deltalog.spark.reading.options import Options, path_of
from deltalog.spark.session.opening import zone_of
from deltalog.transaction import CommitProperties, PostCommitHookProperties
from deltalog.transaction.properties import AppTransaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.operations.write import SchemaMode
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.spark.session.settings import SessionSettings

PROPERTY_PREFIX: Final = "delta."
_UNCOMPRESSED: Final = {"none": "uncompressed"}
"""Alternative names of compressions: name in Spark → name in Parquet."""
_NULL_INTOLERANT: Final = "useNullIntolerantEqualityWithDPO"
_WRITING: Final = (
    "path",
    "partitionBy",
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "partitionOverwriteMode",
    _NULL_INTOLERANT,
    "txnAppId",
    "txnVersion",
    "userMetadata",
    "targetFileSize",
    "maxRecordsPerFile",
    "timeZone",
    "compression",
    "optimizeWrite",
    "dataChange",
)
# Options of a streaming write that Spark itself uses, and deltalog does not.
_OF_STREAMS: Final = ("checkpointLocation", "queryName", "truncate")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The parsed options of a write.

    Args:
        mode: `append` or `overwrite`.
        partition_by: the partition columns of a new table, or of a table whose schema is
            overwritten.
        cluster_by: the clustering columns of a new table.
        merge_schema: whether to add columns of the data that the table lacks.
        overwrite_schema: whether to replace the table's schema by the schema of the data.
        replace_where: a condition that is true for the rows to replace; None means no condition.
        dynamic: whether to replace only the partitions that receive new rows; None means the
            session's setting.
        keeps_null_partitions: whether `dynamic` preserves partitions with a NULL value; None means
            Delta's default.
        app: the application id and version, which make a repeated write have no effect.
        batch: the query id and the batch number of a streaming write, for the history.
        user_metadata: the user's string in the table's history.
        target_file_size_bytes: the size of new files; None means the table's property.
        max_records_per_file: the maximum number of rows in a file; 0 means no limit, None means the
            session's setting.
        compression: the compression of the files; None means the table's property.
        time_zone: the time zone of timestamps without a time zone; None means the session's.
        properties: the properties of a new table.
        streams: whether the write is a batch of a stream.
        optimize_write: whether to move the rows of a partition to few tasks; None means the
            table's property.
        hooks: the settings of post-commit hooks; None means the table's properties.
        max_retries: how many times the write is run again after a conflict; None means the
            session's setting.
    """

    mode: Literal["append", "overwrite"] = "append"
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: Any = None
    dynamic: bool | None = None
    keeps_null_partitions: bool | None = None
    app: AppTransaction | None = None
    batch: tuple[str, int] | None = None
    user_metadata: str | None = None
    target_file_size_bytes: int | None = None
    max_records_per_file: int | None = None
    compression: str | None = None
    time_zone: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    streams: bool = False
    optimize_write: bool | None = None
    hooks: PostCommitHookProperties | None = None
    max_retries: int | None = None

    def __post_init__(self) -> None:
        """Refuse options that cannot be combined."""
        overwrites = self.mode == "overwrite"
        for name, given in (
            ("replaceWhere", self.replace_where is not None),
            ("overwriteSchema", self.overwrite_schema),
        ):
            if given and not overwrites:
                raise InvalidInputError(f"{name} needs mode 'overwrite', found {self.mode!r}")
        if self.replace_where is not None and self.overwrite_schema:
            raise InvalidInputError(
                "replaceWhere cannot be combined with overwriteSchema: rows that are not replaced "
                "still have the old schema"
            )
        if self.replaces_partitions and self.overwrite_schema:
            raise InvalidInputError(
                "partitionOverwriteMode=dynamic cannot be combined with overwriteSchema: rows that "
                "are not replaced still have the old schema"
            )

    @property
    def replaces_partitions(self) -> bool:
        """Whether the write replaces whole partitions; false if `replaceWhere` is set."""
        return self.mode == "overwrite" and bool(self.dynamic) and self.replace_where is None

    @property
    def zone(self) -> str:
        """The time zone of the write; UTC until the session's settings are applied."""
        return self.time_zone or "UTC"

    def under(self, settings: SessionSettings) -> WriteOptions:
        """Return the options with the session's settings applied.

        In a stream, the session's application transaction is ignored: the query id and the batch
        number identify a write. In complete mode, a stream always replaces the whole table.

        Raises:
            InvalidInputError: options and settings contradict each other.
        """
        named = settings.time_zone
        return replace(
            self,
            dynamic=settings.dynamic if self.dynamic is None and not self.streams else self.dynamic,
            merge_schema=self.merge_schema or bool(settings.merge_schema),
            app=self.app or (None if self.streams else settings.app),
            user_metadata=self.user_metadata or settings.user_metadata,
            time_zone=self.time_zone or (None if named is None else zone_of(named)),
            optimize_write=(
                settings.optimize_write if self.optimize_write is None else self.optimize_write
            ),
            hooks=self.hooks or settings.hooks,
            max_retries=settings.max_retries if self.max_retries is None else self.max_retries,
            max_records_per_file=(
                settings.max_records_per_file
                if self.max_records_per_file is None
                else self.max_records_per_file
            ),
        )

    @property
    def schema_mode(self) -> SchemaMode | None:
        """Return the schema mode of the core."""
        if self.mode == "overwrite" and self.overwrite_schema:
            return "overwrite"
        return "merge" if self.merge_schema else None

    @property
    def files(self) -> FileOptions:
        """Return the settings for new files."""
        writer = None
        if self.compression is not None:
            writer = WriterProperties(compression=self.compression)
        return FileOptions(
            target_file_size_bytes=self.target_file_size_bytes,
            max_rows_per_file=self.max_records_per_file or None,
            writer_properties=writer,
        )

    @property
    def commit_properties(self) -> CommitProperties:
        """Return the user metadata, the application transaction and the retries of the commit."""
        custom = None if self.user_metadata is None else {"userMetadata": self.user_metadata}
        apps = None if self.app is None else [self.app]
        return CommitProperties(
            custom_metadata=custom, app_transactions=apps, max_retries=self.max_retries
        )

    def arguments(self, configuration: TableConfiguration) -> dict[str, Any]:
        """Return the arguments of the core's operation `Write`, except the rows.

        Args:
            configuration: the configuration of the target table.
        """
        # As in Delta, a dynamic overwrite replaces an unpartitioned table as a whole.
        dynamic = self.replaces_partitions and bool(configuration.partition_columns)
        if self.keeps_null_partitions is not None and not dynamic:
            raise InvalidInputError(
                f"cannot use {_NULL_INTOLERANT}: it requires partitionOverwriteMode=dynamic and "
                "an overwrite of a partitioned table"
            )
        return {
            "mode": self.mode,
            "schema_mode": self.schema_mode,
            "predicate": self.replace_where,
            "dynamic": dynamic,
            "keeps_null_partitions": bool(self.keeps_null_partitions),
            "partition_by": self.partition_by,
            "file_options": self.files,
            "logged": self.logged,
            "name": "WRITE" if self.batch is None else "STREAMING UPDATE",
        }

    @property
    def logged(self) -> dict[str, Any]:
        """Return the parameters of the operation for the table's history."""
        if self.batch is not None:
            query, number = self.batch
            output = "Append" if self.mode == "append" else "Complete"
            return {"outputMode": output, "queryId": query, "epochId": str(number)}
        found: dict[str, Any] = {
            "mode": self.mode.capitalize(),
            "partitionBy": list(self.partition_by or ()),
        }
        return (
            found if self.replace_where is None else {**found, "predicate": str(self.replace_where)}
        )


def parse_write_options(
    given: Mapping[str, str], *, overwrite: bool, streams: bool = False
) -> tuple[str, dict[str, str], WriteOptions]:
    """Parse the options of a write; return the location, the options for the store, and the rest.

    Args:
        given: the options as the user wrote them.
        overwrite: whether the mode is `overwrite`.
        streams: whether the write is a streaming write.

    Raises:
        InvalidInputError: an option is unknown or invalid, or options contradict each other.
    """
    properties = {key: text for key, text in given.items() if _is_property(key)}
    rest = {key: text for key, text in given.items() if not _is_property(key)}
    options = Options(rest, (*_WRITING, *_OF_STREAMS) if streams else _WRITING)
    if not options.truth("dataChange", default=True):
        raise InvalidInputError(
            "cannot use dataChange=false, because a write changes data; use "
            "DeltaTable.optimize() to compact files without a data change"
        )
    partitions = _partitions(options)
    return (
        path_of(options),
        options.storage,
        WriteOptions(
            mode="overwrite" if overwrite else "append",
            partition_by=partitions or None,
            merge_schema=options.truth("mergeSchema"),
            overwrite_schema=options.truth("overwriteSchema"),
            replace_where=options.text("replaceWhere"),
            dynamic=_is_dynamic(options),
            keeps_null_partitions=options.truth(_NULL_INTOLERANT)
            if options.text(_NULL_INTOLERANT)
            else None,
            streams=streams,
            app=_stream_app(options) if streams else _app(options),
            user_metadata=options.text("userMetadata"),
            target_file_size_bytes=options.size("targetFileSize"),
            max_records_per_file=_most_records(options),
            compression=_compression(options),
            optimize_write=options.truth("optimizeWrite")
            if options.text("optimizeWrite")
            else None,
            time_zone=options.text("timeZone"),
            properties=properties,
        ),
    )


def encode_names(names: Sequence[str]) -> str:
    """Encode column names as the value of the option `partitionBy`."""
    return dumps(list(names)).decode()


def _partitions(options: Options) -> tuple[str, ...]:
    text = options.text("partitionBy") or ""
    if not text.lstrip().startswith("["):
        return options.names("partitionBy")
    found = loads(text.encode())
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InvalidInputError(f"cannot use partitionBy={text!r}: expected column names")
    return tuple(found)


def _most_records(options: Options) -> int | None:
    text = options.text("maxRecordsPerFile")
    if text is not None and text.strip().startswith("-"):  # a negative number means no limit
        return 0
    return options.number("maxRecordsPerFile")


def _compression(options: Options) -> str | None:
    name = options.text("compression")
    return None if name is None else _UNCOMPRESSED.get(name.strip().lower(), name)


def _is_property(name: str) -> bool:
    return name.lower().startswith(PROPERTY_PREFIX)


def _is_dynamic(options: Options) -> bool | None:
    text = options.text("partitionOverwriteMode")
    if text is None:
        return None
    if text.lower() not in {"static", "dynamic"}:
        raise InvalidInputError(
            f"cannot use partitionOverwriteMode={text!r}: expected static or dynamic"
        )
    return text.lower() == "dynamic"


def _app(options: Options) -> AppTransaction | None:
    name, version = options.text("txnAppId"), options.number("txnVersion")
    if (name is None) is not (version is None):
        raise InvalidInputError("cannot use only one of txnAppId and txnVersion: set both")
    return None if name is None or version is None else AppTransaction(name, version)


def _stream_app(options: Options) -> AppTransaction | None:
    """Return the application id of a stream. The batch number becomes the version of each batch."""
    name = options.text("txnAppId")
    if options.text("txnVersion") is not None:
        raise InvalidInputError(
            "cannot use txnVersion for a stream: its batch numbers are the versions"
        )
    return None if name is None else AppTransaction(name, -1)
