"""What is measured: tables, questions and goals, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How big the tables are."""

    files: int
    commits: int
    rows: int
    row_files: int
    small_files: int
    tombstones: int
    shared_files: int
    many_files: int
    repeats: int


SIZES = {
    "full": Size(
        files=1_000_000,
        commits=5_000,
        rows=10_000_000,
        row_files=20,
        small_files=1_000,
        tombstones=100_000,
        shared_files=200,
        many_files=100_000,
        repeats=6,
    ),
    "small": Size(
        files=100_000,
        commits=500,
        rows=1_000_000,
        row_files=4,
        small_files=200,
        tombstones=10_000,
        shared_files=40,
        many_files=10_000,
        repeats=4,
    ),
    "smallest": Size(
        files=1_000,
        commits=20,
        rows=10_000,
        row_files=2,
        small_files=20,
        tombstones=1_000,
        shared_files=4,
        many_files=1_000,
        repeats=1,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One question to one table, asked of several subjects.

    Args:
        name: short, unique.
        title: one line for the report.
        table: which table of `benchmarks.tables`.
        ours: function of `benchmarks.subjects`.
        others: functions that answer the same; the quickest of them is compared with.
        goal: least times that we are quicker than the others.
        memory_goal: most of the others' memory, or None.
        most_seconds: what counts in place of `goal` where there is nobody to compare with.
        most_bytes: of memory, whatever the others take.
        scale: how many times the rows of the size the table has.
        same_answer: whether all subjects must return the same.
        other_table: where the others work if not on `table`: they cannot write deletion vectors.
        why: what stands in the way where the goal is not met.
    """

    name: str
    title: str
    table: str
    ours: str
    others: tuple[str, ...] = ()
    goal: float = 1
    memory_goal: float | None = None
    most_seconds: float | None = None
    most_bytes: int | None = None
    scale: int = 1
    same_answer: bool = True
    other_table: str | None = None
    why: str = ""


WORKLOADS = (
    Workload(
        name="open",
        title="open a checkpointed table of {files:,} files",
        table="checkpointed",
        ours="deltalog_open",
        others=("deltalake_open",),
        goal=20,
        memory_goal=0.25,
    ),
    Workload(
        name="plan",
        title="open it and plan `id = x`",
        table="checkpointed",
        ours="deltalog_plan",
        others=("deltalake_plan",),
        goal=4,
        why=(
            "of 1.1 s of processor time, profiled in one thread, pyarrow.json takes 0.67 s for the "
            "statistics, a million JSON texts of 155 MB, though two values of each are asked for "
            "(a regular expression that checks them takes as long, cutting them up by pyarrow.csv "
            "three quarters of it), and decoding their column takes 0.19 s; where a checkpoint has "
            "them as structs, none of that is needed"
        ),
    ),
    Workload(
        name="commits",
        title="open {commits:,} JSON commits and count the files",
        table="commits",
        ours="deltalog_count_files",
        others=("deltalake_count_files",),
        goal=4,
        why=(
            "of 0.25 s of processor time the system takes 0.04 s to list and read 5,000 files, and "
            "parsing their 18 MB 0.1 s, of which two cores share only a part; the rest is Python's "
            "for each file"
        ),
    ),
    Workload(
        name="import",
        title="`from deltalog import DeltaTable`: processor time above `import pyarrow`",
        table="small_files",
        ours="deltalog_import",
        most_seconds=0.15,
    ),
    Workload(
        name="first-write",
        title="a process that writes three rows to a new table",
        table="small_files",
        ours="deltalog_first_write",
        most_seconds=0.5,
        why=(
            "measured apart, in nine turns, when the machine was quicker than in the run above, "
            "such a process takes 0.46 to 0.53 s (median 0.47), and one that only makes the three "
            "rows with pyarrow 0.34 to 0.39 (0.36): pyarrow imports NumPy, and pandas as soon as "
            "it is given Python's values; 171 modules of deltalog with 83 dataclasses add 0.1 s, "
            "and the write itself 0.01 s"
        ),
    ),
    Workload(
        name="scan",
        title="read {rows:,} rows, against pyarrow on the same files",
        table="rows",
        ours="deltalog_read",
        others=("pyarrow_read",),
        goal=0.95,
        why=(
            "both take 0.57 s of processor time outside of the system; where the machine has the "
            "memory, both take 0.33 to 0.37 s, and where its host has taken it back, 0.8 s, of "
            "which perf finds 37 to 44 % of all samples of both in the kernel clearing 0.5 GB "
            "(`clear_page_erms`)"
        ),
    ),
    Workload(
        name="scan-peer",
        title="go through them batch by batch, against deltalake",
        table="rows",
        ours="deltalog_stream",
        others=("deltalake_query",),
        goal=1,
        why=(
            "decompressing Snappy alone takes pyarrow 0.28 s of processor time for these pages, as "
            "long as deltalake's own reader takes for everything (0.27 s); with decoding it is "
            "0.47 s, and pyarrow's own `iter_batches` takes 0.49 s"
        ),
    ),
    Workload(
        name="vectors",
        title="read it with a deletion vector on every file, against itself without",
        table="vectors",
        ours="deltalog_read_vectors",
        others=("deltalog_read",),
        goal=0.9,
        same_answer=False,
        other_table="rows",
        why=(
            "every column is copied once more without the deleted rows: of 0.11 s of processor "
            "time that perf finds more than without vectors, Arrow's filter and the copies of what "
            "stays are 0.09, Python 0.015, and the vectors themselves 0.002; slices of what stays, "
            "joined, take longer than the filter for numbers, in all 3.5 ms for each file for 3.0, "
            "and not joined they are 500 batches for each file"
        ),
    ),
    Workload(
        name="lookup",
        title="find one row by its id, warmed up",
        table="rows",
        ours="deltalog_lookup",
        others=("deltalake_lookup", "deltalake_lookup_query"),
        goal=2,
        why=(
            "counted by Valgrind, Arrow takes 5.9 million instructions to decompress and decode "
            "one page of each column, deltalake 8.1 for everything, and the goal would leave 4.0; "
            "Python adds 4.4"
        ),
    ),
    Workload(
        name="append",
        title="append {rows:,} rows",
        table="rows",
        ours="deltalog_append",
        others=("deltalake_append",),
        goal=1,
    ),
    Workload(
        name="append-parquet",
        title="the same, against pyarrow writing one Parquet file without statistics",
        table="rows",
        ours="deltalog_append",
        others=("pyarrow_write",),
        goal=1 / 1.1,
    ),
    Workload(
        name="partitioned",
        title="append them to 100 partitions",
        table="rows",
        ours="deltalog_partitioned",
        others=("deltalake_partitioned",),
        goal=1,
        why=(
            "of 2.2 s of processor time, taking the rows of each partition apart is 0.8, encoding "
            "0.75, by pyarrow, and waiting for 340 files and directories 0.4, for which deltalake "
            "does not wait"
        ),
    ),
    Workload(
        name="small-commits",
        title="1,000 commits of one row by one writer",
        table="rows",
        ours="deltalog_small_commits",
        others=("deltalake_small_commits",),
        goal=5,
        why=(
            "each commit waits for the disk, which deltalake does not: its two files and their "
            "names take 0.3 ms at the least; the rest are 15 million instructions, most of them "
            "Python's, of which the data file and the checkpoint of every tenth commit take a "
            "third each"
        ),
    ),
    Workload(
        name="unsynced-commits",
        title="the same without waiting for the disk (`fsync=false`), as deltalake does",
        table="rows",
        ours="deltalog_small_commits_unsynced",
        others=("deltalake_small_commits",),
        goal=1,
    ),
    Workload(
        name="path-commits",
        title="1,000 commits of one row, the table named by its path each time",
        table="rows",
        ours="deltalog_path_commits",
        others=("deltalake_path_commits",),
        goal=5,
        why=(
            "of the 7 to 8 ms that the goal would leave, 3 new files with their names take 0.7 "
            "ms on this disk, and waiting for it 1.3 ms, for which deltalake does not wait (the "
            "next row); counted by Valgrind, 14.5 million instructions are left, 9.2 of them "
            "Python's, and 48.6 of deltalake's"
        ),
    ),
    Workload(
        name="path-commits-unsynced",
        title="the same without waiting for the disk",
        table="rows",
        ours="deltalog_path_commits_unsynced",
        others=("deltalake_path_commits",),
        goal=1,
    ),
    Workload(
        name="appender",
        title="1,000 rows by 16 threads that wait for their version, against 1,000 commits",
        table="rows",
        ours="deltalog_appender",
        others=("deltalake_small_commits",),
        goal=20,
        same_answer=False,  # ours are rows and versions
    ),
    Workload(
        name="fsync",
        title="what waiting for the disk costs them: with it, against without",
        table="rows",
        ours="deltalog_small_commits",
        others=("deltalog_small_commits_unsynced",),
        goal=0.25,
        why="the disk has to write each file and each name before the next commit begins",
    ),
    Workload(
        name="checkpoint",
        title="open a table of {files:,} files and write a checkpoint",
        table="checkpointed",
        ours="deltalog_checkpoint",
        others=("deltalake_checkpoint",),
        goal=2,
        memory_goal=0.5,
        why=(
            "typed statistics are written beside the texts, which deltalake leaves out: a million "
            "texts are parsed for them, which takes more than half of the time (0.8 s without)"
        ),
    ),
    Workload(
        name="iceberg",
        title="open a table of {files:,} files, append a row, and show that as Iceberg",
        table="shown",
        ours="deltalog_iceberg_commit",
        most_seconds=1,
    ),
    Workload(
        name="delete",
        title="delete 0.1 % of {rows:,} rows, in two files, with deletion vectors",
        table="maskable",
        ours="deltalog_delete",
        others=("deltalake_delete",),
        goal=5,
        other_table="rows",
        why="the cause was not examined",
    ),
    Workload(
        name="delete-rewrite",
        title="the same, rewriting the files",
        table="rows",
        ours="deltalog_delete",
        others=("deltalake_delete",),
        goal=3,
        why=(
            "a program of pyarrow that is told the rows and what to copy, measured apart, takes 50 "
            "ms in a new process, 28 of them without waiting for the disk, for which deltalake "
            "does not wait (the next row); finding the rows takes 13 ms, looking at the footers of "
            "the two files 8 and the commit 5, one after the other: together more than the goal "
            "leaves; checking the copied pages and moving their indexes takes Python 31 ms of 166 "
            "under its profiler, in one thread; a third of the processor's time is the system's, "
            "which writes 22 MB and gives memory that was not used before, on this machine up to 5 "
            "ms for 2 MB"
        ),
    ),
    Workload(
        name="delete-rewrite-unsynced",
        title="the same without waiting for the disk, as deltalake does",
        table="rows",
        ours="deltalog_delete_unsynced",
        others=("deltalake_delete",),
        goal=1,
    ),
    Workload(
        name="update",
        title="update them, with deletion vectors",
        table="maskable",
        ours="deltalog_update",
        others=("deltalake_update",),
        goal=5,
        other_table="rows",
        why=(
            "of 25 ms of processor time, profiled, half are Python's, for planning, page headers "
            "and the commit, and half pyarrow's, which decodes a page of each column of two files "
            "and encodes the new rows; deltalake took 160 ms of processor time beside it"
        ),
    ),
    Workload(
        name="merge",
        title="merge 200,000 rows into {rows:,}, half of them spread over all files",
        table="maskable",
        ours="deltalog_merge",
        others=("deltalake_merge",),
        goal=3,
        other_table="rows",
    ),
    Workload(
        name="merge-near",
        title="merge 200,000 rows into {rows:,}, half of them in one file",
        table="maskable",
        ours="deltalog_merge_near",
        others=("deltalake_merge_near",),
        goal=5,
        other_table="rows",
        why=("the cause was not examined"),
    ),
    Workload(
        name="merge-rewrite",
        title="the first of these merges, rewriting the files",
        table="rows",
        ours="deltalog_merge",
        others=("deltalake_merge",),
        goal=3,
        why=(
            "every row group has a row that changes, so all rows are decoded and encoded, which "
            "takes pyarrow alone 3.0 s of processor time, measured apart in one thread, as long as "
            "the merge takes in all (2.9 s) and deltalake's 4.4 s allow for; where row groups stay "
            "as they are, the next row, their bytes are copied"
        ),
    ),
    Workload(
        name="merge-near-rewrite",
        title="the second, rewriting the files",
        table="rows",
        ours="deltalog_merge_near",
        others=("deltalake_merge_near",),
        goal=3,
    ),
    Workload(
        name="merge-large",
        title="merge 200,000 rows into ten times {rows:,}, in under 2 GB",
        table="large",
        ours="deltalog_merge",
        others=("deltalake_merge",),
        goal=1,
        most_bytes=2_000_000_000,
        scale=10,
        other_table="large_plain",
    ),
    Workload(
        name="merge-ranges",
        title="merge 100 ranges into {rows:,} rows: the condition has no equality; in under 2 GB",
        table="maskable",
        ours="deltalog_merge_ranges",
        others=("deltalake_merge_ranges",),
        other_table="rows",
        most_bytes=2_000_000_000,
    ),
    Workload(
        name="wide-open",
        title="open a table of 2,000 columns, and read its schema",
        table="wide",
        ours="deltalog_schema",
        others=("deltalake_schema",),
        why=("deltalog's time is for 2,000 objects of Python"),
    ),
    Workload(
        name="wide-scan",
        title="open it and read its 10,000 rows",
        table="wide",
        ours="deltalog_read",
        others=("deltalake_read", "deltalake_query"),
        why="decoding 40,000 chunks of 8 KB, for which pyarrow's own dataset takes 0.86 to 1.24 s, "
        "measured apart (five runs), of which 0.16 to 0.24 are the footers of the 20 files",
    ),
    Workload(
        name="wide-append",
        title="open it and append 1,000 rows",
        table="wide",
        ours="deltalog_append_wide",
        others=("deltalake_append_wide",),
    ),
    Workload(
        name="compact",
        title="put {small_files:,} small files together, a tenth of those rows",
        table="small_files",
        ours="deltalog_compact",
        others=("deltalake_compact",),
        goal=1.5,
        why=(
            "a program that opens the files one by one, decodes them in two threads, encodes their "
            "rows in another and waits for the disk, without a table, takes 0.20 to 0.21 s, "
            "measured apart (pyarrow's own way takes longer than deltalog, the next row); planning "
            "takes 0.02 s more, statistics 0.03 and the commit 0.01, which is all that the goal "
            "leaves; two threads decode, and wait for the interpreter's lock half of the time, as "
            "an earlier session measured"
        ),
    ),
    Workload(
        name="compact-parquet",
        title="the same, against pyarrow reading the files and writing their rows, without a table",
        table="small_files",
        ours="deltalog_compact",
        others=("pyarrow_compact",),
        goal=1 / 1.1,
        same_answer=False,
    ),
    Workload(
        name="z-order",
        title="arrange {rows:,} rows by two columns along a Z curve",
        table="rows",
        ours="deltalog_z_order",
        others=("deltalake_z_order",),
        goal=1,
        memory_goal=1,
        why="the cause was not examined",
    ),
    Workload(
        name="vacuum-lite",
        title="vacuum {tombstones:,} files that the log has removed",
        table="tombstones",
        ours="deltalog_vacuum_lite",
        others=("deltalake_vacuum_lite",),
        goal=2,
        why=(
            "the system takes 0.25 s to delete 100,000 files, whether in one thread or in several, "
            "of 0.44 s of processor time"
        ),
    ),
    Workload(
        name="share-load",
        title="load a shared table of {rows:,} rows in {shared_files:,} files into pandas",
        table="shared",
        ours="deltalog_share_load",
        others=("official_share_load",),
        goal=3,
        why=("the cause was not examined; server and client share two cores"),
    ),
    Workload(
        name="share-column",
        title="load one column of it",
        table="shared",
        ours="deltalog_share_column",
        others=("official_share_column",),
        goal=5,
    ),
    Workload(
        name="share-point",
        title="find one row of it by its id, with hints",
        table="shared",
        ours="deltalog_share_point",
        others=("official_share_point",),
        goal=5,
        why=(
            "of 44 to 52 ms in a process of its own, 14 to 18 are the server's first query (6 for "
            "the first statistics that its process parses), 5 its sending of the file, 4 make the "
            "frame, and the others plan and decode; server and client share two cores"
        ),
    ),
    Workload(
        name="share-first-line",
        title="the first file of {many_files:,} that a fresh server answers a query with",
        table="many",
        ours="deltalog_serve_first_line",
        most_seconds=0.5,
    ),
    Workload(
        name="share-lines",
        title="all {many_files:,} lines of the answer, at 50,000 a second",
        table="many",
        ours="deltalog_serve_lines",
        most_seconds=2,
        why="a bound in seconds: the machine decides",
    ),
    Workload(
        name="spark-read",
        title="Spark: all columns of {rows:,} rows, against its own Parquet reader",
        table="rows",
        ours="deltalog_spark_read",
        others=("native_spark_read",),
        goal=1 / 1.2,
    ),
    Workload(
        name="spark-read-delta",
        title="Spark: the same, against Delta Spark",
        table="rows",
        ours="deltalog_spark_read",
        others=("delta_spark_read",),
    ),
    Workload(
        name="spark-column",
        title="Spark: one column, against its own Parquet reader",
        table="rows",
        ours="deltalog_spark_column",
        others=("native_spark_column",),
        goal=1 / 1.2,
    ),
    Workload(
        name="spark-column-delta",
        title="Spark: the same, against Delta Spark",
        table="rows",
        ours="deltalog_spark_column",
        others=("delta_spark_column",),
    ),
    Workload(
        name="spark-vectors",
        title="Spark: all columns, with deletion vectors on every file, against Parquet without",
        table="vectors",
        ours="deltalog_spark_read",
        others=("native_spark_read",),
        goal=0.8,
        same_answer=False,
        why=(
            "of 0.6 s that are added, measured apart in one warm session (1.52 s without vectors, "
            "2.13 with), the number of each row and its file's length, which Spark makes for every "
            "row, take 0.27; joining them with 10,000 deleted positions, and planning with the "
            "vectors, takes the rest"
        ),
    ),
    Workload(
        name="spark-vectors-delta",
        title="Spark: the same, against Delta Spark",
        table="vectors",
        ours="deltalog_spark_read",
        others=("delta_spark_read",),
        goal=1 / 0.9,
    ),
    Workload(
        name="spark-door-count",
        title="Spark: count three times {rows:,} rows by `spark.read.format`",
        table="thrice",
        ours="deltalog_spark_door_count",
        others=("deltalog_spark_count",),
        goal=1 / 1.15,
        scale=3,
    ),
    Workload(
        name="spark-door-column",
        title="Spark: the sum of a column of them",
        table="thrice",
        ours="deltalog_spark_door_column",
        others=("deltalog_spark_column",),
        goal=1 / 1.15,
        scale=3,
    ),
    Workload(
        name="spark-door-point",
        title="Spark: find one of them by its id",
        table="thrice",
        ours="deltalog_spark_door_point",
        others=("deltalog_spark_point",),
        goal=1 / 1.15,
        scale=3,
    ),
    Workload(
        name="spark-feed",
        title="Spark: the change feed of them, against Delta Spark",
        table="fed",
        ours="deltalog_spark_feed",
        others=("delta_spark_feed",),
        scale=3,
    ),
    Workload(
        name="spark-append",
        title="Spark: append {rows:,} rows",
        table="rows",
        ours="deltalog_spark_append",
        others=("delta_spark_append",),
    ),
    Workload(
        name="spark-append-large",
        title="Spark: append three times {rows:,} rows by `deltalog.spark.write`",
        table="thrice",
        ours="deltalog_spark_append",
        others=("delta_spark_append",),
        scale=3,
    ),
    Workload(
        name="spark-append-format",
        title='Spark: the same, against `df.write.format("deltalog")`',
        table="thrice",
        ours="deltalog_spark_append",
        others=("deltalog_spark_append_by_format",),
        scale=3,
        why="both spellings call the same function with the same options: five more turns, half an "
        "hour later, gave 12.6 and 12.5 s",
    ),
    Workload(
        name="spark-merge",
        title="Spark: merge 200,000 rows into {rows:,}",
        table="maskable",
        ours="deltalog_spark_merge",
        others=("delta_spark_merge",),
        goal=1 / 0.8,
    ),
    Workload(
        name="spark-plan",
        title="Spark: plan `id = x` on a table of {files:,} files",
        table="checkpointed",
        ours="deltalog_spark_plan",
        others=("delta_spark_plan",),
        goal=2,
    ),
    Workload(
        name="spark-stream",
        title="Spark: stream {small_files:,} small commits, a hundred files a batch",
        table="trickle",
        ours="deltalog_spark_stream",
        others=("delta_spark_stream",),
        why="measured apart, three times, the first stream of a session takes 8.5 to 9.5 s and the "
        "second 4.3 to 4.6 (Delta Spark's 6.2 to 6.7 and 4.1 to 4.4): for the first, Spark starts "
        "four Python processes, one after the other, to make the source, to follow it, to pickle "
        "its reader and to run it, each of which imports PySpark from a zip archive without "
        "bytecode (0.6 s) and 0.2 s of deltalog. A later batch takes 0.3 s of both: of deltalog's, "
        "writing Spark's own logs takes 0.07, planning 0.03, and the job of two tasks 0.1 to 0.15, "
        "of which each reads its 50 files in 0.05 and looks for new modules in that archive for "
        "another 0.05 (`importlib.invalidate_caches`, by which PySpark begins every task)",
    ),
)
