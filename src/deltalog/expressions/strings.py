"""Functions of strings and binary values as in Spark: characters are Unicode code points."""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions.rows import as_array, by_row, check_volume, is_bounded, is_constant, spend

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_INTEGER: Final = (1 << 31) - 1
_SHA2: Final[dict[int, Callable[[bytes], Any]]] = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def _change_case(
    kernel: Callable[[Datum], Datum], rowwise: Callable[[str], str]
) -> Callable[[Datum], Datum]:
    """Return a function that converts strings to upper or lower case.

    In Java, the upper case of ß is SS, and the lower case of Σ depends on its position in the word.
    Arrow maps single characters. Cost: by row if a string is not ASCII.
    """

    def run(text: Datum) -> Datum:
        if compute.all(pc.string_is_ascii(text), min_count=0).as_py():
            return kernel(text)
        return by_row(rowwise, pa.string(), text)

    return run


def _test(
    kernel: Callable[..., Datum], rowwise: Callable[[str, str], bool]
) -> Callable[[Datum, Datum], Datum]:
    """Return a function that tests for a substring. Cost: by row for a non-constant substring."""

    def run(text: Datum, part: Datum) -> Datum:
        if is_constant(part):
            return kernel(text, part.as_py())
        return by_row(rowwise, pa.bool_(), text, part)

    return run


def _trim(
    kernel: Callable[..., Datum], rowwise: Callable[[str, str], str], *, chars_first: bool
) -> Callable[..., Datum]:
    """Return a trim function; by default it trims only spaces.

    Cost: by row if the characters are not constant.
    """

    def run(*arguments: Datum) -> Datum:
        if len(arguments) == 1:
            return kernel(arguments[0], characters=" ")
        chars, text = arguments if chars_first else reversed(arguments)
        if is_constant(chars):
            return kernel(text, characters=chars.as_py()) if chars.as_py() else text
        return by_row(
            lambda value, given: rowwise(value, given) if given else value, pa.string(), text, chars
        )

    return run


def length(value: Datum) -> Datum:
    """Return the number of characters of a string, or of bytes of a binary value."""
    return pc.binary_length(value) if pt.is_binary(value.type) else pc.utf8_length(value)


def octet_length(value: Datum) -> Datum:
    """Return the number of bytes of a string (UTF-8) or binary value."""
    return pc.binary_length(value)


def substring(value: Datum, start: Datum, count: Datum | None = None) -> Datum:
    """Return at most `count` characters or bytes from `start`: 0 or 1 is the first, -1 the last.

    Cost: by row if a number is not constant, or if `start` is negative and `count` is given.
    """
    arguments = (start,) if count is None else (start, count)
    if pt.is_string(value.type) and is_constant(*arguments):
        first = start.as_py()
        many = _MAX_INTEGER if count is None else count.as_py()
        if many <= 0:
            return compute.utf8_slice_codeunits(value, start=0, stop=0)
        # In Spark, position 0 means position 1.
        if first >= 0:
            begin = max(first - 1, 0)
            return compute.utf8_slice_codeunits(value, start=begin, stop=begin + many)
        if count is None:
            return compute.utf8_slice_codeunits(value, start=first)
    return by_row(part_of, value.type, value, *arguments)


def part_of(value: Any, start: int, count: int = _MAX_INTEGER) -> Any:
    """Return `substring` of one string or binary value."""
    # A start before the first character is valid: substring('abc', -5, 3) is 'a'.
    begin = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    end = begin + count
    return value[max(begin, 0) : max(end, 0)]


def left(text: Datum, count: Datum) -> Datum:
    """Return the first characters."""
    return substring(text, pa.scalar(1, pa.int32()), count)


def right(text: Datum, count: Datum) -> Datum:
    """Return the last characters. Cost: by row if their number is not constant."""
    if is_constant(count):
        many = count.as_py()
        if many <= 0:
            return left(text, pa.scalar(0, pa.int32()))
        return compute.utf8_slice_codeunits(text, start=-many)
    return by_row(lambda value, many: value[-many:] if many > 0 else "", pa.string(), text, count)


def repeat(text: Datum, count: Datum) -> Datum:
    """Repeat a string; a negative count returns an empty string."""
    times = compute.max_element_wise(count, 0, skip_nulls=False)
    sizes = compute.multiply(
        compute.cast(pc.binary_length(text), pa.float64()), compute.cast(times, pa.float64())
    )
    check_volume("repeat", sizes)
    return pc.binary_repeat(text, times)


def reverse(text: Datum) -> Datum:
    """Return the characters in reverse order."""
    return pc.utf8_reverse(text)


def concat(*parts: Datum) -> Datum:
    """Return the concatenated parts; NULL if a part is NULL."""
    if not parts:
        return pa.scalar("")
    empty: Any = b"" if pt.is_binary(parts[0].type) else ""
    return compute.binary_join_element_wise(
        *parts, pa.scalar(empty, parts[0].type), null_handling="emit_null"
    )


def concat_ws(separator: Datum, *parts: Datum) -> Datum:
    """Join the parts that are not NULL by a separator; NULL if the separator is NULL.

    Cost: by row if the separator is not constant.
    """
    empty = pa.scalar("")
    if not parts:
        return compute.if_else(compute.is_valid(separator), empty, separator)
    if isinstance(separator, pa.Scalar) and separator.is_valid:
        # With `null_handling="skip"`, Arrow's result would lack the rows whose parts are all NULL.
        ahead = [
            compute.coalesce(compute.binary_join_element_wise(separator, part, empty), empty)
            for part in parts
        ]
        joined = compute.binary_join_element_wise(*ahead, empty)
        return compute.utf8_slice_codeunits(joined, start=len(separator.as_py()))
    # `by_row` returns NULL if an argument is NULL. So replace NULL parts by "", and pass a flag for
    # each part that is false for NULL.
    flags = [compute.is_valid(part) for part in parts]
    texts = [compute.fill_null(part, "") for part in parts]
    return by_row(_joined, pa.string(), separator, *flags, *texts)


def _joined(separator: str, *row: Any) -> str:
    half = len(row) // 2
    return separator.join(
        text for is_valid, text in zip(row[:half], row[half:], strict=True) if is_valid
    )


def _counts(text: Datum, search: str) -> Datum:
    counts = pc.count_substring(as_array(text, 1), search)
    return compute.fill_null(compute.cast(counts, pa.int64()), 0)


def replace(text: Datum, search: Datum, replacement: Datum | None = None) -> Datum:
    """Replace every `search` in a string. Cost: by row if an argument is not constant."""
    new = pa.scalar("") if replacement is None else replacement
    if is_constant(search, new):
        if search.as_py() == "":
            return text
        if is_bounded():
            spend(compute.sum(_counts(text, search.as_py())).as_py() * len(new.as_py()))
        return pc.replace_substring(text, search.as_py(), new.as_py())

    def row(value: str, old: str, by: str) -> str:
        if not old:
            return value
        spend(value.count(old) * len(by) if len(by) > len(old) else 0)
        return value.replace(old, by)

    return by_row(
        row,
        pa.string(),
        text,
        search,
        new,
    )


def instr(text: Datum, part: Datum) -> Datum:
    """Return the position of a substring, from 1; 0 if it does not occur. Cost: by row."""
    return by_row(lambda value, wanted: value.find(wanted) + 1, pa.int32(), text, part)


def split_part(text: Datum, delimiter: Datum, index: Datum) -> Datum:
    """Return a part between delimiters, counted from 1, or from the end if `index` is negative.

    Cost: by row.
    """
    return by_row(_split_part, pa.string(), text, delimiter, index)


def _split_part(text: str, delimiter: str, index: int) -> str:
    if index == 0:
        raise InvalidInputError("the index of split_part must not be 0: it counts from 1")
    pieces = text.split(delimiter) if delimiter else [text]
    position = index - 1 if index > 0 else len(pieces) + index
    return pieces[position] if 0 <= position < len(pieces) else ""


def find_from(part: Datum, text: Datum, start: Datum) -> Datum:
    """Return the position of a substring at or after `start`, from 1. Cost: by row."""
    return by_row(_find_from, pa.int32(), part, text, start)


def _find_from(part: str, text: str, start: int) -> int:
    if start <= 0:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def bit_length(value: Datum) -> Datum:
    """Return the number of bits of a string (UTF-8) or binary value."""
    return compute.multiply(pc.binary_length(value), pa.scalar(8, pa.int32()))


def _capitalised(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _character(code: int) -> str:
    return "" if code < 0 else chr(code & 0xFF)


def _pad(*, at_left: bool) -> Callable[..., Datum]:
    """Return a function that pads or truncates strings. Cost: by row for a non-constant length."""

    def row(text: str, width: int, fill: str = " ") -> str:
        if width <= len(text) or not fill:
            return text[: max(width, 0)]
        missing = width - len(text)
        filled = (fill * (missing // len(fill) + 1))[:missing]
        return filled + text if at_left else text + filled

    def run(text: Datum, width: Datum, fill: Datum | None = None) -> Datum:
        given = pa.scalar(" ") if fill is None else fill
        check_volume("a padding", width, rows=1 if isinstance(text, pa.Scalar) else len(text))
        if is_constant(width, given) and len(given.as_py()) == 1 and width.as_py() > 0:
            kernel = pc.utf8_lpad if at_left else pc.utf8_rpad
            padded = kernel(text, width=width.as_py(), padding=given.as_py())
            return compute.utf8_slice_codeunits(padded, start=0, stop=width.as_py())
        return by_row(row, pa.string(), text, width, given)

    return run


def sha2(value: Datum, bits: Datum) -> Datum:
    """Return the SHA-2 digest as a hexadecimal string; NULL for an unsupported number of bits."""

    def row(data: bytes, width: int) -> str | None:
        digest = _SHA2.get(width)
        return None if digest is None else digest(data).hexdigest()

    return by_row(row, pa.string(), value, bits)


# --- Regular expressions: functions, and the translation of Java's syntax to Arrow's RE2


# Splits a replacement string of Java: `$1` is a group, and a backslash escapes the next character.
_REPLACEMENT: Final = re.compile(r"\\(.)|\$(\d)|(.)", re.DOTALL)
_MOST_GROUPS: Final = 8
_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_ANY: Final = f"[^{_LINE_ENDS}]"
_END: Final = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_BLANKS: Final = r"\t\n\x0B\f\r "
_HORIZONTAL: Final = r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}"
_VERTICAL: Final = rf"\x0B\f{_LINE_ENDS}"
# Matches flags that change the meaning of . and $. In a pattern with such a flag, . and $ are not
# translated.
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


# RE2's errors for patterns that are invalid in Java too; the others are about Java's extensions.
_INVALID: Final = ("missing ]", "missing )", "unexpected )", "no argument for repetition operator",
                   "invalid character class range", "trailing \\")  # fmt: skip


def rlike(text: Datum, pattern: Datum) -> Datum:
    """Whether a pattern matches anywhere in a string. Cost: by row for a non-constant pattern."""
    if is_constant(pattern):
        return _matches(text, pattern.as_py())
    return by_row(
        lambda value, shape: _matches(pa.scalar(value), shape).as_py(), pa.bool_(), text, pattern
    )


def _matches(text: Datum, pattern: str) -> Datum:
    try:
        return compute.match_substring_regex(text, to_re2(pattern))
    except pa.ArrowInvalid as error:
        problem = str(error).removeprefix("Invalid regular expression: ")
        if not problem.startswith(_INVALID):
            problem = f"look-around and back-references are not supported ({problem})"
        else:
            problem = f"it is not a valid pattern ({problem}); \\ before a sign removes its meaning"
        raise InvalidInputError(
            f"cannot use the regular expression {pattern!r}: {problem}"
        ) from error


def regexp_extract(text: Datum, pattern: Datum, group: Datum | None = None) -> Datum:
    """Return a group of the first match, or `""`; pattern and group number must be constant.

    Raises:
        InvalidInputError: the pattern does not have the group.
    """
    if not is_constant(pattern) or not (group is None or is_constant(group)):
        return _no_text(text)
    shape, place = pattern.as_py(), 1 if group is None else group.as_py()
    is_found = _matches(text, shape)
    if not 0 <= place <= _MOST_GROUPS:
        raise InvalidInputError(f"cannot extract by {shape!r}: the pattern has no group {place}")
    # Replace the whole string by the group. Because the prefix is lazy, the group is that of the
    # first match.
    whole = rf"\A(?s:.*?)({to_re2(shape)})(?s:.*)\z"
    try:
        found = compute.replace_substring_regex(text, whole, rf"\{place + 1}")
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"cannot extract by {shape!r}: the pattern has no group {place} in brackets; group 0 "
            "is the whole match"
        ) from error
    return compute.if_else(is_found, found, "")


def regexp_replace(text: Datum, pattern: Datum, replacement: Datum) -> Datum:
    """Replace every match; `$1` is a group. Pattern and replacement must be constant.

    Raises:
        InvalidInputError: the pattern does not have a group, or the replacement is malformed.
    """
    if not is_constant(pattern, replacement):
        return _no_text(text)
    shape, given = pattern.as_py(), replacement.as_py()
    _matches(text, shape)
    if is_bounded():
        found = pc.count_substring_regex(as_array(text, 1), to_re2(shape))
        many = compute.sum(compute.cast(found, pa.int64())).as_py() or 0
        # The budget assumes that each group is as long as the string.
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
            raise InvalidInputError(
                f"cannot use the replacement {given!r}: {plain} must be followed by a group or a "
                "character"
            )
        text = escaped or plain
        parts.append(rf"\{group}" if group else text.replace("\\", r"\\"))
    return "".join(parts)


def split(text: Datum, pattern: Datum, limit: Datum | None = None) -> Datum:
    """Split at the matches of a regular expression."""
    constants = (pattern,) if limit is None else (pattern, limit)
    if not is_constant(*constants):
        raise InvalidInputError("split needs a constant pattern and limit")
    shape = pattern.as_py()
    most = -1 if limit is None else limit.as_py()
    result = pa.list_(pa.field("element", pa.string(), nullable=False))
    if shape == "":
        return by_row(lambda value: _characters(value, most), result, text)
    # If the number of parts is limited, the last part is the rest of the string, so the number of
    # splits is one less than the number of parts.
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
    """Translate a Java pattern to an RE2 pattern with the same matches.

    Raises:
        InvalidInputError: a character class contains another class or an intersection.
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


_REGEXP_KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "rlike": rlike,
    "regexp_extract": regexp_extract,
    "regexp_replace": regexp_replace,
    "split": split,
}


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    **_REGEXP_KERNELS,
    "upper": _change_case(pc.ascii_upper, str.upper),
    "lower": _change_case(pc.ascii_lower, str.lower),
    "initcap": lambda text: by_row(_capitalised, pa.string(), text),
    "ascii": lambda text: by_row(lambda value: ord(value[:1] or "\0"), pa.int32(), text),
    "chr": lambda code: by_row(_character, pa.string(), code),
    "find_from": find_from,
    "bit_length": bit_length,
    "trim": _trim(pc.utf8_trim, str.strip, chars_first=True),
    "ltrim": _trim(pc.utf8_ltrim, str.lstrip, chars_first=True),
    "rtrim": _trim(pc.utf8_rtrim, str.rstrip, chars_first=True),
    "btrim": _trim(pc.utf8_trim, str.strip, chars_first=False),
    "length": length,
    "octet_length": octet_length,
    "substring": substring,
    "left": left,
    "right": right,
    "repeat": repeat,
    "concat_ws": concat_ws,
    "replace": replace,
    "startswith": _test(compute.starts_with, str.startswith),
    "endswith": _test(pc.ends_with, str.endswith),
    "contains": _test(pc.match_substring, str.__contains__),
    "instr": instr,
    "split_part": split_part,
    "lpad": _pad(at_left=True),
    "rpad": _pad(at_left=False),
    "crc32": lambda value: by_row(zlib.crc32, pa.int64(), value),
    # `md5` and `sha1` need not be secure: generated columns use them to distribute rows.
    "md5": lambda value: by_row(lambda data: hashlib.md5(data).hexdigest(), pa.string(), value),  # noqa: S324
    "sha1": lambda value: by_row(lambda data: hashlib.sha1(data).hexdigest(), pa.string(), value),  # noqa: S324
    "sha2": sha2,
}
