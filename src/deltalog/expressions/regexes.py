r"""Java's regular expressions in the spelling of RE2, which Arrow uses.

Owns where the two read the same text differently: `.` leaves out more line ends in Java, `$` also
stands before a final line end, `\s` has the vertical tab. What Java reads and RE2 would misread
(classes in classes) is refused; RE2 itself refuses look-around and back-references.
"""

from __future__ import annotations

import re
from typing import Final

from deltalog.errors import InvalidInputError

_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_ANY: Final = f"[^{_LINE_ENDS}]"
_END: Final = rf"(?:\r\n|[{_LINE_ENDS}])?\z"
_BLANKS: Final = r"\t\n\x0B\f\r "
_HORIZONTAL: Final = r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}"
_VERTICAL: Final = rf"\x0B\f{_LINE_ENDS}"
# What . and $ mean changes with these flags, and RE2 knows the flags.
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


def to_re2(pattern: str) -> str:
    """The pattern as RE2 has to read it to find what Java finds.

    Raises:
        InvalidInputError: a character class holds another, or an intersection.
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
