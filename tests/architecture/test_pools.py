"""Nothing in deltalog waits for a thread of Arrow's pools.

Arrow calls the generators of datasets in threads of its pools, which then wait for threads of ours.
If ours waited for Arrow's, enough scans at once would wait forever
(`tests/stateful/test_many_scans.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.source import Source

# By default these calls of pyarrow's use its threads; the argument makes the caller do the work.
SERIAL = {
    "read_row_groups": "use_threads",
    "read_row_group": "use_threads",
    "group_by": "use_threads",
    "read_json": "use_threads",
    "read_csv": "use_threads",
    "read_table": "use_threads",
    "ParquetFile": "pre_buffer",
}
# Methods of a table that run as a plan of Arrow's, in its threads, if they get an expression.
PLANS = {"filter", "join", "join_asof"}
# A user's own thread asks for these, and no thread of Arrow's ever waits for it.
DOORS = {
    ("data/scan/dataset.py", "join"): "of pyarrow's datasets, done by pyarrow",
    ("data/scan/dataset.py", "join_asof"): "as above",
}


def _calls(source: Source) -> Iterator[tuple[str, ast.Call, str]]:
    for name, node in source.find(ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            yield name, node, function.attr
        elif isinstance(function, ast.Name):
            yield name, node, function.id


def _is_of_pyarrow(name: str, call: ast.Call, attribute: str) -> bool:
    """Whether a name that others have, too, is pyarrow's here."""
    if attribute == "ParquetFile":  # of a data file to convert, elsewhere
        return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "pq"
    if attribute in {"group_by", "read_table"}:
        return not name.startswith(("sharing/client", "testing/conformance"))
    return True


def _turns_off(call: ast.Call, option: str) -> bool:
    return any(
        keyword.arg == option
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value is False
        for node in ast.walk(call)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    )


def test_calls_that_would_use_threads_of_arrow_are_told_not_to(source: Source) -> None:
    wrong = [
        f"{name}:{call.lineno} {attribute} without {SERIAL[attribute]}=False"
        for name, call, attribute in _calls(source)
        if attribute in SERIAL
        and _is_of_pyarrow(name, call, attribute)
        and not _turns_off(call, SERIAL[attribute])
    ]
    assert not wrong


def test_tables_are_filtered_by_masks_instead_of_expressions(source: Source) -> None:
    wrong = [
        f"{name}:{call.lineno} {attribute}({ast.unparse(argument)})"
        for name, call, attribute in _calls(source)
        if attribute in PLANS and (name, attribute) not in DOORS
        for argument in call.args
        if any(
            isinstance(part, ast.Attribute)
            and part.attr in {"field", "scalar"}
            and ast.unparse(part.value) in {"pc", "ds", "pyarrow.compute"}
            for part in ast.walk(argument)
        )
    ]
    assert not wrong


def test_only_one_file_lets_arrow_decode_parquet(source: Source) -> None:
    """And another small files of which everything is in memory."""
    found = {
        name
        for name, call, attribute in _calls(source)
        if attribute in {"read_row_groups", "read_row_group"}
        or (attribute == "iter_batches" and _turns_off(call, "use_threads"))
        or (attribute == "ParquetFile" and _is_of_pyarrow(name, call, attribute))
    }
    assert found == {"storage/parquet/parts.py", "storage/parquet/excerpt.py"}


def test_batches_of_arrows_reader_are_streamed_in_one_place(source: Source) -> None:
    found = {
        file
        for file, call, attribute in _calls(source)
        if attribute == "iter_batches" and isinstance(call.func, ast.Attribute)
        if ast.unparse(call.func.value) in {"reader", "file.reader", "self._file.reader"}
        and not file.startswith(("log/checkpoints/", "iceberg/"))  # a `ParquetReader` of ours
    }
    assert found == {"storage/parquet/parts.py"}
