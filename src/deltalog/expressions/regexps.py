r"""Functions of regular expressions, and Java's syntax of them in that of RE2, which Arrow uses.

Owns where the two syntaxes differ: `.` excludes more line ends in Java, `$` also matches before a
final line end, `\s` includes the vertical tab. What RE2 would match differently (classes in
classes) is refused; RE2 itself refuses look-around and back-references.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.budget import is_bounded, spend
from deltalog.expressions.rows import as_array, by_row, is_constant
from deltalog.kernels import Datum, compute, pc

if TYPE_CHECKING:
    from collections.abc import Callable

# In a replacement, Java takes $1 for a group, and a character after a backslash literally.
_REPLACEMENT: Final = re.compile(r"\\(.)|\$(\d)|(.)", re.DOTALL)
_MOST_GROUPS: Final = 8
_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_ANY: Final = f"[^{_LINE_ENDS}]"
_END: Final = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_BLANKS: Final = r"\t\n\x0B\f\r "
_HORIZONTAL: Final = r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}"
_VERTICAL: Final = rf"\x0B\f{_LINE_ENDS}"
# These flags change the meaning of . and $, and RE2 has the same flags.
_LINE_FLAGS: Final = re.compile(r"\(\?[a-zA-Z]*[smd]")
_PART: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\u[0-9a-fA-F]{4}|\\.|\[\^?\]?|&&|.", re.DOTALL)
_ESCAPES: Final = {
    r"\s": f"[{_BLANKS}]",
    r"\S": f"[^{_BLANKS}]",
    r"\h": f"[{_HORIZONTAL}]",
    r"\v": f"[{_VERTICAL}]",
    r"\Z": _END,
}
_ESCAPES_IN_CLASS: Final = {r"\s": _BLANKS, r"\h": _HORIZONTAL, r"\v": _VERTICAL}


def rlike(text: Datum, pattern: Datum) -> Datum:
    """Whether a regular expression matches anywhere. Cost: by row if it is not constant."""
    if is_constant(pattern):
        return _matches(text, pattern.as_py())
    return by_row(
        lambda value, shape: _matches(pa.scalar(value), shape).as_py(), pa.bool_(), text, pattern
    )


def _matches(text: Datum, pattern: str) -> Datum:
    try:
        return compute.match_substring_regex(text, to_re2(pattern))
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"cannot use the regular expression {pattern!r}: look-around and back-references are "
            f"not supported ({error})"
        ) from error


def regexp_extract(text: Datum, pattern: Datum, group: Datum | None = None) -> Datum:
    """A group of the first match, `""` if there is none. Pattern and group are constants.

    Raises:
        InvalidInputError: the pattern has no such group.
    """
    if not is_constant(pattern) or not (group is None or is_constant(group)):
        return _no_text(text)
    shape, place = pattern.as_py(), 1 if group is None else group.as_py()
    is_found = _matches(text, shape)
    if not 0 <= place <= _MOST_GROUPS:
        raise InvalidInputError(f"cannot extract by {shape!r}: {place} is none of its groups")
    # Arrow can only replace. The shortest possible prefix makes the captured match the first one.
    whole = rf"\A(?s:.*?)({to_re2(shape)})(?s:.*)\z"
    try:
        found = compute.replace_substring_regex(text, whole, rf"\{place + 1}")
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"cannot extract by {shape!r}: {error}") from error
    return compute.if_else(is_found, found, "")


def regexp_replace(text: Datum, pattern: Datum, replacement: Datum) -> Datum:
    """The string with every match replaced; `$1` is a group. Pattern and replacement are constants.

    Raises:
        InvalidInputError: the pattern has no such group, or the replacement is malformed.
    """
    if not is_constant(pattern, replacement):
        return _no_text(text)
    shape, given = pattern.as_py(), replacement.as_py()
    _matches(text, shape)
    if is_bounded():
        found = pc.count_substring_regex(as_array(text, 1), to_re2(shape))
        many = compute.sum(compute.cast(found, pa.int64())).as_py() or 0
        # A group may be the whole text.
        of_groups = given.count("$") * as_array(text, 1).nbytes
        spend(many * len(given) + of_groups)
    try:
        return compute.replace_substring_regex(text, to_re2(shape), _re2_replacement(given))
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"cannot replace by {shape!r} and {given!r}: {error}") from error


def _no_text(text: Datum) -> Datum:
    null = pa.scalar(None, pa.string())
    return compute.if_else(compute.is_valid(text), null, null)


def _re2_replacement(given: str) -> str:
    parts: list[str] = []
    for escaped, group, plain in _REPLACEMENT.findall(given):
        if plain in {"$", "\\"}:
            raise InvalidInputError(f"cannot use the replacement {given!r}: {plain} stands alone")
        text = escaped or plain
        parts.append(rf"\{group}" if group else text.replace("\\", r"\\"))
    return "".join(parts)


def split(text: Datum, pattern: Datum, limit: Datum | None = None) -> Datum:
    """The pieces between the matches of a regular expression."""
    constants = (pattern,) if limit is None else (pattern, limit)
    if not is_constant(*constants):
        raise InvalidInputError("split needs a constant pattern and limit")
    shape = pattern.as_py()
    most = -1 if limit is None else limit.as_py()
    result = pa.list_(pa.field("element", pa.string(), nullable=False))
    if shape == "":
        return by_row(lambda value: _characters(value, most), result, text)
    # With a limit, the last piece is the unsplit rest: so there is one split less than pieces.
    splits = most - 1 if most > 0 else None
    if isinstance(text, pa.Scalar):
        return split(pa.array([text], pa.string()), pattern, limit)[0]
    if splits == 0:
        return by_row(lambda value: [value], result, text)
    try:
        found = pc.split_pattern_regex(text, to_re2(shape), max_splits=splits)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"cannot split by {shape!r}: {error}") from error
    return compute.cast(found, result)


def _characters(value: str, most: int) -> list[str]:
    if most <= 0 or most >= len(value):
        return list(value) or [""]
    return [*value[: most - 1], value[most - 1 :]]


def to_re2(pattern: str) -> str:
    """The RE2 pattern that matches what the Java pattern matches.

    Raises:
        InvalidInputError: a character class contains another class, or an intersection.
    """
    has_flags = _LINE_FLAGS.search(pattern) is not None
    parts: list[str] = []
    in_class = False
    for match in _PART.finditer(pattern):
        part = match[0]
        if part.startswith(r"\u") and len(part) > 2:
            parts.append(rf"\x{{{part[2:]}}}")
        elif part.startswith("\\"):
            parts.append((_ESCAPES_IN_CLASS if in_class else _ESCAPES).get(part, part))
        elif part.startswith("[") or part == "&&":
            if in_class:
                raise InvalidInputError(
                    f"cannot use the regular expression {pattern!r}: a character class within a "
                    "class is not supported"
                )
            in_class = part != "&&"
            parts.append(part)
        else:
            in_class = in_class and part != "]"
            parts.append(_plain(part, is_open=not in_class and not has_flags))
    return "".join(parts)


def _plain(part: str, *, is_open: bool) -> str:
    if not is_open:
        return part
    return {".": _ANY, "$": _END}.get(part, part)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "rlike": rlike,
    "regexp_extract": regexp_extract,
    "regexp_replace": regexp_replace,
    "split": split,
}
