"""Check statistics against the rows of some data files: wrong ones make queries lose rows.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.column_mapping import physical_path
from deltalog.errors import DeltaError
from deltalog.insight.doctor.report import Finding, Severity
from deltalog.kernels import arrow, compute
from deltalog.paths import decode_path
from deltalog.scan.plan import TASK_COLUMNS, make_task
from deltalog.scan.reader import read_task
from deltalog.scan.spec import read_spec
from deltalog.schema.columns import leaf_columns
from deltalog.schema.readable import readable_values
from deltalog.stats import stats_schema
from deltalog.stats.bounds import correction
from deltalog.stats.schema import has_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.insight.doctor.patient import Patient
    from deltalog.schema import Field

_ADVICE: Final = "queries may lose rows: optimize.compact or an update of all rows writes it anew"


@dataclass(slots=True)
class _Leaf:
    """The facts observed about one column of one file."""

    path: tuple[str, ...]
    physical: tuple[str, ...]
    field: Field
    nulls: int = 0
    low: Any = None
    high: Any = None

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def look_at(self, batch: pa.RecordBatch) -> None:
        """Observe more rows."""
        column: Any = batch.column(self.path[0])
        for name in self.path[1:]:
            column = column.flatten()[column.type.get_field_index(name)]
        self.nulls += column.null_count
        if not has_bounds(self.field):
            return
        if pa.types.is_floating(column.type):
            column = column.filter(compute.invert(compute.is_nan(column)))  # no order
        if column.null_count == len(column):
            return
        ends = compute.min_max(column)
        low, high = ends["min"], ends["max"]
        if self.low is None or compute.less(low, self.low).as_py():
            self.low = low
        if self.high is None or compute.greater(high, self.high).as_py():
            self.high = high


def check_statistics(patient: Patient) -> Iterator[Finding]:
    """Check counts and bounds of some files against their rows, including deleted rows."""
    snapshot = patient.snapshot
    configuration = snapshot.configuration
    keys = set(configuration.partition_columns)
    mode = configuration.column_mapping_mode
    columns = [
        (path, physical_path(configuration.schema, path, mode), field)
        for path, field in leaf_columns(configuration.schema)
        if path[0] not in keys
    ]
    schema = stats_schema((physical, field) for _, physical, field in columns)
    stats = snapshot.stats(schema)
    numbers = pa.table({"number": pa.array(range(snapshot.num_files), pa.int64())})
    chosen = patient.sample(numbers).column("number")
    files = snapshot.files(TASK_COLUMNS).take(chosen).to_pylist()
    found = stats.take(chosen)
    for number, row in enumerate(files):
        leaves = [_Leaf(path, physical, field) for path, physical, field in columns]
        path = decode_path(row["path"])
        try:
            num_rows = _read(patient, row, leaves)
        except DeltaError as error:
            yield Finding(
                check="file-unreadable", severity=Severity.ERROR, message=str(error), path=path
            )
            continue
        for message in _problems(found.slice(number, 1), leaves, num_rows):
            yield Finding(
                check="statistics",
                severity=Severity.ERROR,
                message=f"{path}: {message}",
                advice=_ADVICE,
                path=path,
            )


def _read(patient: Patient, row: dict[str, Any], leaves: Sequence[_Leaf]) -> int:
    """Observe the physical rows of a file; return their number."""
    snapshot = patient.snapshot
    names = list(dict.fromkeys(leaf.path[0] for leaf in leaves))
    spec = read_spec(snapshot, columns=names, predicate=None)
    num_rows = 0
    for batch in read_task(make_task(snapshot, spec, {**row, "deletionVector": None})):
        num_rows += batch.num_rows
        for leaf in leaves:
            leaf.look_at(batch)
    return num_rows


def _problems(stats: pa.Table, leaves: Sequence[_Leaf], num_rows: int) -> Iterator[str]:
    stated = _value(stats, ("numRecords",))
    if stated is not None and stated.as_py() != num_rows:
        yield f"numRecords is {stated.as_py()}, and it has {num_rows} rows"
    for leaf in leaves:
        nulls = _value(stats, ("nullCount", *leaf.physical))
        if nulls is not None and nulls.as_py() != leaf.nulls:
            yield f"nullCount of {leaf.name} is {nulls.as_py()}, and {leaf.nulls} are NULL"
        bounds = correction(leaf.field)
        low = _value(stats, ("minValues", *leaf.physical), bounds.lower)
        if low is not None and leaf.low is not None and compute.less(leaf.low, low).as_py():
            yield f"the minimum of {leaf.name} is {_shown(low)}, and {_shown(leaf.low)} occurs"
        high = _value(stats, ("maxValues", *leaf.physical), bounds.upper)
        if high is not None and leaf.high is not None and compute.greater(leaf.high, high).as_py():
            yield f"the maximum of {leaf.name} is {_shown(high)}, and {_shown(leaf.high)} occurs"


def _shown(value: pa.Scalar[Any]) -> str:
    (shown,) = readable_values(arrow.repeat(value, 1))
    return repr(shown)


def _value(stats: pa.Table, path: tuple[str, ...], correct: Any = None) -> Any:
    """One statistic as a scalar; None if it is missing."""
    if path[0] not in stats.column_names:
        return None
    column: Any = stats.column(path[0]).combine_chunks()
    for name in path[1:]:
        place = column.type.get_field_index(name)
        if place < 0:
            return None
        column = column.flatten()[place]
    if correct is not None:
        column = correct(column)
    value = column[0]
    if not value.is_valid or (pa.types.is_floating(value.type) and value.as_py() != value.as_py()):
        return None
    return value
