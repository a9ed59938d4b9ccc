"""The subjects: one function for each library and operation, with the library's best method.

A subject prepares the call (its imports, and an open table if the workload requires it) and returns
it. Only the call is measured. It returns its result, which must be the same for all subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.keyed import KEYED
from benchmarks.processes import PROCESSES
from benchmarks.sharers import SHARERS
from benchmarks.sparkers import SPARKERS
from benchmarks.writers import WRITERS

Call = Callable[[], object]


def deltalog_open(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    return lambda: DeltaTable(path).version()


def deltalake_open(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    return lambda: DeltaTable(path).version()


def deltalog_plan(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable, col

    return lambda: len(list(DeltaTable(path).scan(predicate=col("id") == needle).tasks()))


def deltalake_plan(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    return lambda: len(DeltaTable(path).file_uris(file_pruning_predicate=[("id", "=", needle)]))


def deltalog_plan_mixed(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable, col

    return lambda: len(list(DeltaTable(path).scan(predicate=col("mixed") == needle).tasks()))


def deltalake_plan_mixed(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    asked = [("mixed", "=", needle)]
    return lambda: len(DeltaTable(path).file_uris(file_pruning_predicate=asked))


def deltalog_schema(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    return lambda: len(DeltaTable(path).schema().fields)


def deltalake_schema(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    return lambda: len(DeltaTable(path).schema().fields)


def deltalog_count_files(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    return lambda: len(DeltaTable(path).file_uris())


def deltalake_count_files(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    return lambda: len(DeltaTable(path).file_uris())


def deltalog_read(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    return lambda: DeltaTable(path).scan().to_table().num_rows


deltalog_read_vectors = deltalog_read


def deltalog_stream(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable

    del needle
    return lambda: sum(batch.num_rows for batch in DeltaTable(path).scan())


def deltalake_read(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable

    del needle
    return lambda: DeltaTable(path).to_pyarrow_table().num_rows


def deltalake_query(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable, QueryBuilder

    del needle

    def call() -> object:
        query = QueryBuilder().register("t", DeltaTable(path)).execute("select * from t")
        return sum(batch.num_rows for batch in query)

    return call


def pyarrow_read(path: Path, needle: int) -> Call:
    import pyarrow.dataset as ds

    del needle
    files = sorted(str(file) for file in path.glob("*.parquet"))
    return lambda: ds.dataset(files).to_table().num_rows


def deltalog_lookup(path: Path, needle: int) -> Call:
    from deltalog import DeltaTable, col

    table = DeltaTable(path)
    return lambda: table.scan(predicate=col("id") == needle).to_table().num_rows


def deltalake_lookup(path: Path, needle: int) -> Call:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    dataset = DeltaTable(path).to_pyarrow_dataset()
    return lambda: dataset.to_table(filter=pc.field("id") == needle).num_rows


def deltalake_lookup_query(path: Path, needle: int) -> Call:
    from deltalake import DeltaTable, QueryBuilder

    builder = QueryBuilder().register("t", DeltaTable(path))

    def call() -> object:
        query = builder.execute(f"select * from t where id = {needle}")  # noqa: S608  # a number
        return sum(batch.num_rows for batch in query)

    return call


WARMED = frozenset({"deltalog_lookup", "deltalake_lookup", "deltalake_lookup_query"})
SUBJECTS: Mapping[str, Callable[[Path, int], Call]] = {
    function.__name__: function
    for function in (
        deltalog_open,
        deltalake_open,
        deltalog_plan,
        deltalake_plan,
        deltalog_plan_mixed,
        deltalake_plan_mixed,
        deltalog_schema,
        deltalake_schema,
        deltalog_count_files,
        deltalake_count_files,
        deltalog_read,
        deltalog_stream,
        deltalake_read,
        deltalake_query,
        pyarrow_read,
        deltalog_lookup,
        deltalake_lookup,
        deltalake_lookup_query,
    )
} | {
    "deltalog_read_vectors": deltalog_read_vectors,
    **PROCESSES,
    **WRITERS,
    **KEYED,
    **SHARERS,
    **SPARKERS,
}
