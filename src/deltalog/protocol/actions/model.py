"""The actions of the transaction log, as frozen dataclasses.

Fields have the protocol's names in snake_case. Absent and null members are None. These classes are
for a few actions (protocol, metadata, the files of one commit). The files of a whole table are
Arrow tables (`actions.arrow`).

Protocol: Actions
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util.cached import FrozenDict, frozen
from deltalog._util.call_errors import WrongCallError, changed_by
from deltalog._util.json import dumps
from deltalog._util.similar_names import NoItems, SimilarNames
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@changed_by("table.alter.add_feature(name) adds a table feature")
@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol(SimilarNames):
    """The versions and table features that readers and writers must support.

    Feature lists are None below reader version 3 and writer version 7. As in deltalake, the object
    can be indexed and unpacked: reader version, writer version, writer features, reader features.

    Protocol: Protocol Evolution, Table Features
    """

    _meant: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("features", "table_features"), "reader_features and writer_features"),
        **dict.fromkeys(("reader_version", "minReaderVersion"), "min_reader_version"),
        **dict.fromkeys(("writer_version", "minWriterVersion"), "min_writer_version"),
    }
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Convert the features to tuples that compare equal to lists."""
        object.__setattr__(self, "reader_features", frozen(self.reader_features))
        object.__setattr__(self, "writer_features", frozen(self.writer_features))

    def _members(self) -> tuple[int, int, tuple[str, ...] | None, tuple[str, ...] | None]:
        return (
            self.min_reader_version,
            self.min_writer_version,
            self.writer_features,
            self.reader_features,
        )

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the members in deltalake's order."""
        return iter(self._members())

    def __getitem__(self, place: Any) -> Any:
        """Return the member at an index, in deltalake's order."""
        if isinstance(place, str):
            hint = self._meant.get(place, place)
            raise WrongCallError(f"a Protocol has no item {place!r}: use .{hint}")
        return self._members()[place]

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._members())

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        from deltalog._util.cards import card, grid  # noqa: PLC0415  # needed only in notebooks

        listed = {"reader": self.reader_features, "writer": self.writer_features}
        return card(
            "Protocol",
            grid(
                [
                    ("reader version", self.min_reader_version),
                    ("writer version", self.min_writer_version),
                    *((f"{who} features", ", ".join(one)) for who, one in listed.items() if one),
                ]
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The format of data files; only `parquet` can be read.

    Protocol: Format Specification
    """

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Copy the options to an immutable dict."""
        object.__setattr__(
            self, "options", FrozenDict(self.options, "the options of a format have no effect")
        )


_MEANT: Final = {
    "schema": "DeltaTable.schema(), or schema_string",
    **dict.fromkeys(("properties", "options", "table_properties"), "configuration"),
    **dict.fromkeys(("partitions", "partition_by"), "partition_columns"),
}


@changed_by(
    "table.alter.set_table_name(…), set_table_description(…) and set_table_properties({…}) change "
    "the table"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata(SimilarNames, NoItems):
    """Schema, partitioning and properties of the table.

    Args:
        id: id of the table, which never changes.
        schema_string: the schema as one line of JSON, exactly as stored; too long for the repr.
        partition_columns: logical names of the partition columns.
        configuration: all table properties, as strings.
        created_time_ms: time of creation in milliseconds since 1970, UTC.

    Protocol: Change Metadata
    """

    _meant: ClassVar[Mapping[str, str]] = _MEANT
    id: str
    schema_string: str = field(repr=False)
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    format: Format = field(default_factory=Format)
    name: str | None = None
    description: str | None = None
    created_time_ms: int | None = None

    def __post_init__(self) -> None:
        """Convert the partition columns and the configuration to immutable values.

        Raises:
            InvalidInputError: the name or the description is no string. No reader could open a
                table with such metadata.
        """
        object.__setattr__(self, "partition_columns", frozen(self.partition_columns))
        advice = "to change properties, use table.alter.set_table_properties({…})"
        object.__setattr__(self, "configuration", FrozenDict(self.configuration, advice))
        given: dict[str, object] = {"name": self.name, "description": self.description}
        for part, text in given.items():
            if text is not None and not isinstance(text, str):
                raise InvalidInputError(
                    f"cannot use {text!r} as the {part} of a table: expected a string"
                )

    @property
    def created_time(self) -> int | None:
        """The same as `created_time_ms`, with deltalake's name."""
        return self.created_time_ms

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        from deltalog._util.cards import card, folding, grid  # noqa: PLC0415  # needed only in notebooks
        from deltalog._util.readable import counted  # noqa: PLC0415  # as above
        from deltalog.schema.check import readable_moment  # noqa: PLC0415  # as above

        time_ms = self.created_time_ms
        facts = {
            "description": self.description,
            "id": self.id,
            "created": None if time_ms is None else readable_moment(time_ms),
            "partitioned by": ", ".join(self.partition_columns),
        }
        pieces = [grid((name, text) for name, text in facts.items() if text)]
        if self.configuration:
            number = counted(len(self.configuration), "property", "properties")
            pieces.append(folding(number, grid(self.configuration.items())))
        return card(self.name or "Metadata", *pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorDescriptor:
    """The location of a logical file's deletion vector.

    Args:
        storage_type: `u` (file named by a UUID), `i` (inline) or `p` (absolute path).
        path_or_inline_dv: the path, the UUID or the vector itself, depending on the storage type.
        offset: position of the vector in its file; None means 0.
        size_bytes: size of the bitmap, without size prefix and checksum.
        cardinality: number of deleted rows.

    Protocol: Deletion Vector Descriptor Schema
    """

    storage_type: str
    path_or_inline_dv: str
    size_bytes: int
    cardinality: int
    offset: int | None = None
    max_row_index: int | None = None

    @property
    def unique_id(self) -> str:
        """The id that distinguishes this vector from others of the same data file."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile:
    """A file that is added to the table, or an existing file whose metadata is updated.

    Args:
        path: the decoded path, absolute or relative to the root.
        partition_values: serialised values by physical column name.
        stats: statistics as a JSON string.

    Protocol: Add File and Remove File
    """

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    modification_time_ms: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """A file that is removed from the table; the action remains in the log until it expires.

    Protocol: Add File and Remove File
    """

    path: str
    data_change: bool
    deletion_timestamp_ms: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size_bytes: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCDCFile:
    """A file with the changed rows of a version.

    Protocol: Add CDC File
    """

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransaction:
    """The last transaction of an application, with the application's own version number.

    Protocol: Transaction Identifiers
    """

    app_id: str
    version: int
    last_updated_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata:
    """A named configuration.

    `configuration` is a string, or a mapping as in the draft (requirement B-79).

    Protocol: Domain Metadata
    """

    domain: str
    configuration: str | Mapping[str, str]
    removed: bool = False

    @property
    def text(self) -> str:
        """The configuration as a string; a mapping is converted to JSON.

        A checkpoint stores the configurations of all domains in one string column.
        """
        held = self.configuration
        return held if isinstance(held, str) else dumps(dict(held)).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIdHighWaterMark:
    """The draft's action for the highest row id; replaced by the domain `delta.rowTracking`.

    Protocol: Row IDs (draft)
    """

    high_water_mark: int
    preserved_row_ids: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """Provenance of one commit; its free-form content is preserved.

    Protocol: Commit Provenance Information
    """

    values: Mapping[str, Any]

    @property
    def in_commit_timestamp_ms(self) -> int | None:
        """The commit's time, if the table has in-commit timestamps."""
        value = self.values.get("inCommitTimestamp")
        return value if isinstance(value, int) else None

    @property
    def txn_id(self) -> str | None:
        """The id of the transaction, which the writer chose."""
        value = self.values.get("txnId")
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMetadata:
    """The action that every V2 checkpoint contains exactly once.

    Protocol: Checkpoint Metadata
    """

    version: int
    tags: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A file with file actions of a V2 checkpoint.

    Protocol: Sidecar File Information
    """

    path: str
    size_bytes: int
    modification_time_ms: int
    tags: Mapping[str, str | None] | None = None


Action = (
    Protocol
    | Metadata
    | AddFile
    | RemoveFile
    | AddCDCFile
    | SetTransaction
    | DomainMetadata
    | RowIdHighWaterMark
    | CommitInfo
    | CheckpointMetadata
    | Sidecar
)
