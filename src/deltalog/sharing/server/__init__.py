"""A Delta Sharing server for tables in any store, as an ASGI application."""

from __future__ import annotations

from deltalog.sharing.server.application import app
from deltalog.sharing.server.config import ServerConfig
from deltalog.sharing.server.config_settings import parse_config

__all__ = ["ServerConfig", "app", "parse_config"]
