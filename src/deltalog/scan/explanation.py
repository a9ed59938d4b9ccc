"""Why a scan reads the files that it reads: text for people, facts for programs.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from deltalog.cards import card, plain
from deltalog.kernels import pc

if TYPE_CHECKING:
    from deltalog.scan.prune import Pruned


class Explanation(str):
    """The text of `Scan.explain`, which is shown as it is printed.

    Args:
        text: of the explanation.
        pruned: what is explained.
    """

    __slots__ = ("_pruned",)
    _pruned: Pruned

    def __new__(cls, text: str, pruned: Pruned) -> Self:
        """Keep what is explained with its text."""
        made = super().__new__(cls, text)
        made._pruned = pruned
        return made

    @property
    def facts(self) -> dict[str, Any]:
        """Numbers of files, what dropped them, and how many bytes are left.

        Cost: the sizes of the files that are left, from the log.
        """
        exact = self._pruned.counted()
        return {
            "version": self._pruned.snapshot.version,
            "files": exact.num_files,
            "files_to_read": exact.num_left,
            "bytes_to_read": pc.sum(self._pruned.files(["size"])["size"]).as_py() or 0,
            "pruned_by_partition_values": exact.num_by_partition,
            "pruned_by_statistics": exact.num_by_statistics,
            "reasons": list(exact.reasons),
        }

    def __repr__(self) -> str:
        """The text itself: it has lines."""
        return str(self)

    def __str__(self) -> str:
        """The text alone."""
        return str.__str__(self)

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        title, *rest = str(self).split("\n")
        return card(title, plain("\n".join(rest)))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle the text: what is explained may be large."""
        return str, (str(self),)
