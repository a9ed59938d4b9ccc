"""The workloads: tables, operations and goals, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The sizes of the tables."""

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
    """One operation on one table, for several subjects.

    Args:
        name: short, unique.
        title: one line for the report.
        table: name of the table in `benchmarks.tables`.
        ours: function of `benchmarks.subjects`.
        others: functions of other libraries with the same result; the fastest is compared.
        goal: minimum ratio of the time of the others to that of deltalog.
        memory_goal: maximum ratio of deltalog's memory to that of the others, or None.
        most_seconds: the maximum time, instead of `goal`, if there is no other library.
        most_bytes: maximum memory, regardless of the others.
        limits: maximum values of numbers in deltalog's result.
        scale: factor for the size's number of rows.
        same_answer: whether all subjects must return the same result.
        other_table: the table of the others, if not `table`: they cannot write deletion vectors.
        why: the reason why the goal is not reached.
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
    limits: tuple[tuple[str, float], ...] = ()
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
        title="open it, and plan a scan of `id = x`",
        table="checkpointed",
        ours="deltalog_plan",
        others=("deltalake_plan",),
        goal=4,
        why=(
            "pyarrow parses the statistics, a million JSON strings of 155 MB, although only two "
            "values of each are needed: 0.67 s of 1.1 s of processor time in one thread. A "
            "regular expression takes as long, and pyarrow.csv three quarters of it. Decoding the "
            "column takes 0.19 s. A checkpoint with statistics as structs needs none of this"
        ),
    ),
    Workload(
        name="commits",
        title="open {commits:,} JSON commits, and count the files",
        table="commits",
        ours="deltalog_count_files",
        others=("deltalake_count_files",),
        goal=4,
        why=(
            "listing and reading 5,000 files takes 0.04 s of 0.25 s of processor time, and "
            "parsing 18 MB takes 0.1 s, of which the two cores share only a part. The rest is "
            "Python code per file"
        ),
    ),
    Workload(
        name="import",
        title=("`from deltalog import DeltaTable`: processor time in addition to `import pyarrow`"),
        table="small_files",
        ours="deltalog_import",
        most_seconds=0.15,
    ),
    Workload(
        name="first-write",
        title="start a process that writes three rows to a new table",
        table="small_files",
        ours="deltalog_first_write",
        most_seconds=0.5,
        why=(
            "in a separate measurement of nine turns the process takes 0.46 to 0.53 s (median "
            "0.47), and a process that only creates the three rows with pyarrow takes 0.34 to "
            "0.39 s (median 0.36), because pyarrow imports NumPy, and pandas for Python values. "
            "The modules of deltalog add 0.1 s, and the write 0.01 s"
        ),
    ),
    Workload(
        name="scan",
        title="read {rows:,} rows, compared with pyarrow on the same files",
        table="rows",
        ours="deltalog_read",
        others=("pyarrow_read",),
        goal=0.95,
        why=(
            "both take 0.57 s of processor time in user mode. Both take 0.33 to 0.37 s if the "
            "machine has free memory. Otherwise both take 0.8 s, of which the kernel spends about "
            "40 % clearing 0.5 GB (`clear_page_erms`)"
        ),
    ),
    Workload(
        name="scan-peer",
        title="read {rows:,} rows batch by batch",
        table="rows",
        ours="deltalog_stream",
        others=("deltalake_query",),
        goal=1,
        why=(
            "Polars reads the files if it is installed. Both take 0.25 s of processor time on two "
            "cores, pyarrow 0.43 s. deltalake returns views of strings; making strings of them "
            "takes 0.036 s, and 18,000 more page faults 0.02 s. This is the first scan of a "
            "process, which also parses the footers for the plan in 3 ms: later scans take 0.13 s, "
            "those of deltalake 0.16 s. Runs of 5 turns differ between 0.94 and 1.06 times"
        ),
    ),
    Workload(
        name="vectors",
        title=(
            "read {rows:,} rows with a deletion vector on every file, compared with deltalog "
            "without vectors"
        ),
        table="vectors",
        ours="deltalog_read_vectors",
        others=("deltalog_read",),
        goal=0.9,
        same_answer=False,
        other_table="rows",
        why=(
            "each column is copied without the deleted rows. Of the additional 0.11 s of "
            "processor time, Arrow's filter and copies take 0.09 s, Python 0.015 s, and the "
            "vectors 0.002 s. Slices instead of a filter are slower if they are joined (3.5 ms "
            "per file instead of 3.0), and result in 500 batches per file if not"
        ),
    ),
    Workload(
        name="lookup",
        title="find one row by its id (warm)",
        table="rows",
        ours="deltalog_lookup",
        others=("deltalake_lookup", "deltalake_lookup_query"),
        goal=2,
        why=(
            "deltalake needs 8.1 million instructions (Valgrind), so the goal would leave 4.0. "
            "Python needs 4.4, and Arrow needed 5.9 before pages of numbers were decoded without "
            "its reader; strings still need it"
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
        title=(
            "append {rows:,} rows, compared with pyarrow writing one Parquet file without "
            "statistics"
        ),
        table="rows",
        ours="deltalog_append",
        others=("pyarrow_write",),
        goal=1 / 1.1,
    ),
    Workload(
        name="partitioned",
        title="append {rows:,} rows to 100 partitions",
        table="rows",
        ours="deltalog_partitioned",
        others=("deltalake_partitioned",),
        goal=1,
        why=(
            "of 2.2 s of processor time, pyarrow takes 0.8 s to separate the rows of each "
            "partition and 0.75 s to encode them. Waiting for 340 files and directories takes 0.4 "
            "s; deltalake does not wait"
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
            "each commit waits for the disk; deltalake does not wait. Creating its two files takes "
            "at least 0.3 ms. The rest is 15 million instructions, mostly in Python, of which the "
            "data file and the checkpoint of every tenth commit take a third each"
        ),
    ),
    Workload(
        name="unsynced-commits",
        title="1,000 commits of one row, without `fsync` (as deltalake)",
        table="rows",
        ours="deltalog_small_commits_unsynced",
        others=("deltalake_small_commits",),
        goal=1,
    ),
    Workload(
        name="path-commits",
        title="1,000 commits of one row with `write_deltalake(path, …)`",
        table="rows",
        ours="deltalog_path_commits",
        others=("deltalake_path_commits",),
        goal=5,
        why=(
            "the goal would leave 7 to 8 ms. Creating three files takes 0.7 ms on this disk, and "
            "waiting for it 1.3 ms; deltalake does not wait (see the next row). deltalog needs "
            "14.5 million instructions (Valgrind), 9.2 of them in Python, and deltalake 48.6"
        ),
    ),
    Workload(
        name="path-commits-unsynced",
        title="1,000 commits of one row with `write_deltalake(path, …)`, without `fsync`",
        table="rows",
        ours="deltalog_path_commits_unsynced",
        others=("deltalake_path_commits",),
        goal=1,
    ),
    Workload(
        name="appender",
        title="1,000 rows by 16 threads with `appender`, compared with 1,000 commits",
        table="rows",
        ours="deltalog_appender",
        others=("deltalake_small_commits",),
        goal=20,
        same_answer=False,  # ours are rows and versions
    ),
    Workload(
        name="fsync",
        title="1,000 commits of one row with `fsync`, compared with deltalog without",
        table="rows",
        ours="deltalog_small_commits",
        others=("deltalog_small_commits_unsynced",),
        goal=0.25,
        why="the disk must write each file and each name before the next commit starts",
    ),
    Workload(
        name="checkpoint",
        title="open a table of {files:,} files, and write a checkpoint",
        table="checkpointed",
        ours="deltalog_checkpoint",
        others=("deltalake_checkpoint",),
        goal=2,
        memory_goal=0.5,
        why=(
            "deltalog also writes statistics as structs, for which it parses a million JSON "
            "strings. This takes more than half of the time (0.8 s without). deltalake does not "
            "write them"
        ),
    ),
    Workload(
        name="iceberg",
        title="open a table of {files:,} files, append a row, and write Iceberg metadata",
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
        title="delete 0.1 % of {rows:,} rows by rewriting two files",
        table="rows",
        ours="deltalog_delete",
        others=("deltalake_delete",),
        goal=3,
        why=(
            "a pyarrow program that is given the rows to copy takes 50 ms in a new process, 28 ms "
            "of them without waiting for the disk; deltalake does not wait (see the next row). "
            "Finding the rows takes 13 ms, reading the two footers 8 ms, and the commit 5 ms. This "
            "is more than the goal allows. Besides, pyarrow writes no page checksums, so deltalog "
            "decodes the columns that it copies, to spread no damaged pages: 60 ms of processor "
            "time. Files of deltalog have checksums"
        ),
    ),
    Workload(
        name="delete-rewrite-unsynced",
        title=(
            "delete 0.1 % of {rows:,} rows by rewriting two files, without `fsync` (as deltalake)"
        ),
        table="rows",
        ours="deltalog_delete_unsynced",
        others=("deltalake_delete",),
        goal=1,
    ),
    Workload(
        name="update",
        title="update 0.1 % of {rows:,} rows, in two files, with deletion vectors",
        table="maskable",
        ours="deltalog_update",
        others=("deltalake_update",),
        goal=5,
        other_table="rows",
        why=(
            "of 25 ms of processor time, Python takes half, for planning, page headers and the "
            "commit. pyarrow takes the other half to decode a page of each column of two files "
            "and to encode the new rows. deltalake takes 160 ms"
        ),
    ),
    Workload(
        name="merge",
        title="merge 200,000 rows into {rows:,}, with half of them spread over all files",
        table="maskable",
        ours="deltalog_merge",
        others=("deltalake_merge",),
        goal=3,
        other_table="rows",
    ),
    Workload(
        name="merge-near",
        title="merge 200,000 rows into {rows:,}, with half of them in one file",
        table="maskable",
        ours="deltalog_merge_near",
        others=("deltalake_merge_near",),
        goal=5,
        other_table="rows",
        why="the cause was not examined",
    ),
    Workload(
        name="merge-rewrite",
        title=(
            "merge 200,000 rows into {rows:,} by rewriting files, with half of them spread over "
            "all files"
        ),
        table="rows",
        ours="deltalog_merge",
        others=("deltalake_merge",),
        goal=3,
        why=(
            "each row group contains a changed row, so all rows are decoded and encoded. This "
            "takes pyarrow 3.0 s of processor time in one thread, as long as the whole merge (2.9 "
            "s), and deltalake takes 4.4 s. If row groups do not change (next row), deltalog "
            "copies their bytes"
        ),
    ),
    Workload(
        name="merge-near-rewrite",
        title=(
            "merge 200,000 rows into {rows:,} by rewriting files, with half of them in one file"
        ),
        table="rows",
        ours="deltalog_merge_near",
        others=("deltalake_merge_near",),
        goal=3,
    ),
    Workload(
        name="merge-large",
        title="merge 200,000 rows into ten times {rows:,}, with less than 2 GB",
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
        title=(
            "merge 100 ranges into {rows:,} rows (a condition without equality), with less than 2 "
            "GB"
        ),
        table="maskable",
        ours="deltalog_merge_ranges",
        others=("deltalake_merge_ranges",),
        other_table="rows",
        most_bytes=2_000_000_000,
    ),
    Workload(
        name="key-lookup",
        title="key index: find one row by its id (warm); the ids are in no order",
        table="keyed",
        ours="deltalog_lookup",
        others=("deltalake_lookup", "deltalake_lookup_query"),
        goal=3,
        other_table="keyed_plain",
    ),
    Workload(
        name="key-merge",
        title="key index: merge 1,000 rows, spread over all files, into ten times {rows:,}",
        table="keyed_large",
        ours="deltalog_key_merge",
        others=("deltalake_key_merge",),
        goal=30,
        scale=10,
        other_table="keyed_large_plain",
        why=(
            "the keys are in 1,000 pages of 200 files, which are read to compare them. In a warm "
            "process, that takes 0.24 to 0.29 s of processor time, nearly all of it in Python, so "
            "a second core hardly helps"
        ),
    ),
    Workload(
        name="key-merge-one",
        title="key index: merge one row into ten times {rows:,}",
        table="keyed_large",
        ours="deltalog_key_merge_one",
        others=("deltalake_key_merge_one",),
        goal=30,
        scale=10,
        other_table="keyed_large_plain",
    ),
    Workload(
        name="key-merge-spark",
        title="key index: the same 1,000 rows, compared with Delta Spark",
        table="keyed_large",
        ours="deltalog_key_merge",
        others=("delta_spark_key_merge",),
        goal=30,
        scale=10,
        same_answer=False,
    ),
    Workload(
        name="key-upserts",
        title="key index: 1,000 single rows by 16 threads with `appender(upsert=…)`",
        table="keyed",
        ours="deltalog_key_upserts",
        most_seconds=5,
    ),
    Workload(
        name="key-build",
        title="key index: index {rows:,} rows",
        table="keyed",
        ours="deltalog_key_build",
        most_seconds=2,
        limits=(("bytes per row", 20),),
    ),
    Workload(
        name="key-huge-lookup",
        title="key index: find one row by its id (warm) in a hundred times {rows:,}",
        table="keyed_huge",
        ours="deltalog_lookup",
        most_seconds=0.01,
        scale=100,
    ),
    Workload(
        name="key-huge-open",
        title="key index: open a table of a hundred times {rows:,} rows, and find one by its id",
        table="keyed_huge",
        ours="deltalog_open_lookup",
        most_seconds=1,
        most_bytes=64_000_000,
        scale=100,
    ),
    Workload(
        name="key-append",
        title="key index: append a file of its rows, compared with an append without the index",
        table="keyed",
        ours="deltalog_key_append",
        others=("deltalog_key_append_without",),
        goal=0.77,
        why=(
            "for 500,000 rows, hashing takes 3 ms, sorting 11 ms, and encoding, writing and "
            "syncing 4 MB about 10 ms; the rest is the import of four modules. A million rows take "
            "1.24 times as long as without the index in a warm process"
        ),
    ),
    Workload(
        name="wide-open",
        title="open a table of 2,000 columns, and read its schema",
        table="wide",
        ours="deltalog_schema",
        others=("deltalake_schema",),
        why="deltalog creates 2,000 Python objects",
    ),
    Workload(
        name="wide-scan",
        title="read 10,000 rows of 2,000 columns",
        table="wide",
        ours="deltalog_read",
        others=("deltalake_read", "deltalake_query"),
        why=(
            "pyarrow's dataset takes 0.86 to 1.24 s to decode 40,000 chunks of 8 KB (five runs), "
            "of which the footers of the 20 files take 0.16 to 0.24 s"
        ),
    ),
    Workload(
        name="wide-append",
        title="append 1,000 rows of 2,000 columns",
        table="wide",
        ours="deltalog_append_wide",
        others=("deltalake_append_wide",),
    ),
    Workload(
        name="compact",
        title="compact {small_files:,} small files with a tenth of {rows:,} rows",
        table="small_files",
        ours="deltalog_compact",
        others=("deltalake_compact",),
        goal=1.5,
        why=(
            "a program without a table that opens the files one by one, decodes them in two "
            "threads, encodes their rows in another thread and waits for the disk takes 0.20 to "
            "0.21 s. Planning adds 0.02 s, statistics 0.03 s and the commit 0.01 s, which is all "
            "that the goal leaves. pyarrow's own way takes longer than deltalog (next row)"
        ),
    ),
    Workload(
        name="compact-parquet",
        title=(
            "compact {small_files:,} small files, compared with pyarrow reading them and writing "
            "their rows"
        ),
        table="small_files",
        ours="deltalog_compact",
        others=("pyarrow_compact",),
        goal=1 / 1.1,
        same_answer=False,
    ),
    Workload(
        name="z-order",
        title="Z-order {rows:,} rows by two columns",
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
            "the system takes 0.25 s of 0.44 s of processor time to delete 100,000 files, with "
            "one thread or several"
        ),
    ),
    Workload(
        name="share-load",
        title="load a shared table of {rows:,} rows in {shared_files:,} files into pandas",
        table="shared",
        ours="deltalog_share_load",
        others=("official_share_load",),
        goal=3,
        why="the cause was not examined; server and client share two cores",
    ),
    Workload(
        name="share-column",
        title="load one column of a shared table of {rows:,} rows",
        table="shared",
        ours="deltalog_share_column",
        others=("official_share_column",),
        goal=5,
    ),
    Workload(
        name="share-point",
        title="find one row of a shared table by its id, with predicate hints",
        table="shared",
        ours="deltalog_share_point",
        others=("official_share_point",),
        goal=5,
        why=(
            "of 44 to 52 ms, the server's first query takes 14 to 18 ms (6 for the first "
            "statistics that the process parses), sending the file 5 ms, and creating the data "
            "frame 4 ms. The rest is planning and decoding. Server and client share two cores"
        ),
    ),
    Workload(
        name="share-first-line",
        title=(
            "the first line of a fresh sharing server's response, for a table of {many_files:,} "
            "files"
        ),
        table="many",
        ours="deltalog_serve_first_line",
        most_seconds=0.5,
    ),
    Workload(
        name="share-lines",
        title="all {many_files:,} lines of the response, at 50,000 per second",
        table="many",
        ours="deltalog_serve_lines",
        most_seconds=2,
        why="the limit is absolute, and depends on the machine",
    ),
    Workload(
        name="spark-read",
        title="Spark: read all columns of {rows:,} rows, compared with Spark's Parquet reader",
        table="rows",
        ours="deltalog_spark_read",
        others=("native_spark_read",),
        goal=1 / 1.2,
    ),
    Workload(
        name="spark-read-delta",
        title="Spark: read all columns of {rows:,} rows",
        table="rows",
        ours="deltalog_spark_read",
        others=("delta_spark_read",),
    ),
    Workload(
        name="spark-column",
        title="Spark: read one column, compared with Spark's Parquet reader",
        table="rows",
        ours="deltalog_spark_column",
        others=("native_spark_column",),
        goal=1 / 1.2,
    ),
    Workload(
        name="spark-column-delta",
        title="Spark: read one column",
        table="rows",
        ours="deltalog_spark_column",
        others=("delta_spark_column",),
    ),
    Workload(
        name="spark-vectors",
        title=(
            "Spark: read all columns with deletion vectors on every file, compared with Parquet "
            "without vectors"
        ),
        table="vectors",
        ours="deltalog_spark_read",
        others=("native_spark_read",),
        goal=0.8,
        same_answer=False,
        why=(
            "in a warm session, vectors add 0.6 s to 1.52 s. The row number and the length of the "
            "file, which Spark provides for every row, take 0.27 s. Joining with 10,000 deleted "
            "positions and planning take the rest"
        ),
    ),
    Workload(
        name="spark-vectors-delta",
        title="Spark: read all columns with deletion vectors on every file",
        table="vectors",
        ours="deltalog_spark_read",
        others=("delta_spark_read",),
        goal=1 / 0.9,
    ),
    Workload(
        name="spark-read-format-count",
        title=(
            "Spark: count three times {rows:,} rows with `spark.read.format`, compared with "
            "`deltalog.spark.read`"
        ),
        table="thrice",
        ours="deltalog_spark_format_count",
        others=("deltalog_spark_count",),
        goal=1 / 1.15,
        scale=3,
    ),
    Workload(
        name="spark-read-format-column",
        title=(
            "Spark: sum one column with `spark.read.format`, compared with `deltalog.spark.read`"
        ),
        table="thrice",
        ours="deltalog_spark_format_column",
        others=("deltalog_spark_column",),
        goal=1 / 1.15,
        scale=3,
    ),
    Workload(
        name="spark-read-format-point",
        title=(
            "Spark: find one row by its id with `spark.read.format`, compared with "
            "`deltalog.spark.read`"
        ),
        table="thrice",
        ours="deltalog_spark_format_point",
        others=("deltalog_spark_point",),
        goal=1 / 1.15,
        scale=3,
    ),
    Workload(
        name="spark-feed",
        title="Spark: read the change feed of three times {rows:,} rows",
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
        title="Spark: append three times {rows:,} rows with `deltalog.spark.write`",
        table="thrice",
        ours="deltalog_spark_append",
        others=("delta_spark_append",),
        scale=3,
    ),
    Workload(
        name="spark-append-format",
        title=(
            "Spark: append three times {rows:,} rows with `deltalog.spark.write`, compared with "
            '`df.write.format("deltalog")`'
        ),
        table="thrice",
        ours="deltalog_spark_append",
        others=("deltalog_spark_append_by_format",),
        scale=3,
        why=(
            "both call the same function with the same options. Five more turns half an hour "
            "later took 12.6 and 12.5 s"
        ),
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
        title=(
            "Spark: stream {small_files:,} small commits, 100 files per batch, first stream of a "
            "session"
        ),
        table="trickle",
        ours="deltalog_spark_stream",
        others=("delta_spark_stream",),
        why=(
            "for the first stream of a session Spark "
            "starts four Python processes, one after the other: to create the source, to plan the "
            "stream, to pickle its reader and to run the tasks. Each imports PySpark from a zip "
            "archive without bytecode (0.6 s) and deltalog (0.2 s). A later batch takes both 0.3 "
            "s: of deltalog's, Spark's own logs take 0.07 s, planning 0.03 s, and the job of two "
            "tasks 0.1 to 0.15 s"
        ),
    ),
)
