"""The bodies of errors."""

from __future__ import annotations

import pytest

from deltalog.sharing.wire.requests import ErrorBody, encode_error, parse_error


@pytest.mark.protocol("SHARE-GEN-04")
def test_errors_are_read_and_written() -> None:
    error = ErrorBody(error_code="RESOURCE_DOES_NOT_EXIST", message="no")
    assert parse_error(encode_error(error)) == error
    for body in (b"<html>", b"", b"[]", b"{}", b'{"errorCode":1}'):
        assert parse_error(body) is None
