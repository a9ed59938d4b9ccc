"""The functions and the client class of the official Python client, `delta_sharing`.

Names and arguments are the official ones. One result differs on purpose: this client filters rows
by `jsonPredicateHints`, while the official client returns all rows that the server sends.

Protocol: REST APIs
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.argument_types import checks_types
from deltalog._util.cards import card, grid
from deltalog._util.readable import readable_size
from deltalog._util.similar_names import SimilarNames, suggests_arguments, suggests_options
from deltalog.errors import InvalidInputError
from deltalog.operations.arguments import as_timestamp_ms
from deltalog.schema.check import readable_moment
from deltalog.schema.metadata_columns import COMMIT_TIMESTAMP
from deltalog.sharing.client.aio import AsyncSharingClient
from deltalog.sharing.client.pages import CAPABILITIES
from deltalog.sharing.client.profile import ProfileSource, parse_table_url, read_profile
from deltalog.sharing.client.rest import AsyncRestClient
from deltalog.sharing.client.table import SharedTable
from deltalog.sharing.wire.requests import DELTA, PARQUET
from deltalog.storage.http.client import HttpOptions, run
from deltalog.storage.http.replies import shown_location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    import pandas as pd

    from deltalog.protocol.actions.model import Format, Protocol
    from deltalog.sharing.wire.lines import Schema, Share, Table
    from deltalog.sharing.wire.profile import Profile


_MEANT: Final = {
    **dict.fromkeys(("shares", "get_shares"), "list_shares()"),
    **dict.fromkeys(("schemas", "get_schemas"), "list_schemas(share)"),
    **dict.fromkeys(("tables", "get_tables", "all_tables"), "list_all_tables()"),
    **dict.fromkeys(("get_table", "open_table", "load_table"), "table('share.schema.table')"),
    **dict.fromkeys(
        ("load_as_pandas", "read", "load", "to_pandas", "query"),
        "table('share.schema.table').to_pandas()",
    ),
}
"""What to use instead of names of other libraries."""
_OPTIONS: Final = {
    **dict.fromkeys(
        ("columns", "predicate", "filters", "where"),
        "SharedTable(url).scan(columns=…, predicate=…).to_pandas()",
    ),
    **dict.fromkeys(("n", "nrows", "num_rows", "head"), "limit=…"),
}
"""Option of other functions → what to use instead."""


@checks_types
@suggests_arguments
class SharingClient(SimilarNames):
    """A client of one sharing server, for one profile.

    Args:
        profile: path or URL of a profile file, an open file, a dictionary or a `Profile`.
        options: options of the connections.

    Raises:
        InvalidInputError: the profile does not exist, or is of an unsupported version or type.
    """

    _meant = _MEANT

    def __init__(self, profile: ProfileSource, *, options: HttpOptions | None = None) -> None:
        self._client = AsyncSharingClient(profile, options=options)

    @property
    def profile(self) -> Profile:
        """Return the server's address and the recipient's credentials."""
        return self._client.profile

    @property
    def rest(self) -> AsyncRestClient:
        """Return the client for the server's endpoints, whose methods are coroutines."""
        return self._client.rest

    def list_shares(self) -> list[Share]:
        """Return the shares that this recipient can access, in the order of the server."""
        return run(self._client.list_shares)

    def get_share(self, share: str) -> Share:
        """Return one share by its name."""
        return run(self._client.get_share, share)

    def list_schemas(self, share: Share | str) -> list[Schema]:
        """Return the schemas of a share, in the order of the server."""
        return run(self._client.list_schemas, share)

    def list_tables(self, schema: Schema) -> list[Table]:
        """Return the tables of a schema, in the order of the server."""
        return run(self._client.list_tables, schema)

    def list_all_tables(self, share: Share | str | None = None) -> list[Table]:
        """Return the tables of a share, or of all shares, in the order of the server."""
        return run(self._client.list_all_tables, share)

    def table(
        self, table: Table | str, version: int | str | datetime | date | None = None
    ) -> SharedTable:
        """Return a table to read: an item of a listing, or `share.schema.table`."""
        return SharedTable(table, version, client=self.rest)

    def close(self) -> None:
        """Close the connections."""
        run(self._client.close)

    def __repr__(self) -> str:
        """Show the server."""
        return f"SharingClient({shown_location(self.profile.endpoint)!r})"


@suggests_options("deltalog.sharing.load_as_pandas()", _OPTIONS)
def load_as_pandas(  # noqa: PLR0917  # the official signature
    url: str,
    limit: int | None = None,
    version: int | None = None,
    timestamp: str | None = None,
    jsonPredicateHints: str | None = None,  # noqa: N803  # the official name
    use_delta_format: bool | None = None,  # noqa: FBT001  # the official signature
    convert_in_batches: bool = False,  # noqa: FBT001, FBT002  # the official signature
) -> pd.DataFrame:
    """Return the rows of a shared table as a pandas dataframe.

    Args:
        url: `<profile>#<share>.<schema>.<table>`.
        limit: maximum number of rows to return.
        version: version of the table, if the server shares its history.
        timestamp: read the version that was current at this time (ISO 8601).
        jsonPredicateHints: a JSON predicate; only rows for which it is true are returned.
        use_delta_format: whether to request only the format `delta` (True) or only `parquet`
            (False); if None, the server chooses.
        convert_in_batches: ignored; rows are always converted in batches.

    Raises:
        InvalidInputError: the URL or the hint is malformed.
        SharingError: the server refuses the request.
    """
    del convert_in_batches
    scan = _table(url, use_delta_format).scan(
        limit=limit,
        version=version,
        timestamp=timestamp,
        json_predicate_hints=jsonPredicateHints,
    )
    return scan.to_pandas()


@suggests_options("deltalog.sharing.load_as_arrow()", _OPTIONS)
def load_as_arrow(  # parameters as in `load_as_pandas`
    url: str,
    limit: int | None = None,
    version: int | None = None,
    timestamp: str | None = None,
    jsonPredicateHints: str | None = None,  # noqa: N803  # the official name
    use_delta_format: bool | None = None,  # noqa: FBT001  # the official name
) -> pa.Table:
    """Return the rows of a shared table as an Arrow table.

    Args:
        url: `<profile>#<share>.<schema>.<table>`.
        limit: maximum number of rows to return.
        version: version of the table, if the server shares its history.
        timestamp: read the version that was current at this time (ISO 8601).
        jsonPredicateHints: a JSON predicate; only rows for which it is true are returned.
        use_delta_format: whether to request only the format `delta` (True) or only `parquet`
            (False); if None, the server chooses.

    Raises:
        InvalidInputError: the URL or the hint is malformed.
        SharingError: the server refuses the request.
    """
    scan = _table(url, use_delta_format).scan(
        limit=limit,
        version=version,
        timestamp=timestamp,
        json_predicate_hints=jsonPredicateHints,
    )
    return scan.to_table()


@suggests_options("deltalog.sharing.load_table_changes_as_pandas()", _OPTIONS)
def load_table_changes_as_pandas(  # noqa: PLR0917  # the official signature
    url: str,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: str | None = None,
    ending_timestamp: str | None = None,
    use_delta_format: bool | None = None,  # noqa: FBT001  # the official signature
    convert_in_batches: bool = False,  # noqa: FBT001, FBT002  # the official signature
) -> pd.DataFrame:
    """Return the changed rows of a shared table as a pandas dataframe.

    Args:
        url: `<profile>#<share>.<schema>.<table>`.
        starting_version: the first version; either this or `starting_timestamp` is required.
        ending_version: the last version, instead of `ending_timestamp`; by default the latest.
        starting_timestamp: time of the first version, ISO 8601.
        ending_timestamp: time of the last version, ISO 8601.
        use_delta_format: whether to request only the format `delta` (True) or only `parquet`
            (False); if None, the server chooses.
        convert_in_batches: ignored; rows are always converted in batches.

    Returns:
        The table's columns, `_change_type`, `_commit_version`, and `_commit_timestamp` in
        milliseconds since 1970.
    """
    del convert_in_batches
    if starting_version is None and starting_timestamp is None:
        raise InvalidInputError(
            f"cannot read the changes of {url.rpartition('#')[2]!r}: expected starting_version or "
            "starting_timestamp"
        )
    changes = _table(url, use_delta_format).load_cdf(
        starting_version, ending_version, starting_timestamp, ending_timestamp
    )
    rows = changes.to_table()
    times: Any = rows.column(COMMIT_TIMESTAMP)
    numbers = times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    position = rows.column_names.index(COMMIT_TIMESTAMP)
    return rows.set_column(position, COMMIT_TIMESTAMP, numbers).to_pandas()


def get_table_version(url: str, starting_timestamp: str | None = None) -> int:
    """Return the latest version of a shared table, or the first version at or after a time."""
    time_ms = None if starting_timestamp is None else as_timestamp_ms(starting_timestamp)
    return _table(url, None).latest_version(time_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMetadata:
    """The metadata of a shared table, with the names of the official client.

    Args:
        version: version of the table.
        size: size of all files in bytes, if the server sends it.
        num_files: number of files, if the server sends it.
        created_time: the time at which the table was created, in milliseconds since 1970, UTC.
    """

    id: str
    name: str | None
    description: str | None
    format: Format
    schema_string: str = field(repr=False)
    configuration: Mapping[str, str]
    partition_columns: Sequence[str]
    version: int
    size: int | None
    num_files: int | None
    created_time: int | None

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        size, time_ms = self.size, self.created_time
        facts = {
            "description": self.description,
            "id": self.id,
            "version": self.version,
            "files": self.num_files,
            "size": None if size is None else readable_size(size),
            "created": None if time_ms is None else readable_moment(time_ms),
            "partitioned by": ", ".join(self.partition_columns),
            "properties": ", ".join(f"{name}={text}" for name, text in self.configuration.items()),
        }
        shown = grid((name, fact) for name, fact in facts.items() if fact not in {None, ""})
        return card(self.name or "Metadata", shown)


def get_table_metadata(url: str, use_delta_format: bool | None = None) -> SharedMetadata:  # noqa: FBT001  # the official signature
    """Return a table's schema, partition columns, properties and, if the server sends it, size."""
    head = _table(url, use_delta_format).head
    metadata = head.metadata
    return SharedMetadata(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        format=metadata.format,
        schema_string=metadata.schema_string,
        configuration=metadata.configuration,
        partition_columns=metadata.partition_columns,
        version=head.version,
        size=head.size_bytes,
        num_files=head.num_files,
        created_time=metadata.created_time_ms,
    )


def get_table_protocol(url: str, use_delta_format: bool | None = None) -> Protocol:  # noqa: FBT001  # the official signature
    """Return the protocol that readers of a shared table must support."""
    return _table(url, use_delta_format).protocol()


def _table(url: str, use_delta_format: bool | None) -> SharedTable:  # noqa: FBT001  # as in callers
    location, table = parse_table_url(url)
    capabilities = CAPABILITIES
    if use_delta_format is not None:
        formats = (DELTA,) if use_delta_format else (PARQUET,)
        capabilities = replace(CAPABILITIES, response_formats=formats)
    client = AsyncRestClient(read_profile(location), capabilities=capabilities)
    return SharedTable(table, client=client)
