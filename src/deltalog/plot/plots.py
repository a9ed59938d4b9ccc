"""`DeltaTable.plot`: which pictures there are of a version of a table.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog import arguments, conditions
from deltalog.errors import InvalidInputError
from deltalog.expressions import to_sql
from deltalog.plot import drawing, measures
from deltalog.plot.drawing import Plot
from deltalog.scan.plan import check_rows_readable, plan_scan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.snapshot import Snapshot

_ROW_HEIGHT = 0.24  # inches


class TablePlots:
    """Pictures of one version of a table; they read its log, and no data.

    A notebook shows a `Plot`; its `data` are the numbers, as an Arrow table of at most some hundred
    rows however large the table is. Drawing needs matplotlib: `pip install 'deltalog[plot]'`.

    Args:
        snapshot: the version.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        """Show which pictures there are."""
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"<plots of {self._title}: {names}>"

    def commits(self, limit: int | None = 1000) -> Plot:
        """Draw when what was committed.

        Args:
            limit: the newest commits only; None is all.

        Cost: a request per commit, sent together.
        """
        history = self._snapshot.history(arguments.as_limit(limit))
        title = f"Commits of {self._title}"
        return Plot(title=title, data=measures.commits(history), draw=drawing.draw_commits)

    def file_sizes(self) -> Plot:
        """Draw how many files are how large.

        Cost: the size of every file, from the log.
        """
        data = measures.file_sizes(self._snapshot)
        return Plot(title=f"File sizes of {self._title}", data=data, draw=drawing.draw_file_sizes)

    def partition_sizes(self, most: int = 30) -> Plot:
        """Draw how large the partitions are.

        Args:
            most: so many of the largest ones; the rest is one bar.

        Raises:
            InvalidInputError: the table has no partition columns.

        Cost: partition values and size of every file, from the log.
        """
        arguments.check_number("most", most, least=1)
        if most > 200:
            raise InvalidInputError(f"most: expected at most 200 partitions, found {most}")
        data = measures.partition_sizes(self._snapshot, most)
        return Plot(
            title=f"Partitions of {self._title}",
            data=data,
            draw=drawing.draw_partition_sizes,
            height=0.8 + _ROW_HEIGHT * data.num_rows,
        )

    def clustering(self, columns: str | Sequence[str] | None = None) -> Plot:
        """Draw how many files may hold a value: few where rows that are alike lie together.

        `optimize.z_order`, `optimize.cluster` and partitions make it less. A query for one value
        reads as many files as the line is high there.

        Args:
            columns: names; None are the clustering columns, or the first six with statistics.

        Raises:
            InvalidInputError: an unknown column, or one of a type that has no least value.

        Cost: the statistics of these columns of every file, from the log.
        """
        names = [columns] if isinstance(columns, str) else arguments.as_columns(columns)
        check_rows_readable(self._snapshot)
        data = measures.clustering(self._snapshot, names)
        return Plot(
            title=f"Overlap of the {self._snapshot.num_files:,} files of {self._title}",
            data=data,
            draw=drawing.draw_clustering,
        )

    def log(self) -> Plot:
        """Draw how large commits, checkpoints and the other files of the log are.

        Cost: one listing of the log.
        """
        data = measures.log_growth(self._snapshot)
        return Plot(title=f"Log of {self._title}", data=data, draw=drawing.draw_log)

    def scan(
        self,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
    ) -> Plot:
        """Draw how much of the files a scan reads, and what dropped the rest.

        Args:
            predicate: as for `DeltaTable.scan`, whose `explain()` names the conditions.
            parameters: values for `?` or `:name` in SQL.

        Raises:
            InvalidInputError: an unknown column, or a predicate that is not understood.

        Cost: the statistics that the predicate names, and the sizes, from the log.
        """
        shown = self._snapshot
        condition = conditions.as_condition(
            shown.configuration.schema,
            predicate,
            session=shown.context.session,
            parameters=parameters,
        )
        planned = plan_scan(shown, predicate=condition, is_resolved=True)
        data = measures.scan_outcome(planned.pruned)
        where = planned.spec.predicate
        what = "all rows" if where is None else to_sql(where)
        return Plot(
            title=f"A scan of {self._title} for {what}",
            data=data,
            draw=drawing.draw_scan,
            height=1.6,
        )

    @property
    def _title(self) -> str:
        shown = self._snapshot.metadata.name or self._snapshot.store.root
        return f"{shown}, version {self._snapshot.version}"
