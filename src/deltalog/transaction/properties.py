"""Commit options of the public API, named as in the deltalake package."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import pyarrow as pa

from deltalog._util.argument_types import kind_of, shortened, wrong_argument
from deltalog._util.similar_names import suggests_arguments
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from deltalog.expressions import Expression


MAX_RETRIES: Final = 10
"""The default of `CommitProperties.max_retries`.

A writer can lose many times in a row: if two writers run equally long operations one after the
other, the one that has lost once starts later, and so it tends to lose again.
"""


@suggests_arguments
@dataclass(frozen=True, slots=True)
class AppTransaction:
    """An application transaction, which makes writes idempotent.

    A commit is skipped if the table has already recorded this or a later version of the
    application.

    Args:
        app_id: unique name of the application; the application chooses it.
        version: a number that increases with every write of the application.
        last_updated: milliseconds since 1970, UTC; None means the time of the commit.

    Protocol: Transaction Identifiers
    """

    app_id: str
    version: int
    last_updated: int | None = None

    def __post_init__(self) -> None:
        """Raise for values of other types, before anything is written."""
        expected = {"app_id": str, "version": int, "last_updated": int}
        for name, kind in expected.items():
            value = getattr(self, name)
            if name == "last_updated" and value is None:
                continue
            if not isinstance(value, kind) or isinstance(value, bool):
                raise InvalidInputError(
                    f"cannot make a Transaction with {name}={value!r}: expected "
                    f"{'a string' if kind is str else 'a whole number'}, found {kind_of(value)}"
                )


Transaction = AppTransaction


@suggests_arguments
@dataclass(frozen=True, slots=True)
class CommitProperties:
    """Properties of a commit: custom metadata, retries, application transactions.

    Args:
        custom_metadata: additional members of `commitInfo`, with any JSON values. Spark shows the
            member `userMetadata` as free text. `operationParameters` are added to those of the
            operation, and `readVersion` replaces the version that was read.
        max_commit_retries: the maximum number of retries after other writers won the version; None
            means 10,000. Retries also end after 10 minutes.
        app_transactions: application transactions that the commit records. If they are already
            recorded, the commit is skipped.
        max_retries: the maximum number of times that the operation is run again, on the newest
            version, because a commit of another writer conflicts with it; None means 10.
    """

    custom_metadata: Mapping[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: Sequence[AppTransaction] | None = None
    max_retries: int | None = None

    def __setstate__(self, state: Sequence[object]) -> None:
        """Restore a pickle; older releases have fewer fields."""
        for field, value in zip_longest(fields(self), state):
            object.__setattr__(self, field.name, value)

    def __post_init__(self) -> None:
        """Raise for invalid values, before anything is written."""
        metadata, transactions = self.custom_metadata, self.app_transactions
        for name in ("max_commit_retries", "max_retries"):
            most: object = getattr(self, name)
            if most is not None and not _is_version(most):
                raise InvalidInputError(f"{name}: expected a number from 0, found {most!r}")
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
    """Raise for values that JSON cannot represent, such as NaN."""
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


# The members of `commitInfo` for which other engines expect a certain type.
_RESERVED: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "operationParameters": ("a dictionary", lambda value: isinstance(value, Mapping)),
    "readVersion": ("a whole number of 0 or more", _is_version),
    "userId": ("a string", _is_text),
    "userName": ("a string", _is_text),
    "userMetadata": ("a string", _is_text),
}


@suggests_arguments
@dataclass(frozen=True, slots=True)
class PostCommitHookProperties:
    """Options of the steps after a commit. If a step fails, the commit is still valid.

    Args:
        create_checkpoint: whether to write a checkpoint at the table's checkpoint interval.
        cleanup_expired_logs: whether to delete expired log files after a checkpoint. None means the
            table property `delta.enableExpiredLogCleanup`.
        write_checksum: whether to write the version checksum.
        auto_compact: whether to compact small files after commits that change rows. None means the
            table property `delta.autoOptimize.autoCompact`.
    """

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None
    write_checksum: bool = True
    auto_compact: bool | None = None

    def __post_init__(self) -> None:
        """Raise for values of another type, such as `"no"`, which Python takes as true."""
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and not isinstance(value, bool):
                expected = "True, False or None" if one.default is None else "True or False"
                raise wrong_argument("PostCommitHookProperties", one.name, value, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """A caller's options for a commit; they are checked before anything is written.

    Args:
        properties: metadata, retries and application transactions of the commit.
        hooks: options of the steps after the commit.
        on_conflict: `"retry"` runs the operation again after a conflict, `"raise"` raises the
            conflict.

    Raises:
        InvalidInputError: a value is of another type, such as a dictionary.
    """

    properties: CommitProperties | None = None
    hooks: PostCommitHookProperties | None = None
    on_conflict: Literal["retry", "raise"] = "retry"

    @property
    def max_retries(self) -> int:
        """The maximum number of times that the operation is run again after a conflict."""
        if self.on_conflict == "raise":
            return 0
        given = None if self.properties is None else self.properties.max_retries
        return MAX_RETRIES if given is None else given

    def __post_init__(self) -> None:
        """Raise for values of another type."""
        given = zip(_KINDS.items(), (self.properties, self.hooks), strict=True)
        for (name, kind), value in given:
            if not isinstance(value, kind | None):
                raise InvalidInputError(
                    f"{name}: expected {kind.__name__}(…), found {kind_of(value)}"
                    f"{_meant_by(value, kind)}"
                )
        if self.on_conflict not in {"retry", "raise"}:
            raise InvalidInputError(
                f"on_conflict: expected 'retry' or 'raise', found {self.on_conflict!r}"
            )


_KINDS: Final[dict[str, type[Any]]] = {
    "commit_properties": CommitProperties,
    "post_commithook_properties": PostCommitHookProperties,
}
"""Argument of an operation → the class of its value."""


def _meant_by(value: object, kind: type[Any]) -> str:
    """Return the call that a value stands for: of fields, or of custom metadata."""
    parts: list[Any] = [*value] if isinstance(value, list | tuple) else [value]
    if kind is CommitProperties and parts and all(isinstance(one, AppTransaction) for one in parts):
        inside = ", ".join(f"Transaction({one.app_id!r}, {one.version})" for one in parts)
        return f"; write CommitProperties(app_transactions=[{inside}])"
    for name, other in _KINDS.items():
        if isinstance(value, other):
            return f"; pass it as {name}=…"
    if kind is CommitProperties and isinstance(value, str):
        return f"; write CommitProperties(custom_metadata={{'comment': {shortened(value)}}})"
    if not isinstance(value, Mapping):
        return ""
    names = {field.name for field in fields(kind)}
    if names.issuperset(value):
        inside = ", ".join(f"{name}={shortened(item)}" for name, item in value.items())
    elif kind is CommitProperties:
        inside = f"custom_metadata={shortened(dict(value))}"
    else:
        inside = "…"
    return f"; write {kind.__name__}({inside})"


USUAL: Final = CommitOptions()
"""The default options: table properties decide which steps run after the commit."""


# --- Read set of a transaction, and isolation levels


READS: Final = "deltalog.reads"
"""The member of `commitInfo` with which commits on a branch record what they have read."""
_MOST_CHARACTERS: Final = 100_000
SERIALIZABLE: Final = "Serializable"
WRITE_SERIALIZABLE: Final = "WriteSerializable"
SNAPSHOT_ISOLATION: Final = "SnapshotIsolation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """The rows and applications that a transaction has read, for conflict detection.

    Args:
        predicates: conditions, resolved against the snapshot's schema. All rows that match any of
            them were read.
        whole_table: whether all rows were read, so that any concurrently added row conflicts.
        files: paths of files whose rows were read, as in the log (encoded).
        app_ids: applications whose recorded version was read.
        is_row_local: whether the operation decides about each row only by that row's values; see
            `rebase`.
    """

    predicates: tuple[Expression, ...] = ()
    whole_table: bool = False
    files: pa.StringArray | None = None
    app_ids: frozenset[str] = frozenset()
    is_row_local: bool = True

    @property
    def is_blind(self) -> bool:
        """Whether no row was read."""
        return not self.predicates and not self.whole_table and self.files is None

    def to_json(self) -> dict[str, Any]:
        """Return the read rows as JSON: SQL strings that match them, or the whole table."""
        from deltalog.expressions import to_sql  # noqa: PLC0415  # only branches need it

        predicates = [to_sql(predicate) for predicate in self.predicates]
        is_long = sum(map(len, predicates)) > _MOST_CHARACTERS  # such as a list of many keys
        return {
            "predicates": [] if is_long else predicates,
            "wholeTable": self.whole_table or is_long,
            "isRowLocal": self.is_row_local,
        }

    def with_predicate(self, predicate: Expression | None) -> ReadSet:
        """Return the read set with all rows that match a predicate; None means all rows."""
        if predicate is None:
            return replace(self, whole_table=True)
        return replace(self, predicates=(*self.predicates, predicate))

    def with_files(self, files: pa.Table) -> ReadSet:
        """Return the read set with the rows of more files.

        Args:
            files: rows of `snapshot.files` with at least the column `path`.
        """
        paths: Any = files.column("path")
        if self.files is not None:
            paths = pa.chunked_array([self.files, *paths.chunks], pa.string())
        return replace(self, files=cast("pa.StringArray", _one_piece(paths)))

    def with_app(self, app_id: str) -> ReadSet:
        """Return the read set with the recorded version of another application."""
        return replace(self, app_ids=self.app_ids | {app_id})


def _one_piece(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole: Any = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # pyarrow before 25 may return a chunked array
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return cast("pa.Array[Any]", whole)
