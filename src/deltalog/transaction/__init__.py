"""One commit: content, conflicts, retry, and maintenance after it.

- `pending`: collects the content. `assemble`: creates the bytes of the commit.
- `commit`: the entry point. `commit_loop`: retries. `committer`: one attempt, on a store or through
  a catalog.
- `conflicts`: the conflict rules. `rebase`: checks them for each winning commit, and bases the
  transaction on that commit. `masks`: writes merged deletion vectors.
- `post_commit`: the steps after a commit. `maintenance`: checkpoints, checksums and clean-up.
- `journal`: commits to several tables. `properties`: options of a commit.

Protocol: Delta Log Entries, Actions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_call, explain_names
from deltalog.log.context import Committer
from deltalog.transaction.commit import Committed, Ran, commit, stage_and_commit
from deltalog.transaction.commit_loop import tell_commit
from deltalog.transaction.committer import Backoff, CatalogCommitter, FileSystemCommitter
from deltalog.transaction.pending import AddAction, PendingTransaction, RemoveAction
from deltalog.transaction.properties import (
    AppTransaction,
    CommitOptions,
    CommitProperties,
    PostCommitHookProperties,
    ReadSet,
    Transaction,
)

__all__ = [
    "AddAction",
    "AppTransaction",
    "Backoff",
    "CatalogCommitter",
    "CommitOptions",
    "CommitProperties",
    "Committed",
    "Committer",
    "FileSystemCommitter",
    "PendingTransaction",
    "PostCommitHookProperties",
    "Ran",
    "ReadSet",
    "RemoveAction",
    "Transaction",
    "commit",
    "stage_and_commit",
    "tell_commit",
]

if not TYPE_CHECKING:  # type checkers report such uses themselves
    __getattr__ = explain_names(
        __name__,
        __all__,
        {
            "create_table_with_add_actions": "DeltaTable.create(location, schema), and "
            "create_write_transaction(…) of the table"
        },
    )
    explain_call(__name__, "`with table.transaction() as tx:`")
