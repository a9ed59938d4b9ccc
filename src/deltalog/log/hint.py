"""`_last_checkpoint`: the version at which a reader may start to list the log.

Owns the file's form and its checksum. It is only a hint: if anything is wrong with it, the result
is None, and the log is listed from its start (ledger LAST-06).

Protocol: Last Checkpoint File, JSON Checksum
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from deltalog._json import Lexeme, dumps, parse_lexemes
from deltalog.errors import DeltaError, ObjectNotFoundError
from deltalog.log.names import LAST_CHECKPOINT_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)

_CHECKSUM_KEY: Final = "checksum"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpointHint:
    """The newest checkpoint according to `_last_checkpoint`, which may be out of date.

    Args:
        version: of the checkpoint.
        size_actions: number of its actions.
        parts: number of its files, for a multi-part checkpoint.
        size_bytes: of all its files.
        num_add_files: number of its add actions.
    """

    version: int
    size_actions: int | None = None
    parts: int | None = None
    size_bytes: int | None = None
    num_add_files: int | None = None


def read_hint(store: Store) -> LastCheckpointHint | None:
    """The hint, or None if there is none or it is invalid.

    Cost: one request.
    """
    try:
        data = store.read(LAST_CHECKPOINT_PATH)
    except ObjectNotFoundError:
        return None
    except DeltaError as error:
        logger.info("ignoring _last_checkpoint of %s: %s", store.root, error)
        return None
    hint = parse_hint(data)
    if hint is None:
        logger.info("ignoring _last_checkpoint of %s: it is damaged", store.root)
    return hint


def parse_hint(data: bytes) -> LastCheckpointHint | None:
    """The hint in `data`; None if truncated, with duplicate keys or a wrong checksum."""
    try:
        tree = parse_lexemes(data.decode("utf-8"))
    except (DeltaError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(tree, dict):
        return None
    version = _integer(tree.get("version"))
    if version is None or version < 0:
        return None
    stated = tree.get(_CHECKSUM_KEY)
    if isinstance(stated, str) and stated.lower() not in _digests(tree):
        return None
    return LastCheckpointHint(
        version=version,
        size_actions=_integer(tree.get("size")),
        parts=_integer(tree.get("parts")),
        size_bytes=_integer(tree.get("sizeInBytes")),
        num_add_files=_integer(tree.get("numOfAddFiles")),
    )


def encode_hint(hint: LastCheckpointHint, *, v2_file: FileInfo | None = None) -> bytes:
    """The content of `_last_checkpoint`, its checksum included.

    Args:
        hint: its content; members that are None are omitted.
        v2_file: the top-level file of a V2 checkpoint.

    Protocol: Last Checkpoint File
    """
    members: dict[str, Any] = {
        "version": hint.version,
        "size": hint.size_actions,
        "parts": hint.parts,
        "sizeInBytes": hint.size_bytes,
        "numOfAddFiles": hint.num_add_files,
    }
    if v2_file is not None:
        members["v2Checkpoint"] = {
            "path": v2_file.name,
            "sizeInBytes": v2_file.size_bytes,
            "modificationTime": v2_file.modified_ms,
        }
    present = {name: value for name, value in members.items() if value is not None}
    return dumps({**present, _CHECKSUM_KEY: checksum_of(dumps(present).decode())})


def checksum_of(text: str) -> str:
    """The checksum to write for the JSON object `text`, with its pairs sorted as Spark does.

    Raises:
        MalformedLogError: `text` is not JSON, or has a key twice.

    Protocol: JSON Checksum
    """
    return _md5(sorted(_pairs(parse_lexemes(text))))


def canonical_form(text: str) -> str:
    """The text whose MD5 is the checksum: `path=value` pairs, sorted as the protocol says."""
    return ",".join(_by_path(_pairs(parse_lexemes(text))))


def _digests(tree: Mapping[str, Any]) -> set[str]:
    # The protocol sorts by path, Spark sorts the whole "path=value" texts: the order differs where
    # an array has more than ten members ("f"+1= against "f"+10=). Both exist (ledger D-03).
    pairs = list(_pairs(tree))
    return {_md5(sorted(pairs)), _md5(_by_path(pairs))}


def _md5(pairs: list[str]) -> str:
    text = ",".join(pairs).encode("utf-8", "surrogatepass")
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def _by_path(pairs: Iterable[str]) -> list[str]:
    return sorted(pairs, key=lambda pair: pair.partition("=")[0].encode())


def _pairs(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        tree = {key: value for key, value in tree.items() if key != _CHECKSUM_KEY}
    yield from _walk(tree, "")


def _walk(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, dict):
        children = [(_quoted(key), value) for key, value in node.items()]
    elif isinstance(node, list):
        children = [(str(index), value) for index, value in enumerate(node)]
    else:
        yield f"{path}={_literal(node)}"
        return
    for name, value in children:
        yield from _walk(value, f"{path}+{name}" if path else name)


def _quoted(text: str) -> str:
    # `=` and `+` are percent-encoded in names, so the first "=" of a pair ends its path.
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
    return f'"{encoded}"'


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if type(value) is str else str(value)


def _integer(value: Any) -> int | None:
    """The integer that a number is written as; None for anything else."""
    if not isinstance(value, Lexeme):
        return None
    try:
        return int(value)
    except ValueError:
        return None
