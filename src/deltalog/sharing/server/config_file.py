"""The configuration file: secrets from the environment and from files, and reloading on changes.

Owns `${NAME}`, `${file:PATH}` and reloading. A changed file counts when nobody writes to it any
more, and as a whole: if it has an error, the error is logged and the server keeps its
configuration.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
import threading
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.clock import now_ms
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.sharing.server.application import make_server
from deltalog.sharing.server.config_settings import parse_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.endpoints import Server

_LOG: Final = logging.getLogger("deltalog.sharing")
# `$$`, `${NAME}`, `${file:PATH}` with names in its path, or a `${` of another form, which is
# refused.
_NAME: Final = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"
_FILE: Final = r"\$\{file:((?:[^{}$]|\$\{[A-Za-z_][A-Za-z0-9_]*\})+)\}"
_REFERENCE: Final = re.compile(rf"\$\$|{_NAME}|{_FILE}|(\$\{{)")
_MOST_SECRET_BYTES: Final = 64 << 10
_SECONDS: Final = 2.0
# Settings of the socket and of the routes, which need a restart of the process.
_FIXED: Final = ("host", "port", "endpoint", "metrics", "telemetry")


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> ServerConfig:
    """Return the configuration in a file.

    Args:
        path: of a `.toml` file; all others are read as YAML, which includes JSON.
        environment: variables for `${NAME}`; None is the environment of the process.

    Raises:
        InvalidInputError: the file cannot be read, or a setting is wrong.
    """
    path = Path(path)
    values = read_document(path)
    try:
        environment = os.environ if environment is None else environment
        return parse_config(resolve_references(values, environment, directory=path.parent))
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from None
    except RecursionError:  # an alias of YAML inside of what it stands for
        raise InvalidInputError(f"{path}: a setting contains itself") from None


def resolve_references(
    values: Any, environment: Mapping[str, str], where: str = "", directory: Path = Path()
) -> Any:
    """Return the values with the references in their strings replaced; `$$` is a dollar sign.

    `${NAME}` is a variable, and `${file:PATH}` the contents of a file without the end of its last
    line; its path may hold variables.

    Args:
        values: of the file.
        environment: the variables.
        where: the values stand in the file, for errors.
        directory: of relative paths.

    Raises:
        InvalidInputError: a variable is not set, or a file cannot be read; the message names it,
            but no value.
    """
    if isinstance(values, dict):
        return {
            key: resolve_references(value, environment, f"{where}.{key}".lstrip("."), directory)
            for key, value in values.items()
        }
    if isinstance(values, list):
        return [
            resolve_references(value, environment, f"{where}[{index}]", directory)
            for index, value in enumerate(values)
        ]
    if not isinstance(values, str):
        return values

    def variable(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise InvalidInputError(f"{where}: the environment has no variable {found[1]}")
        return environment[found[1]]

    def replace(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] is not None:
            return variable(found)
        if found[2] is not None:
            return _secret(directory / re.sub(_NAME, variable, found[2]), where)
        raise InvalidInputError(
            f"{where}: expected ${{NAME}} or ${{file:PATH}}, or $$ for a dollar sign"
        )

    return _REFERENCE.sub(replace, values)


def _secret(path: Path, where: str) -> str:
    """Return what a file holds, without the end of its last line."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_SECRET_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{where}: cannot read {path}: {type(error).__name__}") from None
    if len(data) > _MOST_SECRET_BYTES:
        raise InvalidInputError(f"{where}: {path} has more than {_MOST_SECRET_BYTES} bytes")
    _warn_of_mode(path)
    return text.removesuffix("\n").removesuffix("\r")


@dataclass(frozen=True, slots=True)
class _FileState:
    """What changes when a file is written."""

    changed_ns: int
    num_bytes: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> _FileState | None:
        """Return the state of a file; None if there is none."""
        try:
            found = path.stat()
        except OSError:
            return None
        # `cp -p` and others set the modification time back; the other time cannot be set.
        changed_ns = max(found.st_mtime_ns, found.st_ctime_ns)
        return cls(changed_ns, found.st_size, found.st_ino)

    def is_older_than(self, seconds: float) -> bool:
        """Whether nobody wrote to the file for so long."""
        return now_ms() - self.changed_ns // 1_000_000 >= seconds * 1000


class ReloadingServer:
    """The server of a configuration file, replaced when the file changes.

    A file that is being written may lack the limits that stand at its end. So it is read only when
    it was not written to for `seconds`, or is as it was at the look before.

    Args:
        path: of the configuration.
        seconds: how often the file is checked for changes.

    Attributes:
        config: of the file as it was loaded last.
        after_reload: called with the configuration after each reload.
    """

    def __init__(self, path: str | Path, seconds: float = _SECONDS) -> None:
        self.after_reload: Callable[[ServerConfig], None] = lambda _: None
        self._path = Path(path)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(32)
        self._loaded = self._seen = _FileState.of(self._path)
        self._next_check_s = time.monotonic() + seconds
        self.config: ServerConfig = load_config(self._path)
        self._server = make_server(self.config, self._key)
        _warn_of_modes(self._path, self.config)

    def current(self) -> Server:
        """Return the server of the file's current contents.

        Cost: one `stat` of the file every few seconds.
        """
        if time.monotonic() >= self._next_check_s:
            self.reload()
        return self._server

    def reload(self, *, now: bool = False) -> None:
        """Replace the server if the file has changed, and nobody writes to it any more.

        Args:
            now: replace it in any case, because somebody says that the file is whole.
        """
        with self._lock:
            self._next_check_s = time.monotonic() + self._seconds
            state, before = _FileState.of(self._path), self._seen
            self._seen = state
            if state is None or (state == self._loaded and not now):
                return
            if not now and state != before and not state.is_older_than(self._seconds):
                return
            self._load(state)

    def _load(self, state: _FileState) -> None:
        try:
            config = load_config(self._path)
            server = make_server(config, self._key, before=self._server)
        except DeltaError as error:
            self._loaded = state
            _LOG.error("the configuration is not reloaded: %s", error)
            return
        except Exception as error:  # noqa: BLE001 -- a request is waiting, which did nothing wrong
            self._loaded = state
            _LOG.error("the configuration is not reloaded: %s", type(error).__name__)
            return
        if _FileState.of(self._path) != state:
            return  # it was written to meanwhile; the next look decides
        self._loaded = state
        for name in _FIXED:
            if getattr(config, name) != getattr(self.config, name):
                _LOG.warning("%s has changed, which needs a restart of the server", name)
        self.config = config
        self._server = server
        _warn_of_modes(self._path, config)
        self.after_reload(config)
        _LOG.info("the configuration is reloaded")


def _warn_of_modes(path: Path, config: ServerConfig) -> None:
    """Log which files with secrets every user of the machine can read."""
    key = config.certificate_key_file
    for one in (path, *([] if key is None else [Path(key)])):
        _warn_of_mode(one)


def _warn_of_mode(path: Path) -> None:
    with suppress(OSError):
        if os.name == "posix" and path.stat().st_mode & stat.S_IROTH:
            _LOG.warning("%s can be read by every user of this machine: chmod o-r", path)


def settled_server(path: str | Path) -> ReloadingServer:
    """Return the server of a configuration file, when nobody writes to the file any more.

    Raises:
        InvalidInputError: the file is wrong.

    Cost: a wait of two seconds if somebody wrote to the file in the last two seconds.
    """
    state = _FileState.of(Path(path))
    while state is not None and not state.is_older_than(_SECONDS):
        time.sleep(_SECONDS)
        before, state = state, _FileState.of(Path(path))
        if state == before:
            break
    return ReloadingServer(path)


# The text of a configuration file as values: YAML (which includes JSON) or TOML.


def read_document(path: Path) -> Any:
    """Return the values in a `.toml` file, or in one of any other name, which is YAML.

    Raises:
        InvalidInputError: the file cannot be read or parsed, or has a key twice.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"cannot read the configuration {path}: {error}") from None
    parse = _parse_toml if path.suffix.lower() == ".toml" else _parse_yaml
    try:
        return parse(path, text)
    except RecursionError:
        raise InvalidInputError(f"{path}: nested too deeply") from None


def _parse_toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOML's own error is one
        raise InvalidInputError(f"{path}: {error}") from None


def _parse_yaml(path: Path, text: str) -> Any:
    try:
        import yaml  # noqa: PLC0415 -- not needed for TOML
    except ModuleNotFoundError:
        raise InvalidInputError(
            "reading YAML needs PyYAML: pip install 'deltalog[sharing]', or write TOML"
        ) from None
    try:
        return yaml.load(text, _strict_loader())  # noqa: S506 -- a subclass of the safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise InvalidInputError(
            f"{path}{place}: {getattr(error, 'problem', None) or 'no YAML'}"
        ) from None


@cache
def _strict_loader() -> Any:
    """Return YAML's safe loader, with errors in place of what it leaves to chance."""
    import yaml  # noqa: PLC0415 -- not needed for TOML

    class StrictLoader(yaml.SafeLoader):
        """Loads plain values; every key is there once."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if not isinstance(key, yaml.ScalarNode):
                    raise _fault(key, "a key is no text")
                # `<<` merges: keys of its own override the merged ones, which is its purpose.
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise _fault(key, f"the key {key.value!r} is there twice")
                seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            try:
                return super().construct_object(node, deep=deep)
            except (ValueError, OverflowError):
                # Such as the date 2027-13-45, or a number of five thousand digits.
                raise _fault(node, "a value has the form of a time or number and is none") from None
            except (TypeError, AttributeError, KeyError, IndexError):
                # Explicit tags on values of another form: `!!int ""`, `!!timestamp x`.
                raise _fault(node, "a value does not have the form of its type") from None

    def _fault(node: Any, problem: str) -> Exception:
        error: Exception = yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return error

    return StrictLoader
