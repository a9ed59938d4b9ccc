"""The configuration file: secrets from the environment and from files, and reloading on changes.

This module replaces `${NAME}` and `${file:PATH}`, and reloads the file. A changed file is loaded
when no program is writing to it any more. If it has an error, the error is logged and the server
continues with its previous configuration.
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
# `_REFERENCE` matches `$$`, `${NAME}`, `${file:PATH}` with `${NAME}` in its path, and any other
# `${`, which is an error.
_NAME: Final = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"
_FILE: Final = r"\$\{file:((?:[^{}$]|\$\{[A-Za-z_][A-Za-z0-9_]*\})+)\}"
_REFERENCE: Final = re.compile(rf"\$\$|{_NAME}|{_FILE}|(\$\{{)")
_MOST_SECRET_BYTES: Final = 64 << 10
_SECONDS: Final = 2.0
# The settings whose changes take effect only after a restart.
_FIXED: Final = ("host", "port", "endpoint", "metrics", "telemetry")


def load_config(path: str | Path, environment: Mapping[str, str] | None = None) -> ServerConfig:
    """Return the configuration in a file.

    Args:
        path: path of the file; `.toml` files are TOML, all other files YAML, which includes JSON.
        environment: variables for `${NAME}`; None means the environment of the process.

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
    except RecursionError:  # a YAML alias within the value that it refers to
        raise InvalidInputError(f"{path}: a setting contains itself") from None


def resolve_references(
    values: Any, environment: Mapping[str, str], where: str = "", directory: Path = Path()
) -> Any:
    """Return the values, with the references in their strings replaced.

    `${NAME}` is an environment variable. `${file:PATH}` is the contents of a file without the last
    line break; the path may contain variables. `$$` is a dollar sign.

    Args:
        values: values of the configuration file.
        environment: the variables.
        where: position of the values in the file, for errors.
        directory: base of relative paths.

    Raises:
        InvalidInputError: a variable is not set, or a file cannot be read; the message contains the
            name, but no value.
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
    """Return the contents of a file without the last line break."""
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
    """The state of a file, to detect writes."""

    changed_ns: int
    num_bytes: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> _FileState | None:
        """Return the state of a file; None if the file does not exist."""
        try:
            found = path.stat()
        except OSError:
            return None
        # Use the later of both times. Programs such as `cp -p` set the modification time to an
        # earlier time, but they cannot set the change time.
        changed_ns = max(found.st_mtime_ns, found.st_ctime_ns)
        return cls(changed_ns, found.st_size, found.st_ino)

    def is_older_than(self, seconds: float) -> bool:
        """Return whether the file has not been written to for this number of seconds."""
        return now_ms() - self.changed_ns // 1_000_000 >= seconds * 1000


class ReloadingServer:
    """Makes a server from a configuration file, and a new server when the file changes.

    A file that is being written may be incomplete. So the server loads it only if it was not
    written to for `seconds`, or is unchanged since the previous check.

    Args:
        path: path of the configuration.
        seconds: how often the file is checked for changes.

    Attributes:
        config: the last loaded configuration.
        after_reload: a function that is called with the new configuration after each reload.
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
        """Replace the server if the file has changed and no program is writing to it any more.

        Args:
            now: whether to reload in any case, because the caller knows that the file is complete.
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
        except Exception as error:  # noqa: BLE001 -- a waiting request must not fail
            self._loaded = state
            _LOG.error("the configuration is not reloaded: %s", type(error).__name__)
            return
        if _FileState.of(self._path) != state:
            return  # the file has changed meanwhile; the next check tries again
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
    """Log a warning for each file with secrets that every user of the machine can read."""
    key = config.certificate_key_file
    for one in (path, *([] if key is None else [Path(key)])):
        _warn_of_mode(one)


def _warn_of_mode(path: Path) -> None:
    with suppress(OSError):
        if os.name == "posix" and path.stat().st_mode & stat.S_IROTH:
            _LOG.warning("every user of this machine can read %s: run chmod o-r on it", path)


def settled_server(path: str | Path) -> ReloadingServer:
    """Wait until no program is writing to a configuration file, and return its server.

    Raises:
        InvalidInputError: the file is wrong.

    Cost: waits up to two seconds if the file was written to in the last two seconds.
    """
    state = _FileState.of(Path(path))
    while state is not None and not state.is_older_than(_SECONDS):
        time.sleep(_SECONDS)
        before, state = state, _FileState.of(Path(path))
        if state == before:
            break
    return ReloadingServer(path)


# --- Parsing a configuration file: YAML (which includes JSON) or TOML


_REASONS: Final = {FileNotFoundError: "it does not exist", IsADirectoryError: "it is a directory"}


def read_document(path: Path) -> Any:
    """Return the values in a `.toml` file, or in a YAML file of any other name.

    Raises:
        InvalidInputError: the file cannot be read or parsed, or contains a key twice.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not a text in UTF-8"
        if isinstance(error, OSError):
            reason = _REASONS.get(type(error)) or error.strerror or str(error)
        raise InvalidInputError(
            f"cannot read the configuration {path}: {reason}; expected a YAML or TOML file"
        ) from None
    parse = _parse_toml if path.suffix.lower() == ".toml" else _parse_yaml
    try:
        return parse(path, text)
    except RecursionError:
        raise InvalidInputError(f"{path}: nested too deeply") from None


def _parse_toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # `tomllib.TOMLDecodeError` is a ValueError
        text = str(error)
        raise InvalidInputError(
            f"cannot read the configuration {path}: it is not valid TOML: {text[:1].lower()}"
            f"{text[1:]}; correct it there, or write YAML to a file with another suffix"
        ) from None


def _parse_yaml(path: Path, text: str) -> Any:
    try:
        import yaml  # noqa: PLC0415 -- only YAML needs it
    except ModuleNotFoundError:
        raise InvalidInputError(
            "reading YAML needs PyYAML: pip install 'deltalog[sharing]', or write TOML"
        ) from None
    try:
        return yaml.load(text, _strict_loader())  # noqa: S506 -- a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise InvalidInputError(_fault_of_yaml(path, text, error)) from None


def _fault_of_yaml(path: Path, text: str, error: Any) -> str:
    """Return where a file is not YAML, or has what a configuration may not have."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is not None:
        line, column = mark.line + 1, mark.column + 1
    else:  # a character that YAML does not allow
        before = text[: getattr(error, "position", 0)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        problem = "found a control character"
    place = f"{path}, line {line}, column {column}"
    reason = str(problem)
    for pattern, words in _YAML_WORDS.items():
        reason = re.sub(pattern, words, reason)
    if type(error).__name__ in {"ConstructorError", "ComposerError"}:  # the file is valid YAML
        return f"{place}: {reason}"
    context = getattr(error, "context_mark", None)
    if context is not None and context.line + 1 != line:
        reason += f", in what begins in line {context.line + 1}"
    return (
        f"cannot read the configuration {place}: it is not valid YAML: {reason}; check brackets, "
        "quotes and indentation there and in the lines before"
    )


_YAML_WORDS: Final = {
    r"the node content": "a value",
    r", but (?:found|got) ": ", found ",
    r"found character '\\t' that cannot start any token": "found a tab instead of spaces",
    r"mapping values are not allowed here": "found ':' in a value",
    r"could not find expected ':'": "expected ':' after the key",
    r"'<stream end>'|unexpected end of stream": "the end of the file",
    r"'?<block end>'?": "the end of the block",
    r"'<block mapping start>'": "a key that is indented further",
    r"'<block sequence start>'": "a list that is indented further",
    r"'<scalar>'": "a value",
    r"found '\?'": "found a key",
    r"found undefined alias '?(\w+)'?": r"the alias *\1 is not defined; put the value in quotes",
    r"could not determine a constructor for the tag '(.*)'": r"the type \1 is not supported",
}
"""Pattern in a message of PyYAML → what this module says."""


@cache
def _strict_loader() -> Any:
    """Return a subclass of YAML's safe loader that rejects ambiguous input."""
    import yaml  # noqa: PLC0415 -- only YAML needs it

    class StrictLoader(yaml.SafeLoader):
        """Creates lists, mappings and plain values only; a repeated key is an error."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            seen = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if not isinstance(key, yaml.ScalarNode):
                    raise _fault(key, "a key is not a string")
                # `<<` merges the keys of another mapping, which the mapping's own keys may
                # override.
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise _fault(key, f"the key {key.value!r} occurs twice")
                seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            try:
                return super().construct_object(node, deep=deep)
            except (ValueError, OverflowError):
                # For example the date 2027-13-45, or a number with five thousand digits.
                raise _fault(node, "a value looks like a time or number, but is invalid") from None
            except (TypeError, AttributeError, KeyError, IndexError):
                # For example `!!int ""` or `!!timestamp x`, whose value does not have the form that
                # its tag requires.
                raise _fault(node, "a value does not have the form of its type") from None

    def _fault(node: Any, problem: str) -> Exception:
        error: Exception = yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return error

    return StrictLoader
