"""The operations that are measured over the network, and the sizes of tables, as data."""

from __future__ import annotations

from dataclasses import dataclass

LATENCIES_MS = (5.0, 25.0, 100.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSize:
    """The sizes of the tables, and the numbers of repetitions.

    Args:
        files: number of data files of the table with small files.
        file_rows: rows of each small file; 4,500 rows are about 135 KB.
        large_files: number of data files of the table with large files.
        large_file_rows: rows of each large file; 4,850,000 rows are about 100 MB.
        log_files: number of files in the table that has only a log.
        removed_files: number of removed files of the table for vacuum.
        appends: number of appends by one writer, one after the other.
        many_appends: number of appends by 16 threads of one process.
        turns: number of turns of each subject, of which the median is reported.
    """

    files: int
    file_rows: int
    large_files: int
    large_file_rows: int
    log_files: int
    removed_files: int
    appends: int
    many_appends: int
    turns: int

    @property
    def needle(self) -> int:
        """Return an id in the middle of a file in the middle of the table of small files."""
        return self.files // 2 * self.file_rows + self.file_rows // 2


# What the titles say of bytes holds for the first two; the last is to try things out.
WIRE_SIZES = {
    "full": WireSize(
        files=500,
        file_rows=4_500,
        large_files=8,
        large_file_rows=4_850_000,
        log_files=1_000_000,
        removed_files=10_000,
        appends=100,
        many_appends=1_000,
        turns=5,
    ),
    "small": WireSize(
        files=200,
        file_rows=4_500,
        large_files=4,
        large_file_rows=4_850_000,
        log_files=100_000,
        removed_files=1_000,
        appends=20,
        many_appends=100,
        turns=5,
    ),
    "smallest": WireSize(
        files=20,
        file_rows=500,
        large_files=2,
        large_file_rows=50_000,
        log_files=1_000,
        removed_files=100,
        appends=3,
        many_appends=5,
        turns=1,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on one table, for several subjects.

    Args:
        name: short, unique.
        title: one line for the page.
        table: name of the table in `benchmarks.wire.tables`.
        subject: name in `benchmarks.wire.subjects`, without the library.
        libraries: the libraries to measure, deltalog first.
        writes: whether each turn gets a copy of the table.
        times: the field of `WireSize` with the number of repetitions.
        latencies_ms: the latencies at which it is measured by default; None for all.
    """

    name: str
    title: str
    table: str
    subject: str
    libraries: tuple[str, ...] = ("deltalog", "deltalake")
    writes: bool = False
    times: str = "appends"
    latencies_ms: tuple[float, ...] | None = None

    def repeats(self, size: WireSize) -> int:
        """Return the number of repetitions in one turn, for subjects that repeat a call."""
        return int(getattr(size, self.times))

    def is_usual_at(self, latency_ms: float) -> bool:
        """Return whether it is measured at this latency by default."""
        return self.latencies_ms is None or latency_ms in self.latencies_ms


# Two ways of deltalake: its own engine, and pyarrow's over its file system.
_READERS = ("deltalog", "deltalake", "deltalake_arrow")

OPERATIONS = (
    Operation(
        name="open",
        title="open: a checkpoint of {files:,} files and ten commits",
        table="logged",
        subject="open",
    ),
    Operation(
        name="open-many",
        title="open: a checkpoint of {log_files:,} files and ten commits",
        table="many",
        subject="open",
    ),
    Operation(
        name="history",
        title="the history of 21 versions",
        table="logged",
        subject="history",
    ),
    Operation(
        name="plan",
        title="open and plan `id = x` over {files:,} files",
        table="logged",
        subject="plan",
    ),
    Operation(
        name="plan-many",
        title="open and plan `id = x` over {log_files:,} files",
        table="many",
        subject="plan",
    ),
    Operation(
        name="point",
        title="open and find one row by its id",
        table="logged",
        subject="point",
        libraries=_READERS,
    ),
    Operation(
        name="read",
        title="open and read {files:,} files of 135 KB",
        table="logged",
        subject="read",
        libraries=(*_READERS, "pyarrow"),
    ),
    Operation(
        name="read-large",
        title="open and read {large_files:,} files of 100 MB, all columns",
        table="large",
        subject="read",
        libraries=(*_READERS, "pyarrow"),
    ),
    Operation(
        name="read-column",
        title="open and read {large_files:,} files of 100 MB, one column",
        table="large",
        subject="column",
        libraries=(*_READERS, "pyarrow"),
    ),
    Operation(
        name="append",
        title="open and append 1,000 rows",
        table="logged",
        subject="append",
        writes=True,
    ),
    Operation(
        name="appends",
        title="open and append a row, {appends:,} times",
        table="logged",
        subject="appends",
        writes=True,
    ),
    Operation(
        name="appender",
        title="open and append {appends:,} rows by 16 threads, against one after the other",
        table="logged",
        subject="appender",
        writes=True,
    ),
    Operation(
        name="appender-many",
        title="open and append {many_appends:,} rows by 16 threads, against one after the other",
        table="logged",
        subject="appender",
        writes=True,
        times="many_appends",
        latencies_ms=(25,),  # 1,000 commits of deltalake take over four minutes there
    ),
    Operation(
        name="delete",
        title="open and delete rows of two files",
        table="logged",
        subject="delete",
        writes=True,
    ),
    Operation(
        name="merge",
        title="open and merge 1,000 rows, half of them in one file",
        table="logged",
        subject="merge",
        writes=True,
    ),
    Operation(
        name="checkpoint",
        title="open and write a checkpoint of {files:,} files",
        table="logged",
        subject="checkpoint",
        writes=True,
    ),
    Operation(
        name="checkpoint-many",
        title="open and write a checkpoint of {log_files:,} files",
        table="many",
        subject="checkpoint",
        writes=True,
    ),
    Operation(
        name="vacuum",
        title="open and vacuum {removed_files:,} files that the log has removed",
        table="removed",
        subject="vacuum",
        writes=True,
    ),
)
