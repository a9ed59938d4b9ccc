"""Errors under the names of `delta.exceptions`."""

from __future__ import annotations

import pickle

import pytest

from deltalog import errors
from deltalog.spark import exceptions


@pytest.mark.parametrize("name", [name for name in exceptions.__all__ if "Exception" in name])
def test_what_deltas_users_catch_is_what_is_raised(name: str) -> None:
    assert issubclass(getattr(exceptions, name), errors.CommitFailedError)


def test_one_name_catches_every_conflict() -> None:
    with pytest.raises(exceptions.DeltaConcurrentModificationException):
        raise exceptions.ConcurrentAppendException("another writer added rows")


@pytest.mark.parametrize("name", ["UnsupportedPySparkError", "WorkerMismatchError"])
def test_what_is_installed_is_an_error_of_its_own(name: str) -> None:
    error = getattr(exceptions, name)("what is missing")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back)) == (type(error), "what is missing")
    assert isinstance(error, ImportError)
    assert isinstance(error, errors.DeltaError)
    assert error.code not in {errors.DeltaError.code, exceptions.InstallationError.code}
