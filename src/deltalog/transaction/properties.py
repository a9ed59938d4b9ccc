"""What a caller may say about a commit, with deltalake's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """How far an application has come: makes a write that is repeated happen once.

    A commit whose (application, version) is in the table already is skipped.

    Args:
        app_id: name of the application, of its choice.
        version: grows with every write of the application.
        last_updated: milliseconds since 1970, UTC; None is the moment of the commit.

    Protocol: Transaction Identifiers
    """

    app_id: str
    version: int
    last_updated: int | None = None


Transaction = AppTransaction


@dataclass(frozen=True, slots=True)
class CommitProperties:
    """How a commit is made and what it says of itself.

    Args:
        custom_metadata: members of `commitInfo` besides ours; `userMetadata` is Spark's name for
            a free text.
        max_commit_retries: how often a commit that lost is tried again; None is 10,000 times, for
            10 minutes.
        app_transactions: recorded with the commit; one that is there already skips it.
    """

    custom_metadata: Mapping[str, str] | None = None
    max_commit_retries: int | None = None
    app_transactions: Sequence[AppTransaction] | None = None

    def __post_init__(self) -> None:
        """Refuse what would fail in the middle of a commit."""
        metadata, transactions = self.custom_metadata, self.app_transactions
        if not isinstance(metadata, Mapping | None):
            raise InvalidInputError(f"custom_metadata: expected a dictionary, found {metadata!r}")
        found: Iterable[object] = transactions if isinstance(transactions, Iterable) else [None]
        if transactions is not None and not all(isinstance(one, AppTransaction) for one in found):
            raise InvalidInputError(
                "app_transactions: expected a list such as [Transaction('app', 1)], found "
                f"{transactions!r}"
            )


@dataclass(frozen=True, slots=True)
class PostCommitHookProperties:
    """What is done right after a commit; a failure of it never fails the commit.

    Args:
        create_checkpoint: write a checkpoint where the table's interval is reached.
        cleanup_expired_logs: delete expired files of the log after a checkpoint; None follows the
            table's `delta.enableExpiredLogCleanup`.
        write_checksum: write the version checksum.
        auto_compact: put small files together after commits that write rows; None follows the
            table's `delta.autoOptimize.autoCompact`.
    """

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None
    write_checksum: bool = True
    auto_compact: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """What a caller says of a commit besides what it holds; checked before anything is written.

    Args:
        properties: metadata, retries and application transactions of the commit.
        hooks: what follows it.
        on_conflict: whether what a winner made wrong is evaluated anew, or the conflict is raised.

    Raises:
        InvalidInputError: a value is of another class, such as a dictionary.
    """

    properties: CommitProperties | None = None
    hooks: PostCommitHookProperties | None = None
    on_conflict: Literal["retry", "raise"] = "retry"

    def __post_init__(self) -> None:
        """Refuse what is neither left out nor of its class."""
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
"""Nothing is asked for: the properties of the table decide."""
