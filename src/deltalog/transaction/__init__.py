"""Transactions: from what a commit shall hold to a new version of the table.

`pending` collects, `conflicts` decides about who was faster, `assemble` makes the bytes, `commit`
is the loop around them.

Protocol: Delta Log Entries, Actions
"""

from __future__ import annotations

from deltalog.catalog import Committer
from deltalog.transaction.backoff import Backoff
from deltalog.transaction.commit import Committed, Ran, commit, run
from deltalog.transaction.committer import CatalogCommitter, FileSystemCommitter
from deltalog.transaction.pending import PendingTransaction
from deltalog.transaction.properties import (
    AppTransaction,
    CommitOptions,
    CommitProperties,
    PostCommitHookProperties,
    Transaction,
)
from deltalog.transaction.read_set import ReadSet

__all__ = [
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
    "Transaction",
    "commit",
    "run",
]
