"""The configuration file: YAML or TOML, secrets from the environment, read again when it changes.

Owns `${NAME}` and reloading. A changed file with a fault changes nothing: the fault is logged, and
the server goes on as it was.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import DeltaError, InvalidInputError
from deltalog.sharing.server.application import make_app, make_server
from deltalog.sharing.server.config import parse_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp

    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.endpoints import Server

_LOG: Final = logging.getLogger("deltalog.sharing")
_REFERENCE: Final = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|(\{))")
# Settings of the socket and of the routes: the process has to be started again for them.
_FIXED: Final = ("host", "port", "endpoint", "metrics", "certificate_file", "certificate_key_file")


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> ServerConfig:
    """The configuration of a file.

    Args:
        path: of a file whose name ends in `.yaml`, `.yml`, `.toml` or `.json`.
        environment: what `${NAME}` stands for; None is that of the process.

    Raises:
        InvalidInputError: the file cannot be read, or says something wrong.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"cannot read the configuration {path}: {error}") from None
    values = _parse(path, text)
    found = resolve_references(values, os.environ if environment is None else environment)
    try:
        return parse_config(found)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None


def resolve_references(values: Any, environment: Mapping[str, str], where: str = "") -> Any:
    """The values with `${NAME}` in their texts replaced; `$$` is a dollar.

    Raises:
        InvalidInputError: a variable is not set; the message names it, and no value.
    """
    if isinstance(values, dict):
        return {
            key: resolve_references(value, environment, f"{where}.{key}".lstrip("."))
            for key, value in values.items()
        }
    if isinstance(values, list):
        return [
            resolve_references(value, environment, f"{where}[{index}]")
            for index, value in enumerate(values)
        ]
    if not isinstance(values, str):
        return values

    def replace(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] is None:
            raise InvalidInputError(f"{where}: expected ${{NAME}}, or $$ for a dollar")
        if found[1] not in environment:
            raise InvalidInputError(f"{where}: the environment has no variable {found[1]}")
        return environment[found[1]]

    return _REFERENCE.sub(replace, values)


def _parse(path: Path, text: str) -> Any:
    if path.suffix.lower() == ".toml":
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInputError(f"{path}: {error}") from None
    try:
        import yaml  # noqa: PLC0415 -- not needed for TOML
    except ModuleNotFoundError:
        raise InvalidInputError(
            "reading YAML needs PyYAML: pip install 'deltalog[sharing]', or write TOML"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise InvalidInputError(
            f"{path}{place}: {getattr(error, 'problem', None) or 'no YAML'}"
        ) from None


class ReloadingServer:
    """The server of a file, made anew when the file has changed.

    Args:
        path: of the configuration.
        seconds: how often the file is looked at.
    """

    def __init__(self, path: str | Path, seconds: float = 2.0) -> None:
        self._path = Path(path)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(32)
        self._stamp = self._look()
        self._next_look = time.monotonic() + seconds
        self.config = load_config(self._path)
        self._server = make_server(self.config, self._key)

    def current(self) -> Server:
        """The server as the file has it now.

        Cost: nothing, but for one look at the file's time every few seconds.
        """
        if time.monotonic() >= self._next_look:
            self.reload()
        return self._server

    def reload(self) -> None:
        """Look at the file, and follow it if it has changed."""
        with self._lock:
            self._next_look = time.monotonic() + self._seconds
            stamp = self._look()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                config = load_config(self._path)
                server = make_server(config, self._key, before=self._server)
            except DeltaError as error:
                _LOG.error("the configuration was not reloaded: %s", error)
                return
            for name in _FIXED:
                if getattr(config, name) != getattr(self.config, name):
                    _LOG.warning("%s has changed: start the server again for that", name)
            self.config, self._server = config, server
            _LOG.info("the configuration was reloaded")

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def app_of_file(path: str | Path) -> tuple[ASGIApp, ServerConfig]:
    """The application of a configuration file, which follows the file.

    Raises:
        InvalidInputError: the file is wrong.
    """
    server = ReloadingServer(path)
    return make_app(server.current), server.config
