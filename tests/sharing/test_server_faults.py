"""What a recipient learns of an error: a status, a code, and no word of the error itself."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    AccessDeniedError,
    ChangeDataFeedNotEnabledError,
    DataFileMissingError,
    DeletionVectorError,
    InternalError,
    InvalidInputError,
    MalformedLogError,
    MalformedMessageError,
    ObjectNotFoundError,
    StorageError,
    TableNotFoundError,
    UnsafePathError,
    UnsupportedTypeError,
    VersionNotFoundError,
)
from deltalog.sharing.server.faults import Fault, fault_of, not_found

PLACE = "s3://bucket/secret"


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-GEN-07", "SHARE-SEC-07")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (TableNotFoundError(PLACE), 404, "RESOURCE_DOES_NOT_EXIST"),
        (ObjectNotFoundError(PLACE), 404, "RESOURCE_DOES_NOT_EXIST"),
        (DataFileMissingError(PLACE), 404, "RESOURCE_DOES_NOT_EXIST"),
        (VersionNotFoundError(PLACE), 400, "INVALID_PARAMETER_VALUE"),
        (ChangeDataFeedNotEnabledError(PLACE), 400, "INVALID_PARAMETER_VALUE"),
        (InvalidInputError(PLACE), 400, "INVALID_PARAMETER_VALUE"),
        (UnsupportedTypeError(PLACE), 400, "UNSUPPORTED_OPERATION"),
        (DeletionVectorError(PLACE), 400, "UNSUPPORTED_OPERATION"),
        (UnsafePathError(PLACE), 400, "UNSUPPORTED_OPERATION"),
        (AccessDeniedError(PLACE), 503, "TEMPORARILY_UNAVAILABLE"),
        (StorageError(PLACE), 503, "TEMPORARILY_UNAVAILABLE"),
        (MalformedLogError(PLACE), 500, "INTERNAL_ERROR"),
        (InternalError(PLACE), 500, "INTERNAL_ERROR"),
        (RuntimeError(PLACE), 500, "INTERNAL_ERROR"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_have_a_status_and_say_nothing_else(
    error: Exception, status: int, code: str
) -> None:
    fault = fault_of(error)
    assert (fault.status, fault.code) == (status, code)
    assert "secret" not in fault.message
    assert fault.headers == ({"Retry-After": "5"} if status == 503 else {})


@pytest.mark.protocol("SHARE-GEN-07")
def test_a_malformed_request_is_quoted() -> None:
    fault = fault_of(MalformedMessageError("query.version: expected int, found str"))
    assert (fault.status, fault.code) == (400, "MALFORMED_REQUEST")
    assert fault.message == "query.version: expected int, found str"


@pytest.mark.protocol("SHARE-LS-06")
def test_what_is_not_shared_is_as_what_does_not_exist() -> None:
    fault = not_found("table")
    assert fault_of(fault) is fault
    same = fault_of(TableNotFoundError("no log"))
    assert (same.status, same.code, same.message) == (fault.status, fault.code, fault.message)
    assert isinstance(fault, Fault)
