"""The requests to AWS Glue, and what its errors mean.

The only importer of boto3.

Protocol: none
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from deltalog.catalogs.protocol import Name, check_parts, shown_name
from deltalog.errors import (
    CatalogAccessError,
    CatalogError,
    CatalogUnavailableError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.http.texts import printable
from deltalog.storage.faults import redact, says
from deltalog.storage.unreached import impatient_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MISSING: Final = frozenset({"EntityNotFoundException"})
_EXISTS: Final = frozenset({"AlreadyExistsException"})
_DENIED: Final = frozenset(
    {
        "AccessDeniedException",
        "AccessDenied",
        "ExpiredTokenException",
        "InvalidSignatureException",
        "UnrecognizedClientException",
        "NoCredentialsError",
        "PartialCredentialsError",
        "TokenRetrievalError",
    }
)
_BUSY: Final = frozenset(
    {
        "ThrottlingException",
        "InternalServiceException",
        "OperationTimeoutException",
        "EndpointConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "ConnectionClosedError",
    }
)
_SECRETS: Final = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# What `get_table` says and `update_table` takes.
_INPUT: Final = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "TableType",
    "Parameters",
)


class GlueRequests:
    """The requests to Glue, and what its errors mean."""

    def __init__(
        self, catalog_id: str | None, options: dict[str, Any], *, pickles_secrets: bool
    ) -> None:
        self.catalog_id = catalog_id
        self._options = options
        self._pickles_secrets = pickles_secrets
        self._client = _client(options)

    def table(self, name: Name) -> dict[str, Any] | None:
        """The entry of a table; None if there is none."""
        check_parts(name, 2, "a table of Glue")
        try:
            with self._errors(f"load table {shown_name(name)}"):
                answer = self._client.get_table(**self._of(name), Name=name[1])
        except TableNotFoundError:
            return None
        return dict(answer["Table"])

    def pages(
        self, what: str, operation: str, member: str, **more: Any
    ) -> Iterator[dict[str, Any]]:
        """The entries of a listing."""
        with self._errors(what):
            pages = self._client.get_paginator(operation).paginate(**self._account, **more)
            for page in pages:
                yield from page[member]

    def create_database(
        self,
        name: str,
        comment: str | None,
        location: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """Make a database.

        Raises:
            CatalogError: with the status 409 if there is one.
        """
        more = {"Description": comment, "LocationUri": location, "Parameters": properties}
        given = {"Name": name, **{key: value for key, value in more.items() if value}}
        what = f"create schema {shown_name((name,))}"
        try:
            with self._errors(what):
                self._client.create_database(**self._account, DatabaseInput=given)
        except TableExistsError as error:
            raise CatalogError(f"cannot {what}: there is one", status=409) from error

    def delete_database(self, name: str) -> None:
        """Drop a database with its entries.

        Raises:
            CatalogError: with the status 404 if there is none.
        """
        what = f"drop schema {shown_name((name,))}"
        try:
            with self._errors(what):
                self._client.delete_database(**self._account, Name=name)
        except TableNotFoundError as error:
            raise CatalogError(f"cannot {what}: there is none", status=404) from error

    def default_location(self, name: Name) -> str:
        """Where a table lies if nobody says so."""
        with self._errors(f"load database {shown_name(name[:1])}"):
            answer = self._client.get_database(**self._account, Name=name[0])
        place = answer["Database"].get("LocationUri")
        if not place:
            raise InvalidInputError(
                f"cannot create {shown_name(name)}: its database has no location; give the table's"
            )
        return f"{str(place).rstrip('/')}/{name[1]}"

    def create(self, name: Name, entry: dict[str, Any]) -> None:
        """Make an entry."""
        with self._errors(f"create table {shown_name(name)}"):
            self._client.create_table(**self._of(name), TableInput=entry)

    def delete(self, name: Name) -> None:
        """Remove an entry."""
        check_parts(name, 2, "a table of Glue")
        with self._errors(f"drop table {shown_name(name)}"):
            self._client.delete_table(**self._of(name), Name=name[1])

    def change(self, name: Name, make: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replace an entry by what is made of it."""
        entry = self.table(name)
        if entry is None:
            raise TableNotFoundError(f"there is no table {shown_name(name)} in the catalog")
        changed = make({key: entry[key] for key in _INPUT if key in entry})
        with self._errors(f"update table {shown_name(name)}"):
            self._client.update_table(**self._of(name), TableInput=changed)

    @property
    def _account(self) -> dict[str, str]:
        return {} if self.catalog_id is None else {"CatalogId": self.catalog_id}

    def _of(self, name: Name) -> dict[str, str]:
        return {**self._account, "DatabaseName": name[0]}

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn boto3's errors into ours."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # the mapping is total
            secrets = [str(self._options[key]) for key in _SECRETS if self._options.get(key)]
            detail = printable(redact(f"{type(error).__name__}: {error}", secrets))
            text = f"cannot {what}: {detail}"
            if says(error, _MISSING):
                raise TableNotFoundError(text) from None
            if says(error, _EXISTS):
                raise TableExistsError(text) from None
            if says(error, _DENIED):
                raise CatalogAccessError(text, status=403) from None
            if says(error, _BUSY):
                raise CatalogUnavailableError(text) from None
            raise CatalogError(text) from None

    def __getstate__(self) -> dict[str, Any]:
        options = self._options
        if not self._pickles_secrets:
            options = {key: value for key, value in options.items() if key not in _SECRETS}
        return {
            "catalog_id": self.catalog_id,
            "_options": options,
            "_pickles_secrets": self._pickles_secrets,
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._client = _client(self._options)


def _client(options: Mapping[str, Any]) -> Any:
    try:
        import boto3  # noqa: PLC0415  # an extra
    except ImportError as error:  # pragma: no cover -- tests have it
        raise InvalidInputError(
            "cannot use AWS Glue: boto3 is not installed; pip install 'deltalog[glue]'"
        ) from error
    return impatient_client(boto3.client("glue", **options), "glue")
