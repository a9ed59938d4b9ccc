"""Commit options of the public API, named as in the deltalake package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import pyarrow as pa

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from deltalog.expressions import Expression


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """An application transaction, which makes writes idempotent.

    A commit is skipped if the table has recorded this version of the application, or a later one.

    Args:
        app_id: name that the application chose for itself.
        version: grows with every write of the application.
        last_updated: milliseconds since 1970, UTC; None means the time of the commit.

    Protocol: Transaction Identifiers
    """

    app_id: str
    version: int
    last_updated: int | None = None


Transaction = AppTransaction


@dataclass(frozen=True, slots=True)
class CommitProperties:
    """Properties of a commit: custom metadata, retries, application transactions.

    Args:
        custom_metadata: additional members of `commitInfo`, any JSON values; `userMetadata` is
            Spark's name for free text. `operationParameters` are added to those of the operation,
            and `readVersion` replaces the version that was read.
        max_commit_retries: how often a lost race is retried; None means 10,000 times, for 10
            minutes.
        app_transactions: recorded with the commit; if already recorded, the commit is skipped.
    """

    custom_metadata: Mapping[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: Sequence[AppTransaction] | None = None

    def __post_init__(self) -> None:
        """Raise for values that would fail in the middle of a commit."""
        metadata, transactions = self.custom_metadata, self.app_transactions
        if not isinstance(metadata, Mapping | None):
            raise InvalidInputError(f"custom_metadata: expected a dictionary, found {metadata!r}")
        _check_storable(metadata, "custom_metadata")
        for name, value in (metadata or {}).items():
            expected, is_right = _RESERVED.get(name, ("", None))
            if is_right is not None and not is_right(value):
                raise InvalidInputError(
                    f"custom_metadata[{name!r}]: expected {expected}, found {value!r}"
                )
        found: Iterable[object] = transactions if isinstance(transactions, Iterable) else [None]
        if transactions is not None and not all(isinstance(one, AppTransaction) for one in found):
            raise InvalidInputError(
                "app_transactions: expected a list such as [Transaction('app', 1)], found "
                f"{transactions!r}"
            )


def _check_storable(value: object, name: str) -> None:
    """Raise for values that JSON cannot represent: NaN would be written as null."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if not isinstance(key, str):
                raise InvalidInputError(f"{name}: expected strings as keys, found {key!r}")
            _check_storable(part, f"{name}[{key!r}]")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            _check_storable(part, f"{name}[{number}]")
    elif (
        not isinstance(value, str | int | float | None)
        or (isinstance(value, float) and not math.isfinite(value))
        or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 63)
    ):
        raise InvalidInputError(
            f"{name}: expected a JSON value, found {value!r}; pass it as a string"
        )


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


# The values that other engines expect for these members, whoever sets them.
_RESERVED: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "operationParameters": ("a dictionary", lambda value: isinstance(value, Mapping)),
    "readVersion": ("a whole number of 0 or more", _is_version),
    "userId": ("a string", _is_text),
    "userName": ("a string", _is_text),
    "userMetadata": ("a string", _is_text),
}


@dataclass(frozen=True, slots=True)
class PostCommitHookProperties:
    """The steps right after a commit; their failure never fails the commit.

    Args:
        create_checkpoint: write a checkpoint when the table's interval is reached.
        cleanup_expired_logs: delete expired files of the log after a checkpoint; None follows the
            table's `delta.enableExpiredLogCleanup`.
        write_checksum: write the version checksum.
        auto_compact: compact small files after commits that change rows; None follows the
            table's `delta.autoOptimize.autoCompact`.
    """

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None
    write_checksum: bool = True
    auto_compact: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """A caller's options for a commit; checked before anything is written.

    Args:
        properties: metadata, retries and application transactions of the commit.
        hooks: the steps after it.
        on_conflict: whether a conflict runs the operation again ("retry") or is raised.

    Raises:
        InvalidInputError: a value is of another class, such as a dictionary.
    """

    properties: CommitProperties | None = None
    hooks: PostCommitHookProperties | None = None
    on_conflict: Literal["retry", "raise"] = "retry"

    def __post_init__(self) -> None:
        """Raise for values of another class."""
        for name, value, kind in (
            ("commit_properties", self.properties, CommitProperties),
            ("post_commithook_properties", self.hooks, PostCommitHookProperties),
        ):
            if not isinstance(value, kind | None):
                raise InvalidInputError(
                    f"{name}: expected {kind.__name__}(…), found a {type(value).__name__}"
                )
        if self.on_conflict not in {"retry", "raise"}:
            raise InvalidInputError(
                f"on_conflict: expected 'retry' or 'raise', found {self.on_conflict!r}"
            )


USUAL: Final = CommitOptions()
"""The default: the properties of the table decide."""


# The read set of a transaction: the data that no concurrent commit may change, and how strictly.


SERIALIZABLE: Final = "Serializable"
WRITE_SERIALIZABLE: Final = "WriteSerializable"
SNAPSHOT_ISOLATION: Final = "SnapshotIsolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """Rows and applications that a transaction depends on.

    Args:
        predicates: each resolved against the snapshot's schema: matching rows were read.
        whole_table: whether every row was read, including rows that others may have added.
        files: paths of files whose rows were read, as in the log (encoded).
        app_ids: applications whose recorded version was read.
        is_row_local: whether each row read affected that row alone (`rebase`).
    """

    predicates: tuple[Expression, ...] = ()
    whole_table: bool = False
    files: pa.StringArray | None = None
    app_ids: frozenset[str] = frozenset()
    is_row_local: bool = True

    @property
    def is_blind(self) -> bool:
        """Whether no row was read, so that no concurrent change can make the result wrong."""
        return not self.predicates and not self.whole_table and self.files is None

    def with_predicate(self, predicate: Expression | None) -> ReadSet:
        """Return the read set with the matching rows added; None means all rows."""
        if predicate is None:
            return replace(self, whole_table=True)
        return replace(self, predicates=(*self.predicates, predicate))

    def with_files(self, files: pa.Table) -> ReadSet:
        """Return the read set with the rows of files added.

        Args:
            files: rows of `snapshot.files`, at least with `path`.
        """
        paths: Any = files.column("path")
        if self.files is not None:
            paths = pa.chunked_array([self.files, *paths.chunks], pa.string())
        return replace(self, files=cast("pa.StringArray", _one_piece(paths)))

    def with_app(self, app_id: str) -> ReadSet:
        """Return the read set with an application's recorded version added."""
        return replace(self, app_ids=self.app_ids | {app_id})


def _one_piece(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole: Any = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # pyarrow before 25 keeps none or several chunks
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return cast("pa.Array[Any]", whole)
