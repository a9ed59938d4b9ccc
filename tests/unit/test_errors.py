from __future__ import annotations

import pickle

import pytest

from deltalog.errors import (
    CatalogManagedError,
    CommitConflictError,
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    SharingError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)


def test_a_message_of_an_unsupported_feature_names_table_version_and_features() -> None:
    error = CatalogManagedError(
        table="s3://b/t", version=3, operation="read", features=["y", "x"], hint="ask it"
    )
    assert str(error) == (
        "cannot read s3://b/t at version 3: table feature(s) x, y are not supported for this; "
        "ask it"
    )
    assert error.features == ("y", "x")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (TableNotFoundError("x"), FileNotFoundError),
        (InvalidInputError("x"), ValueError),
        (StorageError("x"), OSError),
    ],
)
def test_callers_may_catch_pythons_own_class(error: DeltaError, builtin: type) -> None:
    assert isinstance(error, builtin)


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedFeatureError(table="t", version=None, operation="write", features=["x"]),
        ConstraintViolationError("bad", constraint="c", num_rows=2, examples=[{"a": 1}]),
        CommitConflictError("lost", version=4, operation="DELETE", files=["f"]),
        SharingError("no", status=404, error_code="RESOURCE_DOES_NOT_EXIST"),
    ],
)
def test_an_error_survives_pickling_with_its_fields_and_notes(error: DeltaError) -> None:
    error = error.with_note("while testing")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
    assert found.__notes__ == ["while testing"]
