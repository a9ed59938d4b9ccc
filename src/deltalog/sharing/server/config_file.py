"""The configuration file: YAML or TOML with secrets from the environment, reloaded on changes.

Owns `${NAME}` and reloading. If a changed file has an error, the error is logged and the server
keeps its configuration.
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
# `$$`, `${NAME}`, or a `${` of another form, which is refused.
_REFERENCE: Final = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|(\{))")
# Settings of the socket and of the routes, which need a restart of the process.
_FIXED: Final = ("host", "port", "endpoint", "metrics", "certificate_file", "certificate_key_file")


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> ServerConfig:
    """Return the configuration in a file.

    Args:
        path: of a `.toml` file; all others are read as YAML, which includes JSON.
        environment: variables for `${NAME}`; None is the environment of the process.

    Raises:
        InvalidInputError: the file cannot be read, or a setting is wrong.
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
    """Return the values with `${NAME}` in their texts replaced; `$$` is a dollar sign.

    Raises:
        InvalidInputError: a variable is not set; the message names it, but no value.
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
            raise InvalidInputError(f"{where}: expected ${{NAME}}, or $$ for a dollar sign")
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
    """The server of a configuration file, replaced when the file changes.

    Args:
        path: of the configuration.
        seconds: how often the file is checked for changes.
    """

    def __init__(self, path: str | Path, seconds: float = 2.0) -> None:
        self._path = Path(path)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(32)
        self._state = self._file_state()
        self._next_check_s = time.monotonic() + seconds
        self.config = load_config(self._path)
        self._server = make_server(self.config, self._key)

    def current(self) -> Server:
        """Return the server of the file's current contents.

        Cost: one `stat` of the file every few seconds.
        """
        if time.monotonic() >= self._next_check_s:
            self.reload()
        return self._server

    def reload(self) -> None:
        """Replace the server if the file has changed."""
        with self._lock:
            self._next_check_s = time.monotonic() + self._seconds
            state = self._file_state()
            if state == self._state:
                return
            self._state = state
            try:
                config = load_config(self._path)
                server = make_server(config, self._key, before=self._server)
            except DeltaError as error:
                _LOG.error("the configuration is not reloaded: %s", error)
                return
            for name in _FIXED:
                if getattr(config, name) != getattr(self.config, name):
                    _LOG.warning("%s has changed, which needs a restart of the server", name)
            self.config, self._server = config, server
            _LOG.info("the configuration is reloaded")

    def _file_state(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def app_of_file(path: str | Path) -> tuple[ASGIApp, ServerConfig]:
    """Return the application of a configuration file, which is reloaded when it changes.

    Raises:
        InvalidInputError: the file is wrong.
    """
    server = ReloadingServer(path)
    return make_app(server.current), server.config
