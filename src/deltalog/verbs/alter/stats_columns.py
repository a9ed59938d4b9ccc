"""Adjust the property that lists the columns with statistics to schema changes.

Protocol: Table Properties (`delta.dataSkippingStatsColumns`)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import TableProperties
from deltalog.names import path_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.schema.columns import Path

_KEY: Final = TableProperties.data_skipping_stats_columns.key
_PLAIN: Final = re.compile(r"\w+")


def with_renamed_column(configuration: Mapping[str, str], old: Path, new: Path) -> dict[str, str]:
    """Return the properties after a column, with its nested fields, was renamed."""
    return _edited(configuration, old, new)


def without_column(configuration: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the properties after a column, with its nested fields, was dropped."""
    return _edited(configuration, path, None)


def _edited(configuration: Mapping[str, str], old: Path, new: Path | None) -> dict[str, str]:
    paths = TableProperties(configuration).data_skipping_stats_columns
    if paths is None:
        return dict(configuration)
    found: list[Path] = []
    for path in paths:
        if path_key(path[: len(old)]) != path_key(old):
            found.append(path)
        elif new is not None:
            found.append((*new, *path[len(new) :]))
    if tuple(found) == paths:
        return dict(configuration)
    if not found:
        return {key: text for key, text in configuration.items() if key != _KEY}
    return {**configuration, _KEY: ",".join(map(_text, found))}


def _text(path: Sequence[str]) -> str:
    return ".".join(
        name if _PLAIN.fullmatch(name) else "`{}`".format(name.replace("`", "``")) for name in path
    )
