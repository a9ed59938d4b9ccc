"""Paths: the table's location, and the paths in actions.

This module decodes, encodes and joins paths, converts them to the canonical form that identifies
files, and checks that a path does not lead out of the table. It does no I/O.

There are two forms of paths. The log contains *encoded* paths: URI references, in which `a b%` is
`a%20b%25`. Stores use *decoded* paths. Functions accept decoded paths unless they state otherwise.
Directory names of partitions are first escaped by Hive's rules. So the partition value `x:y` is the
directory `p=x%3Ay`, which the log contains as `p=x%253Ay`.

Protocol: Add File and Remove File (`path` is a URI as of RFC 2396)
"""

from __future__ import annotations

import codecs
import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import quote, unquote

import pyarrow as pa

from deltalog._util.clock import compact_moment
from deltalog._util.kernels import FALSE, compute, pc
from deltalog._util.small_arrays import small_scalar
from deltalog._util.store_kinds import Address, StoreKind, kind_named
from deltalog.errors import InvalidInputError, UnsafePathError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    StringColumn = pa.StringArray | pa.ChunkedArray[pa.StringScalar]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An entry of a listing.

    Args:
        path: the decoded path, which is relative if the file is below the table's root.
        size_bytes: the size of the file.
        modified_ms: the time of the last change, in milliseconds since 1970, UTC.
    """

    path: str
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class TableLocation(NamedTuple):
    """A table URI, split into the location and the version or timestamp."""

    uri: str
    version: int | None = None
    timestamp_ms: int | None = None
    branch: str | None = None


def decode_path(encoded: str) -> str:
    """Decode an action's `path`: `%XX` is decoded once, as UTF-8.

    A `+` is not decoded. A `%` that does not start an escape is preserved, and so are escapes that
    are not UTF-8.

    Protocol: Add File and Remove File
    """
    return unquote(encoded, errors=_KEEP_ESCAPES) if "%" in encoded else encoded


def encode_path(path: str) -> str:
    """Return the URI reference for a decoded path; `decode_path` is the inverse.

    Protocol: Add File and Remove File
    """
    scheme, rest = _split_scheme(path)
    # Escape colons in relative paths, because Spark would treat `a:` in `a:b` as a scheme.
    safe = _UNESCAPED if not scheme else _UNESCAPED + ":"
    return scheme + quote(rest, safe=safe, errors="surrogateescape")


def is_absolute(path: str) -> bool:
    """Return whether a decoded path is absolute: `/x`, `file:/x`, `s3://bucket/x`, `C:/x`."""
    return path.startswith("/") or (":" in path and _SCHEME.match(path) is not None)


def absolute_numbers(paths: Sequence[str]) -> list[int]:
    """Return the indices of the absolute paths in a list of decoded paths."""
    # Nearly all paths are relative and contain no colon. For them, avoid the slow function call.
    odd = [number for number, path in enumerate(paths) if ":" in path or path[:1] == "/"]
    return [number for number in odd if is_absolute(paths[number])]


def join(root: str, path: str) -> str:
    """Return the location of a decoded path that is absolute or relative to `root`."""
    if is_absolute(path):
        return path
    return f"{root.rstrip('/')}/{path}"


def canonical_path(path: str, root: str) -> str:
    """Return the unique spelling of a file's path: relative if it is below `root`, else a URL.

    `/x`, `file:/x` and `file:///x` have the same canonical path; so do `s3a://` and `s3://`, and
    `wasbs://`, `abfss://` and `az://`. Double slashes and `.` segments are removed. If only one of
    two Azure locations contains an account, the accounts count as equal.

    Args:
        path: the decoded path.
        root: the table's decoded location.
    """
    if not is_absolute(path):
        return _tidy(path)
    prefix, inner = _canonical_location(path)
    root_prefix, root_inner = _canonical_location(root)
    if _is_same_container(prefix, root_prefix):
        if root_inner == "":
            return inner
        if inner.startswith(root_inner + "/"):
            return inner[len(root_inner) + 1 :]
    return f"{prefix}/{inner}"


def container_of(location: str) -> str:
    """Return the store of a location: `file://`, `s3://bucket`, `az://container@account`."""
    return _canonical_location(location)[0]


def is_foreign(path: str, container: str) -> bool:
    """Return whether a decoded path is not in the table's store (scheme, bucket and account).

    Args:
        path: the decoded path.
        container: the result of `container_of` for the table's root.
    """
    return is_absolute(path) and not _is_same_container(container_of(path), container)


def are_foreign(encoded: StringColumn, root: str) -> pa.BooleanArray:
    """Return `is_foreign` for every *encoded* path of a column.

    Cost: one pass; Python handles only absolute paths.
    """
    paths: Any = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    absolute: Any = _may_be_absolute(paths)
    if not pc.any(absolute).as_py():
        return absolute  # type: ignore[no-any-return]  # an array of booleans
    container = container_of(root)
    texts: list[str] = paths.filter(absolute).to_pylist()
    found = pa.array([is_foreign(decode_path(text), container) for text in texts], pa.bool_())
    return compute.replace_with_mask(absolute, absolute, found)  # type: ignore[no-any-return]


def canonical_paths(encoded: StringColumn, root: str) -> StringColumn:
    """Return `canonical_path` for every *encoded* path of a column; NULL for NULL.

    Cost: one pass over the bytes if all paths are canonical (no escape, no colon, no unusual
    slash). Otherwise Python handles the distinct directories, and the names that are not canonical.
    """
    if isinstance(encoded, pa.ChunkedArray):
        chunks = [_canonical_chunk(cast("pa.StringArray", c), root) for c in encoded.chunks]
        return pa.chunked_array(chunks, type=pa.string())
    return _canonical_chunk(encoded, root)


def file_locations(encoded: StringColumn, root: str) -> StringColumn:
    """Return the decoded locations of *encoded* paths; see `join`.

    Cost: one pass over the bytes; Python handles only paths that are absolute or have an escape.
    """
    if isinstance(encoded, pa.ChunkedArray):
        chunks = [_located_chunk(cast("pa.StringArray", c), root) for c in encoded.chunks]
        return pa.chunked_array(chunks, type=pa.string())
    return _located_chunk(encoded, root)


def check_confined(path: str, *, allow_absolute: bool = True) -> None:
    r"""Raise `UnsafePathError` for a decoded path that could leave its directory.

    This refuses a `..` segment (also after a backslash, or escaped twice as `%2e%2e`), NUL, a path
    that starts with a backslash, and schemes that cannot contain tables (`http`, `data`, …).

    Args:
        path: the decoded path.
        allow_absolute: whether to accept absolute paths. Shallow clones need them to refer to files
            of other tables.
    """
    reason = None
    if path == "":
        reason = "it is empty"
    elif "\0" in path:
        reason = "it contains a NUL"
    elif _CLIMBING.search(path):
        reason = "it climbs with '..'"
    elif path.startswith(("\\", "//")) or _DRIVE_BACKSLASH.match(path):
        reason = "it names another host or drive"
    elif is_absolute(path):
        reason = _why_absolute_is_refused(path, allowed=allow_absolute)
    if reason is not None:
        raise UnsafePathError(f"path {path!r} is refused: {reason}")


def check_all_confined(encoded: StringColumn, *, allow_absolute: bool = True) -> None:
    """Apply `check_confined` to every *encoded* path of a column.

    Cost: one pass; Python handles only paths with an escape, a colon, a backslash, a NUL, a leading
    slash or two dots.
    """
    suspects = encoded.filter(pc.match_substring_regex(encoded, r"[%:\\\x00]|\.\.|^/|^$"))
    for path in cast("list[str]", suspects.to_pylist()):
        check_confined(decode_path(path), allow_absolute=allow_absolute)


def parse_table_uri(text: str) -> TableLocation:
    """Split a URI such as `table@v3`, `table@2024-01-31`, or `table@branch`.

    A time is in ISO 8601 or of the form `yyyyMMddHHmmssSSS`. UTC is the default zone.

    The caller must first check that there is no directory with this name.

    Raises:
        InvalidInputError: the digits are not a date and time.
    """
    if found := _AT_VERSION.match(text):
        return TableLocation(found["uri"], version=int(found["version"]))
    if found := _AT_TIMESTAMP.match(text):
        return TableLocation(found["uri"], timestamp_ms=_as_ms(found["moment"], text))
    found = _AT_BRANCH.match(text)
    # In `scheme://name@host`, the sign belongs to the host.
    if found and ("://" not in found["uri"] or "/" in found["uri"].partition("://")[2]):
        return TableLocation(found["uri"], branch=found["branch"])
    return TableLocation(text)


def _as_ms(moment: str, text: str) -> int:
    """Return the time after `@` as milliseconds since 1970."""
    is_compact = moment.isdecimal()
    try:
        found = compact_moment(moment) if is_compact else datetime.fromisoformat(moment)
    except ValueError:
        form = "yyyyMMddHHmmssSSS" if is_compact else "2024-01-31 or 2024-01-31T12:00:00Z"
        raise InvalidInputError(
            f"table URI {text!r}: expected a moment as {form} after '@', found {moment!r}"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - _EPOCH) // timedelta(milliseconds=1)


def decode_location(text: str) -> str:
    """Return the location in a user's string; escapes in a `file:` URL are decoded once.

    Plain paths and URLs of other stores are not decoded, because an S3 key may contain `%20`.
    """
    return decode_path(text) if _FILE_URL.match(text) else text


def store_kind(location: str) -> StoreKind:
    """Return the store kind for the scheme of a location."""
    return kind_named(split_location(location)[0])


def split_location(location: str) -> tuple[str, str, str]:
    """Split a location into scheme (lower case; `file` for a plain path), authority and path.

    `s3://bucket/a/b` is `("s3", "bucket", "a/b")`; `file:/x`, `file:///x` and `/x` are
    `("file", "", "/x")`.
    """
    scheme, rest = _split_scheme(location)
    name = scheme.rstrip(":/").lower()
    kind = kind_named(name)
    if len(name) < 2:  # no scheme, or a drive letter
        return kind.name, "", location
    if kind.is_native:
        return name, "", "/" + rest.removeprefix("localhost/").lstrip("/")
    if kind.address is Address.PATH:
        return name, "", "/" + rest.strip("/")
    if kind.address is not Address.HOST:  # for HDFS, the host may be empty: `hdfs:///x`
        rest = rest.lstrip("/")
    authority, _, path = rest.partition("/")
    return name, authority, path


LOG_DIRECTORY: Final = "_delta_log"
"""The directory of the log, below the root of every table."""
KEYS_DIRECTORY: Final = f"{LOG_DIRECTORY}/_keys"
"""The directory of the key index, which main and branches share."""
_FILE_URL: Final = re.compile("file:/", re.IGNORECASE)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+")
_DRIVE_BACKSLASH: Final = re.compile(r"[A-Za-z]:\\")
_CLIMBING: Final = re.compile(r"(?:^|[/\\])(?:\.|%2[eE]){2}(?:[/\\]|%2[fF]|%5[cC]|$)")
_AT_VERSION: Final = re.compile(r"(?P<uri>.+)@v(?P<version>\d{1,19})\Z", re.DOTALL)
_AT_BRANCH: Final = re.compile(r"(?P<uri>.+)@(?P<branch>[A-Za-z_][A-Za-z0-9_-]{0,99})\Z", re.DOTALL)
_AT_TIMESTAMP: Final = re.compile(
    r"(?P<uri>.+)@(?P<moment>\d{17}|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?)\Z", re.DOTALL
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The characters that RFC 2396 allows in a path, except letters, digits and the colon.
_UNESCAPED: Final = "/-_.!~*'()@&=+$,;"
_KEEP_ESCAPES: Final = "deltalog.keep_escapes"
_BLOCK_BYTES: Final = 128 * 1024
# If there are more paths, `_is_canonical` is faster than a kernel that matches `_ODD`.
_FEW_PATHS: Final = 1_000
_ODD: Final = r"[%:]|^/|//|(?:^|/)\.(?:/|$)|/$"


def _escape_again(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(f"%{byte:02X}" for byte in wrong), error.end


codecs.register_error(_KEEP_ESCAPES, _escape_again)


def _split_scheme(location: str) -> tuple[str, str]:
    """Split a location such as `s3://bucket/x` into `s3://` (empty if missing) and `bucket/x`."""
    found = _SCHEME.match(location)
    if found is None:
        return "", location
    if found.end() - found[0].index(":") > 3:  # in file:///x, the third slash is part of the path
        end = found[0].index(":") + 3
        return location[:end], location[end:]
    if found[0].endswith(":/") and not found[0].endswith("://"):  # as in file:/x
        return location[: found.end() - 1], location[found.end() - 1 :]
    return found[0], location[found.end() :]


def _tidy(path: str) -> str:
    if "//" not in path and "./" not in path and not path.endswith(("/", "/.")) and path != ".":
        return path
    return "/".join(part for part in path.split("/") if part not in {"", "."})


def _canonical_location(location: str) -> tuple[str, str]:
    """Return the prefix, such as `s3://bucket`, and the normalised path without a leading slash."""
    scheme, authority, path = split_location(location)
    kind = kind_named(scheme)
    if kind.address is Address.ACCOUNT and "@" in authority:
        container, _, host = authority.partition("@")
        authority = f"{container}@{host.partition('.')[0].lower()}"
    return f"{kind.name}://{authority}", _tidy(path.strip("/"))


def _is_same_container(one: str, other: str) -> bool:
    if one == other:
        return True
    container, _, account = one.partition("@")
    other_container, _, other_account = other.partition("@")
    return (
        container == other_container
        and not (account and other_account)
        and kind_named(one.partition(":")[0]).address is Address.ACCOUNT
    )


def _why_absolute_is_refused(path: str, *, allowed: bool) -> str | None:
    if not allowed:
        return "it is absolute"
    kind = store_kind(path)
    if not kind.may_be_named:
        return f"a table's files are not read over {kind.name!r}"
    return None


def _located_chunk(encoded: pa.StringArray, root: str) -> pa.StringArray:
    start, nothing = (small_scalar(part, pa.string()) for part in (f"{root.rstrip('/')}/", ""))
    joined = compute.binary_join_element_wise(start, encoded, nothing)
    odd: Any = _may_be_absolute(encoded)
    if pc.any(odd).as_py():
        hard = cast("list[str]", encoded.filter(odd).to_pylist())
        decoded = pa.array([join(root, decode_path(path)) for path in hard], pa.string())
        joined = pc.replace_with_mask(joined, odd, decoded)
    return cast("pa.StringArray", joined)


def _has_in_bytes(texts: pa.StringArray, test: Callable[[bytes], object]) -> bool:
    """Return whether a test is true for a block of bytes that contains many strings.

    Cost: one pass over the bytes. A regular expression for each string would take up to 30 times as
    long.
    """
    _, offsets, data = texts.buffers()
    if not len(texts) or offsets is None or data is None:
        return False
    start, end = (
        struct.unpack_from("<i", offsets, 4 * at)[0]
        for at in (texts.offset, texts.offset + len(texts))
    )
    view = memoryview(data)
    # Copy blocks that fit into the processor's cache to `bytes`, because the search in `bytes` is
    # as fast as `memchr`. Blocks overlap by one byte, so that each pair of adjacent bytes is in a
    # block.
    return any(
        test(view[at : min(at + _BLOCK_BYTES + 1, end)].tobytes())
        for at in range(start, end, _BLOCK_BYTES)
    )


def _mention_colon_or_escape(texts: pa.StringArray) -> bool:
    return _has_in_bytes(texts, lambda block: b":" in block or b"%" in block)


def _may_be_absolute(encoded: pa.StringArray) -> pa.BooleanArray:
    if not _mention_colon_or_escape(encoded):
        return compute.starts_with(encoded, "/")
    return compute.match_substring_regex(encoded, r"[%:]|^/")


def _is_canonical(encoded: pa.StringArray) -> bool:
    """Return whether all paths are canonical, by a fast check; False if it cannot decide this."""
    starts, ends = compute.starts_with, compute.ends_with
    return not (
        _mention_colon_or_escape(encoded)
        or _has_in_bytes(encoded, re.compile(b"/[/.]").search)
        or compute.any(starts(encoded, "/")).as_py()
        or compute.any(starts(encoded, ".")).as_py()
        or compute.any(ends(encoded, "/")).as_py()
    )


def _canonical_chunk(encoded: pa.StringArray, root: str) -> pa.StringArray:
    if len(encoded) > _FEW_PATHS and _is_canonical(encoded):
        return encoded
    odd = pc.match_substring_regex(encoded, _ODD)
    if not pc.any(odd).as_py():
        return encoded
    mask: Any = pc.fill_null(odd, FALSE)
    canonical = _canonical_by_directory(encoded.filter(mask), root)
    result: Any = pc.replace_with_mask(encoded, mask, canonical)
    return cast("pa.StringArray", result)


def _canonical_by_directory(encoded: pa.StringArray, root: str) -> pa.StringArray:
    """Return canonical paths. If there are few directories, convert each directory only once."""
    directories = pc.replace_substring_regex(encoded, "[^/]*$", "").dictionary_encode()
    if len(directories.dictionary) > len(encoded) // 2:
        return _canonical_one_by_one(encoded, root)
    starts = pa.array(
        [_canonical_start(text, root) for text in directories.dictionary.to_pylist()], pa.string()
    )
    # `start` is NULL if the canonical path of a file may not begin with that of its directory.
    start = starts.take(directories.indices)
    name = pc.replace_substring_regex(encoded, "(?s)^.*/", "")
    hard: Any = pc.or_(pc.is_null(start), pc.match_substring_regex(name, r"[%:]|^\.?$"))
    joined = compute.binary_join_element_wise(start, name, pa.scalar(""))
    if not pc.any(hard).as_py():
        return cast("pa.StringArray", joined)
    rest = _canonical_one_by_one(encoded.filter(hard), root)
    replaced: Any = pc.replace_with_mask(joined, hard, rest)
    return cast("pa.StringArray", replaced)


def _canonical_start(encoded_directory: str | None, root: str) -> str | None:
    """Return the prefix that all canonical paths of plain names in a directory have, or None."""
    probe = canonical_path(decode_path(f"{encoded_directory}x"), root)
    return probe[:-1] if encoded_directory and probe.endswith("x") else None


def _canonical_one_by_one(encoded: pa.StringArray, root: str) -> pa.StringArray:
    paths = cast("list[str]", encoded.to_pylist())
    return pa.array([canonical_path(decode_path(path), root) for path in paths], pa.string())
