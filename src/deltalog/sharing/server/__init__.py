"""A Delta Sharing server for tables in any store, as an ASGI application.

- `application`: the app and its state. `endpoints`: routes and their handlers. `middleware`:
  limits, logs and metrics of requests. `serving`: the command that runs it. `connections`: open
  connections.
- `config`, `config_file`, `config_settings`: the configuration. `recipients`: authentication and
  access.
- `tables`: shared tables and their versions. `views`: shared parts of tables.
- `queries`, `view_query`, `changes`, `async_queries`: answers to requests. `answers`: classes that
  all answers use. `file_lines` and `formats`: lines. `pages`: paging and hints.
- `urls`, `tokens`: signed URLs and tokens. `downloads`, `cache`: files. `faults`: errors.
"""

from __future__ import annotations

from deltalog.errors import InvalidInputError

try:
    import aiohttp  # noqa: F401
    import anyio  # noqa: F401
    import starlette  # noqa: F401
except ImportError as _error:
    raise InvalidInputError(
        f"cannot run a sharing server: {_error.name} is not installed; "
        "pip install 'deltalog[sharing]'"
    ) from _error

from deltalog.sharing.server.application import app
from deltalog.sharing.server.config import ServerConfig
from deltalog.sharing.server.config_settings import parse_config

__all__ = ["ServerConfig", "app", "parse_config"]
