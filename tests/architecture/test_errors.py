"""The error tree: its shape is a promise, and every leaf survives a process boundary."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltalog.errors
from deltalog.errors import DeltaError, UnsupportedFeatureError

# Two blanks a level; what a class is besides a DeltaError stands in parentheses.
TREE = """\
DeltaError
  AuditFailedError
  BranchExistsError
  BranchNotFoundError (LookupError)
  CommitFailedError
    AppendOnlyError
    BranchClosedError
    CommitConflictError
      ConcurrentAppendError
      ConcurrentDeleteDeleteError
      ConcurrentDeleteReadError
      ConcurrentTransactionError
      DomainMetadataConflictError
      MetadataChangedError
      ProtocolChangedError
    CommitOutcomeUnknownError
    CommitRetriesExhaustedError
    TransactionIncompleteError
  ConstraintViolationError
  DeltaProtocolError
    ChangeDataFeedNotEnabledError
    DataFileMissingError
    DataFileUnreadableError
    DeletionVectorError
    IncompatibleChangesError
    MalformedLogError
      CheckpointMissingError
      CheckpointUnreadableError
      InvalidMetadataError
      InvalidPartitionValueError
      InvalidProtocolError
      LogGapError
      MalformedMessageError
      NoMetadataError
      NoProtocolError
      UnsafePathError
    RowsChangedError
    UnsupportedFeatureError
      CatalogManagedError
    UnsupportedProtocolError
    UnsupportedTypeError
    VersionNotFoundError
  InternalError
  InvalidInputError (ValueError)
    AmbiguousMergeError
    AppendOnlyError
  SchemaMismatchError
  SharingError
    ShareNotFoundError
    SharingAccessError
    SharingUnavailableError
  StorageError (OSError)
    AccessDeniedError
      CatalogAccessError
    AlreadyExistsError
    CatalogError
      CatalogAccessError
      CatalogUnavailableError
    ObjectNotFoundError
  TableExistsError (FileExistsError)
  TableNotFoundError (FileNotFoundError)
"""


def _classes(parent: type[DeltaError] = DeltaError) -> Iterator[tuple[int, type[DeltaError]]]:
    yield 0, parent
    for child in sorted(parent.__subclasses__(), key=lambda cls: cls.__name__):
        if child.__module__ == "deltalog.errors":
            yield from ((depth + 1, cls) for depth, cls in _classes(child))


ALL = list(dict.fromkeys(cls for _, cls in _classes()))  # one may have two parents


def _make(cls: type[DeltaError]) -> DeltaError:
    if issubclass(cls, UnsupportedFeatureError):
        return cls(table="t", version=3, operation="read", features=["later", "another"])
    return cls("what was attempted and what was found")


def _line(depth: int, cls: type[DeltaError]) -> str:
    others = [base.__name__ for base in cls.__bases__ if not issubclass(base, DeltaError)]
    besides = f" ({', '.join(others)})" if others and cls is not DeltaError else ""
    return f"{'  ' * depth}{cls.__name__}{besides}\n"


def test_the_tree_has_its_shape() -> None:
    assert "".join(_line(depth, cls) for depth, cls in _classes()) == TREE


def test_the_module_holds_the_tree_and_nothing_else() -> None:
    public = {
        name
        for name, value in vars(deltalog.errors).items()
        if inspect.isclass(value) and value.__module__ == "deltalog.errors"
    }
    assert public == {cls.__name__ for cls in ALL}


def test_codes_tell_errors_apart() -> None:
    codes = [cls.code for cls in ALL]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and " " not in code for code in codes)


def _kinds(node: Any) -> set[str]:
    """The error kinds that a manifest names anywhere."""
    if isinstance(node, list):
        return set[str]().union(*map(_kinds, node))
    if not isinstance(node, dict):
        return set()
    own = set(node.get("error", ())) if node.get("outcome") == "error" else set()
    return own.union(*map(_kinds, node.values()))


@pytest.mark.corpus
def test_every_error_kind_of_the_corpora_is_a_code(corpus: Path, reference: Path) -> None:
    kinds = set[str]()
    for directory in (corpus, reference):
        kinds |= _kinds(json.loads((directory / "manifest.json").read_text("utf-8")))
    assert len(kinds) > 10
    assert kinds - {cls.code for cls in ALL} == set()


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_survives_pickling(cls: type[DeltaError]) -> None:
    error = _make(cls).with_note("while reading version 3")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is cls
    assert (str(back), back.code, back.__notes__) == (str(error), error.code, error.__notes__)
    assert vars(back) == vars(error)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_an_error_says_when_it_is_raised(cls: type[DeltaError]) -> None:
    assert cls.__doc__
    assert cls.__doc__ != cls.__mro__[1].__doc__
