"""Looking at what a configuration shares before anybody asks for it.

Owns nothing but the question: can every table be opened, and does what is shown of it fit?
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from deltalog.errors import DeltaError
from deltalog.sharing.server.application import make_server
from deltalog.sharing.server.faults import Fault
from deltalog.sharing.server.formats import needed_features
from deltalog.sharing.server.recipients import Recipient
from deltalog.sharing.server.tables import TableName, tables_of
from deltalog.sharing.server.views import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.endpoints import Server


def check_tables(config: ServerConfig) -> Iterator[tuple[str, str | None]]:
    """Each table by its name, with what is wrong with it; None is nothing.

    Cost: the log of each table.
    """
    server = make_server(config, secrets.token_bytes(32))
    for share in config.shares:
        for schema, table in tables_of(share):
            name = TableName(share.name, schema.name, table.name)
            yield f"{share.name}.{schema.name}.{table.name}", _fault(server, name)


def _fault(server: Server, name: TableName) -> str | None:
    try:
        table = server.tables.table(Recipient("", None), name)
        latest = table.latest()
        if table.config.is_view:
            View(latest, table.config, server.tools, latest)
        else:
            needed_features(latest)
    except (DeltaError, Fault) as error:
        # A recipient is told less; whoever runs the server may know the reason.
        return str(error.__context__ or error)
    return None
