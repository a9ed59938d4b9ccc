"""The commits of a table as a list that can be looked at.

Protocol: Commit Provenance Information
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog.cards import card, grid
from deltalog.scan.rows import require_library
from deltalog.schema.readable import readable_moment

if TYPE_CHECKING:
    import pandas as pd

_MOST_SHOWN: Final = 50


class CommitHistory(list[dict[str, Any]]):
    """The commits, newest first: a list of dictionaries, with a card and a data frame."""

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per commit; `timestamp` is a moment in UTC."""
        pandas = require_library("pandas")
        frame: pd.DataFrame = pandas.DataFrame(list(self))
        if "timestamp" in frame:
            # A log may say a time that pandas does not have: it is unknown then.
            moments = pandas.to_datetime(frame["timestamp"], unit="ms", utc=True, errors="coerce")
            frame["timestamp"] = moments
        return frame

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        names = ("version", "timestamp", "operation", "parameters", "metrics")
        rows = [
            (
                row["version"],
                readable_moment(row["timestamp"]),
                row.get("operation"),
                _told(row.get("operationParameters")),
                _told(row.get("operationMetrics")),
            )
            for row in self[:_MOST_SHOWN]
        ]
        more = len(self) - len(rows)
        title = f"{len(self)} commits" + (
            f", of which {more} older ones are not shown" * (more > 0)
        )
        return card(title, grid(rows, names))


def _told(members: object) -> str:
    """Members of a commit's information; a log may hold anything there."""
    if not isinstance(members, dict):
        return "" if members is None else dumps(members).decode()
    return ", ".join(
        f"{name}={value if isinstance(value, str) else dumps(value).decode()}"
        for name, value in members.items()
    )
