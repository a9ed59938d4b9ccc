"""Combinations of actions that one commit must not have.

"Since actions within a given Delta commit are not guaranteed to be applied in order", two of them
must not contradict each other: no reader could tell which is later (ledger LOG-05, LOG-07).

Protocol: Actions, Action Reconciliation
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from deltalog.actions import model
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def check_commit(actions: Sequence[model.Action]) -> None:
    """Refuse a commit whose actions contradict each other.

    An `add` and a `remove` may have the same path if their deletion vectors differ.

    Raises:
        InvalidInputError: it names the actions, or a number that no reader can hold.
    """
    _check_counters(actions)
    # "A single log entry MUST NOT include more than one action that reconciles with each other."
    for kind in (model.Metadata, model.Protocol, model.CommitInfo, model.RowIdHighWaterMark):
        if sum(isinstance(action, kind) for action in actions) > 1:
            raise InvalidInputError(f"cannot commit more than one {kind.__name__} action")
    adds = [action for action in actions if isinstance(action, model.AddFile)]
    removes = [action for action in actions if isinstance(action, model.RemoveFile)]
    # "It is required that there is at most one file action of the same type for any `path`
    # (regardless of `dvId`)."
    _refuse_twice("add actions of path", (add.path for add in adds))
    _refuse_twice("remove actions of path", (remove.path for remove in removes))
    _refuse_twice(
        "actions of transaction",
        (action.app_id for action in actions if isinstance(action, model.SetTransaction)),
    )
    _refuse_twice(
        "actions of domain",
        (action.domain for action in actions if isinstance(action, model.DomainMetadata)),
    )
    both = {_file_key(add) for add in adds} & {_file_key(remove) for remove in removes}
    if both:
        raise InvalidInputError(f"cannot add and remove the same file in one commit: {min(both)!r}")


def _check_counters(actions: Sequence[model.Action]) -> None:
    """Refuse numbers that no reader can hold: they are acknowledged, and the table is unreadable.

    Raises:
        InvalidInputError: it names the number.
    """
    for action in actions:
        _check_widths(type(action).__name__, action)
        vector = getattr(action, "deletion_vector", None)
        if vector is not None:
            _check_widths("deletionVector", vector)


def _check_widths(kind: str, values: object) -> None:
    for name, bits in _WIDTHS.get(type(values), {}).items():
        number = getattr(values, name)
        if number is not None and not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise InvalidInputError(
                f"cannot commit {kind} with {name} {number}: it does not fit {bits} bits"
            )


_WIDTHS: Final[Mapping[type, Mapping[str, int]]] = {
    model.AddFile: {
        "size_bytes": 64,
        "modification_time_ms": 64,
        "base_row_id": 64,
        "default_row_commit_version": 64,
    },
    model.RemoveFile: {
        "size_bytes": 64,
        "deletion_timestamp_ms": 64,
        "base_row_id": 64,
        "default_row_commit_version": 64,
    },
    model.AddCDCFile: {"size_bytes": 64},
    model.SetTransaction: {"version": 64, "last_updated_ms": 64},
    model.RowIdHighWaterMark: {"high_water_mark": 64},
    model.Protocol: {"min_reader_version": 32, "min_writer_version": 32},
    model.DeletionVectorDescriptor: {
        "size_bytes": 32,
        "offset": 32,
        "cardinality": 64,
        "max_row_index": 64,
    },
}


def _file_key(action: model.AddFile | model.RemoveFile) -> tuple[str, str]:
    vector = action.deletion_vector
    return action.path, "" if vector is None else vector.unique_id


def _refuse_twice(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInputError(f"cannot commit two {what} {twice[0]!r}")
