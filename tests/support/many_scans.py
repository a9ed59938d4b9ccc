"""Many scans at once, in a process of its own whose pools have few threads.

Run as `python -m tests.support.many_scans SCENARIO THREADS DIRECTORY`. Whoever hangs is ended with
the stacks of all threads.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

ROWS = 300_000
FILES = 3


def shrink_pools(threads: int) -> None:
    """Give every pool of the process this many threads; before anything uses them."""
    from deltalog.storage import pool

    for name in ("_REQUESTS", "_SENDERS", "_FILES", "_DECODERS"):
        setattr(pool, name, pool._Threads(f"deltalog{name.lower()}", threads))
    pool.CORES = max(2, threads)  # type: ignore[misc]  # so that work is divided
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(threads)


def rows() -> pa.Table:
    """The rows of all tables here: a key, ten groups, texts and numbers."""
    numbers = pa.array(range(ROWS), pa.int64())
    return pa.table(
        {
            "k": numbers,
            "g": pc.subtract(numbers, pc.multiply(pc.divide(numbers, 10), 10)),
            "a": pc.divide(pc.cast(numbers, pa.float64()), 7.0),
            "c": pc.cast(numbers, pa.string()),
        }
    )


def make(where: str, **options: Any) -> str:
    """A table of several files, each with two large row groups; some rows are deleted."""
    from deltalog import DeltaTable, WriterProperties, write_deltalake

    data, step = rows(), ROWS // FILES
    for start in range(0, ROWS, step):
        write_deltalake(
            where,
            data.slice(start, step),
            mode="append",
            configuration={"delta.enableDeletionVectors": "true"},
            writer_properties=WriterProperties(max_row_group_size=step // 2 + 1),
            **options,
        )
    DeltaTable(where).delete("k % 1000 = 999")
    return where


LEFT = ROWS - ROWS // 1000


def dataset(where: str) -> ds.Dataset:
    from deltalog import DeltaTable

    return DeltaTable(where).to_pyarrow_dataset()


def subselects(table: str = "t") -> str:
    """Thirty scans in one statement; the sum is of all rows, three times."""
    parts = [
        f"(SELECT count(*) FROM {table} WHERE g = {group} AND a >= {low} AND length(c) > 0)"
        for group in range(10)
        for low in (0, -1, -2)
    ]
    return "SELECT " + " + ".join(parts) + " AS n"


def in_threads(act: Callable[[int], Any], number: int) -> list[Any]:
    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(act, range(number)))


def duckdb_subselects(where: str) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.register("t", dataset(where))
    assert connection.sql(subselects()).fetchall() == [(3 * LEFT,)]


def duckdb_joins(where: str) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.register("t", dataset(where))
    joined = " ".join(f"JOIN t AS t{number} USING (k)" for number in range(12))
    found = connection.sql(f"SELECT count(*), sum(t3.a) > 0 FROM t {joined} WHERE t5.g < 5")
    assert found.fetchall() == [(ROWS // 2, True)]


def duckdb_unions(where: str) -> None:
    import duckdb

    union = " UNION ALL ".join("SELECT a, c FROM t" for _ in range(20))

    def ask(_: int) -> Any:
        connection = duckdb.connect()
        connection.register("t", dataset(where))
        return connection.sql(f"SELECT count(*), count(c) FROM ({union})").fetchall()

    assert in_threads(ask, 8) == [[(20 * LEFT, 20 * LEFT)]] * 8


def statements(where: str) -> None:
    import deltalog

    def ask(_: int) -> Any:
        return deltalog.sql(subselects(), t=where).to_pylist()

    assert ask(0) == [{"n": 3 * LEFT}]
    assert in_threads(ask, 4) == [[{"n": 3 * LEFT}]] * 4


def results_as_sources(where: str) -> None:
    import deltalog

    names = [f"r{number}" for number in range(12)]
    union = " UNION ALL ".join(f"SELECT k FROM {name}" for name in names)

    def result() -> Any:
        return deltalog.sql("SELECT k, upper(c) AS c FROM t WHERE a >= 0", t=where)

    sources = {name: result() for name in names}
    found = deltalog.sql(f"SELECT count(*) AS n FROM ({union})", **sources)
    assert found.to_pylist() == [{"n": 12 * LEFT}]


def nested_datasets(where: str) -> None:
    import deltalog

    whole = dataset(where)
    halves = [whole.filter(pc.field("g") < 5), whole.filter(pc.field("g") >= 5)]
    names = [f"d{number}" for number in range(16)]
    union = " UNION ALL ".join(f"SELECT c FROM {name}" for name in names)
    sources: dict[str, Any] = {name: halves[number % 2] for number, name in enumerate(names)}
    found = deltalog.sql(f"SELECT count(c) AS n FROM ({union})", **sources)
    assert found.to_pylist() == [{"n": 8 * LEFT}]


def polars_frames(where: str) -> None:
    import polars as pl

    from deltalog import DeltaTable

    frames = [
        pl.scan_pyarrow_dataset(dataset(where)).filter(pl.col("g") == number % 10)
        for number in range(20)
    ]
    assert sum(frame.height for frame in pl.collect_all(frames)) == 2 * LEFT
    lazy = [
        DeltaTable(where).to_polars(lazy=True).filter(pl.col("g") == number % 10)
        for number in range(20)
    ]
    assert sum(frame.height for frame in pl.collect_all(lazy)) == 2 * LEFT
    keys = [frame.select("k") for frame in lazy[3::10] * 4]
    joined = functools.reduce(lambda left, right: left.join(right, on="k"), keys)
    assert joined.collect(engine="streaming").height == ROWS // 10
    found = in_threads(lambda number: lazy[number % 5].collect().height, 20)
    assert found == [ROWS // 10] * 20


def tables_in_threads(where: str) -> None:
    from deltalog import DeltaTable

    table, kinds = DeltaTable(where), 6

    def read(number: int) -> int:
        kind = number % kinds
        if kind == 0:
            return table.to_pyarrow_table().num_rows
        if kind == 1:
            return dataset(where).to_table(columns=["c"], filter=pc.field("a") >= 0).num_rows
        if kind == 2:
            return len(table.to_pandas(columns=["k", "c"]))
        if kind == 3:
            return sum(batch.num_rows for batch in dataset(where).to_batches(columns=["a"]))
        if kind == 4:
            return dataset(where).count_rows(filter=pc.field("k") >= 0)
        return table.scan(["c"], "a >= 0").to_table().num_rows

    assert in_threads(read, 64) == [LEFT] * 64


def writes_from_own_dataset(where: str) -> None:
    from deltalog import DeltaTable, write_deltalake

    write_deltalake(where, dataset(where), mode="append")
    assert DeltaTable(where).count() == 2 * LEFT
    write_deltalake(where, dataset(where).filter(pc.field("g") < 5), mode="overwrite")
    assert DeltaTable(where).count() == ROWS

    def copy(number: int) -> int:
        target = f"{where}-copy-{number}"
        source = dataset(where).scanner(columns=["k", "g", "c"]).to_reader()
        write_deltalake(target, source, partition_by=["g"], target_file_size=100_000)
        return DeltaTable(target).count()

    assert in_threads(copy, 8) == [ROWS] * 8


def merges_from_dataset(where: str) -> None:
    from deltalog import DeltaTable

    def merge(number: int) -> Any:
        source = dataset(where).filter((pc.field("g") == number) & (pc.field("a") >= 0))
        return (
            DeltaTable(where)
            .merge(source, "s.k = t.k AND s.c = t.c", source_alias="s", target_alias="t")
            .when_matched_update({"a": "s.a + 1"})
            .when_not_matched_insert_all()
            .execute()["num_target_rows_updated"]
        )

    assert merge(0) == ROWS // 10
    for_others = in_threads(lambda _: dataset(where).to_table().num_rows, 8)
    assert for_others == [LEFT] * 8


def maintenance_beside_scans(where: str) -> None:
    from deltalog import DeltaTable

    over = threading.Event()

    def scan(_: int) -> int:
        count = 0
        while True:
            assert dataset(where).to_table(columns=["c"]).num_rows == LEFT
            count += 1
            if over.is_set():
                return count

    with ThreadPoolExecutor(12) as threads:
        scans = [threads.submit(scan, number) for number in range(12)]
        try:
            table = DeltaTable(where)
            table.optimize.compact()
            table.optimize.z_order(["g"])
            table.create_checkpoint()
            table.update(updates={"a": "a + 1"}, predicate="g = 3")
        finally:
            over.set()
        assert all(one.result() for one in scans)


def in_memory_store(where: str) -> None:
    from deltalog import DeltaTable

    location = make(f"memory://{Path(where).name}-remote")
    duckdb_subselects(location)
    statements(location)
    tables_in_threads(location)
    table = DeltaTable(location)
    table.optimize.compact()
    assert table.count() == LEFT


def large_scans(where: str) -> None:
    """Scans that Polars reads as if they were large, beside queries of Polars and in them."""
    import polars as pl

    from deltalog import DeltaTable
    from deltalog.data.scan import polars_rows

    for name in ("LEAST_BYTES", "_LEAST_BYTES_WITH_IMPORT", "_LEAST_FILE_BYTES"):
        setattr(polars_rows, name, 0)
    table = DeltaTable(where)
    begun = [table.scan().to_batches() for _ in range(20)]
    assert all(next(one).num_rows for one in begun)
    tables_in_threads(where)
    statements(where)
    polars_frames(where)

    def count(rows: pl.DataFrame) -> pl.DataFrame:
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(lambda: table.scan(["c"]).to_table().num_rows).result()
        return rows.with_columns(n=pl.lit(found, dtype=pl.Int64))

    def ask(number: int) -> Any:
        if number % 2:
            return table.to_pyarrow_table().num_rows
        kinds: Any = {"k": pl.Int64, "n": pl.Int64}
        frame = pl.LazyFrame({"k": range(200_000), "n": 0}, schema=kinds)
        asked = frame.map_batches(count, streamable=True).collect(engine="streaming")
        return asked["n"].unique().item()

    assert in_threads(ask, 8) == [LEFT] * 8
    for one in begun:
        assert sum(batch.num_rows for batch in one) < LEFT


@contextmanager
def arrow_pools_taken() -> Iterator[None]:
    """Let every thread of Arrow's two pools wait until the block ends."""
    go_on = threading.Event()
    taken = threading.Semaphore(0)
    schema = pa.schema([("x", pa.int64())])

    def waiting_batches() -> Iterator[pa.RecordBatch]:
        taken.release()
        go_on.wait()
        yield pa.record_batch({"x": [1]})

    def wait_in_kernel(_: Any, values: Any) -> Any:
        taken.release()
        go_on.wait()
        return values

    pc.register_scalar_function(
        wait_in_kernel, "wait_in_kernel", {"summary": "", "description": ""}, {"x": pa.int64()},
        pa.int64(),
    )  # fmt: skip
    expression: Any = pc.Expression
    call = expression._call("wait_in_kernel", [pc.field("x")])

    def hold_io() -> None:
        ds.Scanner.from_batches(waiting_batches(), schema=schema, use_threads=False).to_table()

    def hold_cpu() -> None:
        pa.table({"x": [1, 2]}).filter(call == 1)

    number = pa.io_thread_count()
    threads = [threading.Thread(target=hold_io, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    for _ in range(number):
        taken.acquire()
    cpus = [threading.Thread(target=hold_cpu, daemon=True) for _ in range(pa.cpu_count())]
    for thread in cpus:
        thread.start()
    for _ in cpus:
        taken.acquire()
    try:
        yield
    finally:
        go_on.set()
        for thread in (*threads, *cpus):
            thread.join()


def without_arrow_pools(where: str) -> None:
    """Everything that deltalog does by itself, while no thread of Arrow's can begin anything."""
    from deltalog import DeltaTable, convert_to_deltalake, write_deltalake

    copy = f"{where}-more"
    with arrow_pools_taken():
        table = DeltaTable(where)
        assert table.to_pyarrow_table().num_rows == LEFT
        assert table.scan(["c"], "a >= 0 AND g = 3").to_table().num_rows == ROWS // 10
        assert sum(batch.num_rows for batch in table.scan().to_reader()) == LEFT
        assert table.to_pyarrow_table(filters=[("k", "in", list(range(500)))]).num_rows == 500
        assert table.head(10).num_rows == 10
        table.update(updates={"a": "a + 1"}, predicate="g = 3")
        changes = {"delta.enableChangeDataFeed": "true"}
        for start in (0, 1000):
            write_deltalake(
                copy,
                rows().slice(start, 1000),
                mode="append",
                partition_by=["g"],
                configuration=changes,
            )
        other = DeltaTable(copy)
        other.delete("k = 5")
        other.merge(
            rows().slice(500, 1000), "s.k = t.k", source_alias="s", target_alias="t"
        ).when_matched_update_all().when_not_matched_insert_all().execute()
        assert other.load_cdf(starting_version=0).read_all().num_rows > 0
        other.optimize.compact()
        other.optimize.z_order(["k"])
        other.create_checkpoint()
        assert other.get_add_actions(flatten=True).num_rows == 10
        assert other.history()
        other.restore(1)
        assert str(other.diff(0))
        other.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        assert other.doctor().is_healthy
        other.generate()
        table.optimize.compact()
        table.create_checkpoint()
        plain = f"{where}-plain"
        Path(plain).mkdir()
        import pyarrow.parquet as pq

        pq.write_table(rows(), f"{plain}/a.parquet")
        convert_to_deltalake(plain)
        assert DeltaTable(plain).count() == ROWS


SCENARIOS: dict[str, Callable[[str], None]] = {
    act.__name__: act
    for act in (
        duckdb_subselects,
        duckdb_joins,
        duckdb_unions,
        statements,
        results_as_sources,
        nested_datasets,
        polars_frames,
        large_scans,
        tables_in_threads,
        writes_from_own_dataset,
        merges_from_dataset,
        maintenance_beside_scans,
        in_memory_store,
        without_arrow_pools,
    )
}


def main(arguments: Sequence[str]) -> None:
    from deltalog.testing.simulation.workers import ended_when_stalled

    name, threads, directory = arguments
    shrink_pools(int(threads))
    with ended_when_stalled(float(os.environ.get("STALLED_AFTER_S", "60"))):
        SCENARIOS[name](make(f"{directory}/{name}"))
    sys.stdout.write("answered\n")


if __name__ == "__main__":
    main(sys.argv[1:])
