"""Delta Sharing: the client and the server.

`SharedTable` and `SharingClient` read shared tables. `deltalog.sharing.server` shares tables. Names
are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_call, names_on_demand

if TYPE_CHECKING:
    from deltalog.sharing.client import (
        AnswerLimits,
        AsyncSharedTable,
        AsyncSharingClient,
        HttpOptions,
        Retry,
        Schema,
        Share,
        SharedFollowOptions,
        SharedMetadata,
        SharedTable,
        SharingClient,
        Table,
        get_table_metadata,
        get_table_protocol,
        get_table_version,
        load_as_arrow,
        load_as_pandas,
        load_table_changes_as_pandas,
    )

__all__ = [
    "AnswerLimits",
    "AsyncSharedTable",
    "AsyncSharingClient",
    "HttpOptions",
    "Retry",
    "Schema",
    "Share",
    "SharedFollowOptions",
    "SharedMetadata",
    "SharedTable",
    "SharingClient",
    "Table",
    "get_table_metadata",
    "get_table_protocol",
    "get_table_version",
    "load_as_arrow",
    "load_as_pandas",
    "load_table_changes_as_pandas",
]

_ORIGINS = {"deltalog.sharing.client": __all__}

# A type checker that sees `__getattr__` would accept any attribute of this module.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        _ORIGINS,
        meant={
            "load_as_polars": "SharedTable(url).to_polars()",
            **dict.fromkeys(("get_table_schema", "schema"), "SharedTable(url).schema()"),
            **dict.fromkeys(
                ("load_table_changes_as_polars", "load_table_changes_as_arrow"),
                "SharedTable(url).load_cdf(starting_version=…)",
            ),
            **dict.fromkeys(
                (
                    *("serve", "run", "start", "run_server", "start_server", "serve_tables"),
                    *("Server", "SharingServer", "ShareServer", "DeltaSharingServer"),
                ),
                "the command deltalog share serve CONFIG",
            ),
            **dict.fromkeys(
                ("app", "create_app", "make_app", "application", "asgi", "asgi_app"),
                "deltalog.sharing.server.app(parse_config(text)), an ASGI application, or the "
                "command deltalog share serve CONFIG",
            ),
            **dict.fromkeys(
                ("ServerConfig", "parse_config"), "deltalog.sharing.server, which has it"
            ),
            "load_as_spark": "deltalog.spark on Spark",
            **dict.fromkeys(
                ("load_table", "open_table", "read_table", "DeltaTable", "load"),
                "SharedTable(url), and its to_pandas(), to_polars() or scan()",
            ),
            **dict.fromkeys(("Client", "connect"), "SharingClient(profile)"),
            "list_all_tables": "list_all_tables() of SharingClient(profile)",
        },
    )
    explain_call(__name__, "deltalog.sharing.SharingClient(profile)")
