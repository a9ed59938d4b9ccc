"""The client of Delta Sharing: shared tables, read with the methods of `DeltaTable`.

- `client`: `SharingClient` and the functions of the official client. `aio`: the same methods as
  coroutines.
- `table`: `SharedTable`. `shown_version`: one version of it. `snapshots`: its snapshots and scans.
- `rest`: requests and answers of the server; `pages` follows page tokens, `answers` reads lines.
- `profile`: profile files and table URLs. `store`: files behind URLs. `follow`: new versions.
"""

from __future__ import annotations

from deltalog.sharing.client.aio import AsyncRows, AsyncSharedTable, AsyncSharingClient
from deltalog.sharing.client.client import (
    SharedMetadata,
    SharingClient,
    get_table_metadata,
    get_table_protocol,
    get_table_version,
    load_as_arrow,
    load_as_pandas,
    load_table_changes_as_pandas,
)
from deltalog.sharing.client.follow import SharedFollower, SharedFollowOptions
from deltalog.sharing.client.pages import LineList, TableHead, TablePage
from deltalog.sharing.client.profile import parse_table_url, read_profile
from deltalog.sharing.client.rest import AsyncRestClient, TemporaryTableCredentials
from deltalog.sharing.client.table import SharedTable
from deltalog.sharing.wire.lines import Schema, Share, Table
from deltalog.storage.http.client import HttpOptions, Retry
from deltalog.storage.http.replies import AnswerLimits

__all__ = [
    "AnswerLimits",
    "AsyncRestClient",
    "AsyncRows",
    "AsyncSharedTable",
    "AsyncSharingClient",
    "HttpOptions",
    "LineList",
    "Retry",
    "Schema",
    "Share",
    "SharedFollowOptions",
    "SharedFollower",
    "SharedMetadata",
    "SharedTable",
    "SharingClient",
    "Table",
    "TableHead",
    "TablePage",
    "TemporaryTableCredentials",
    "get_table_metadata",
    "get_table_protocol",
    "get_table_version",
    "load_as_arrow",
    "load_as_pandas",
    "load_table_changes_as_pandas",
    "parse_table_url",
    "read_profile",
]
