"""Which kernel computes which function: the one list that evaluation uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.expressions.rows import Datum, by_row, pc

if TYPE_CHECKING:
    from collections.abc import Callable


def _text_test(
    kernel: Callable[..., Any], rowwise: Callable[[str, str], bool]
) -> Callable[[Datum, Datum], Datum]:
    def run(text: Datum, part: Datum) -> Datum:
        if isinstance(part, pa.Scalar) and part.is_valid:
            return kernel(text, part.as_py())
        return by_row(rowwise, pa.bool_(), text, part)

    return run


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "startswith": _text_test(pc.starts_with, str.startswith),
    "endswith": _text_test(pc.ends_with, str.endswith),
    "contains": _text_test(pc.match_substring, str.__contains__),
}
