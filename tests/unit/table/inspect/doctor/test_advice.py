"""Following the doctor's advice solves the problem: each call that an advice names is made."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake, write_files
from deltalog._util.json import dumps, iter_objects, loads
from deltalog.table.inspect.doctor import Finding, Severity
from tests.support.logs import Json

_CALL: Final = re.compile(r"(?:\w+\.)?\w+\((?:[^()]|\([^()]*\))*\)")
_DAY_S: Final = 86_400
VECTORS: Final = {"delta.enableDeletionVectors": "true"}


def _log(path: Path, name: str) -> Path:
    return path / "_delta_log" / name


def _commit(path: Path, version: int) -> Path:
    return _log(path, f"{version:020}.json")


def _rewrite(path: Path, version: int, change: Callable[[Json], Json | None]) -> None:
    """Change the lines of a commit, and remove its version checksum."""
    file = _commit(path, version)
    lines = [change(line) for line in iter_objects(file.read_bytes())]
    file.write_bytes(b"".join(dumps(line) + b"\n" for line in lines if line is not None))
    file.with_suffix(".crc").unlink(missing_ok=True)


def _make(path: Path, properties: dict[str, str] | None = None, **columns: Any) -> None:
    rows = pa.table({"id": [1, 2, 3], "f": [0.5, None, 2.5], **columns})
    write_deltalake(path, rows, configuration=properties)
    write_deltalake(path, rows, mode="append")


def _age(file: Path, days: int) -> None:
    then = time.time() - days * _DAY_S
    os.utime(file, (then, then))


def _protocol(change: Callable[[Json], None]) -> Callable[[Json], Json]:
    def changed(line: Json) -> Json:
        if "protocol" in line:
            change(line["protocol"])
        return line

    return changed


def _property(key: str, value: str) -> Callable[[Json], Json]:
    def changed(line: Json) -> Json:
        if "metaData" in line:
            line["metaData"]["configuration"][key] = value
        return line

    return changed


def _add(change: Callable[[Json], None]) -> Callable[[Json], Json]:
    def changed(line: Json) -> Json:
        if "add" in line:
            change(line["add"])
        return line

    return changed


# --- tables with one problem each


def long_log(path: Path) -> None:
    _make(path)
    for version in range(2, 104):
        _commit(path, version).write_bytes(dumps({"commitInfo": {"timestamp": version}}) + b"\n")


def expired_log(path: Path) -> None:
    _make(path)
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, pa.table({"id": [9], "f": [1.0]}), mode="append")
    for file in _log(path, "").iterdir():
        _age(file, 40)


def missing_hint(path: Path) -> None:
    _make(path)
    DeltaTable(path).create_checkpoint()
    _log(path, "_last_checkpoint").unlink()


def damaged_checkpoint(path: Path) -> None:
    _make(path)
    DeltaTable(path).create_checkpoint()
    file = _log(path, f"{1:020}.checkpoint.parquet")
    file.write_bytes(file.read_bytes()[:-9])


def empty_checkpoint(path: Path) -> None:
    _make(path)
    DeltaTable(path).create_checkpoint()
    _log(path, f"{1:020}.checkpoint.parquet").write_bytes(b"")


def damaged_compaction(path: Path) -> None:
    _make(path)
    DeltaTable(path).compact_logs(0, 1)
    file = _log(path, f"{0:020}.{1:020}.compacted.json")
    file.write_bytes(file.read_bytes()[:-9])


def damaged_checksum(path: Path) -> None:
    _make(path)
    _log(path, f"{1:020}.crc").write_bytes(b"{")


def missing_file(path: Path) -> None:
    _make(path)
    next(path.glob("*.parquet")).unlink()


def orphan(path: Path) -> None:
    _make(path)
    stray = path / "stray.parquet"
    stray.write_bytes(b"1234")
    _age(stray, 30)


def temporary_file(path: Path) -> None:
    _make(path)
    left = _log(path, f".{1:020}.json.0123456789abcdef0123456789abcdef.tmp")
    left.write_bytes(b"1234")
    _age(left, 30)


def vectors_without_feature(path: Path) -> None:
    _make(path, VECTORS)
    DeltaTable(path).delete("id = 1")

    def older(protocol: Json) -> None:
        protocol.clear()
        protocol.update(minReaderVersion=1, minWriterVersion=2)

    _rewrite(path, 0, _protocol(older))
    _rewrite(path, 0, _property("delta.enableDeletionVectors", "false"))


def vector_without_count(path: Path) -> None:
    _make(path, VECTORS)
    DeltaTable(path).delete("id = 1")
    _rewrite(path, 2, _add(lambda add: add.pop("stats")))


def vector_with_another_end(path: Path) -> None:
    _make(path, VECTORS)
    DeltaTable(path).delete("id = 1")
    _rewrite(path, 2, _add(lambda add: add["deletionVector"].update(maxRowIndex=2)))


def wrong_statistics(path: Path) -> None:
    _make(path)

    def wrong(add: Json) -> None:
        add["stats"] = dumps({**loads(add["stats"].encode()), "maxValues": {"id": 2}}).decode()

    _rewrite(path, 1, _add(wrong))


def misplaced_feature(path: Path) -> None:
    _make(path, VECTORS)
    _rewrite(path, 0, _protocol(lambda protocol: protocol.update(readerFeatures=[])))


def feature_without_another(path: Path) -> None:
    _make(path, VECTORS)

    def more(protocol: Json) -> None:
        protocol["writerFeatures"] = [*protocol["writerFeatures"], "rowTracking"]

    _rewrite(path, 0, _protocol(more))


def property_without_feature(path: Path) -> None:
    _make(path)
    _rewrite(path, 0, _property("delta.enableDeletionVectors", "true"))


def invalid_property(path: Path) -> None:
    _make(path)
    _rewrite(path, 0, _property("delta.checkpointInterval", "often"))


def unknown_property(path: Path) -> None:
    _make(path)
    _rewrite(path, 0, _property("delta.nope", "1"))


def property_in_another_case(path: Path) -> None:
    _make(path, {"delta.columnMapping.mode": "name"})
    _rewrite(path, 0, _property("delta.columnMapping.mode", "Name"))


def constraint_of_delta_rs(path: Path) -> None:
    _make(path)
    DeltaTable(path).alter.add_constraint({"c": "id > 0"})
    _rewrite(path, 2, _property("delta.constraints.c", '"id" > 0'))


def mapping_by_version(path: Path) -> None:
    _make(path, {"delta.columnMapping.mode": "name"})

    def older(protocol: Json) -> None:
        protocol.clear()
        protocol.update(minReaderVersion=2, minWriterVersion=5)

    _rewrite(path, 0, _protocol(older))


def damaged_branch(path: Path) -> None:
    _make(path)
    DeltaTable(path).branch("b")
    for file in _log(path, "_branches").glob("*/*"):
        file.unlink()


def old_branch(path: Path) -> None:
    _make(path)
    DeltaTable(path).branch("b")
    (record,) = _log(path, "_branches").glob("*.json")
    content = loads(record.read_bytes())
    content["createdTime"] -= 30 * _DAY_S * 1000
    record.write_bytes(dumps(content))


def _indexed(path: Path) -> None:
    _make(path)
    DeltaTable(path).alter.set_key_index(["id"])


def file_without_keys(path: Path) -> None:
    _indexed(path)
    DeltaTable(path).optimize.key_index()
    write_deltalake(path, pa.table({"id": [9], "f": [1.0]}), mode="append")


def many_small_files(path: Path) -> None:
    _make(path)
    rows = pa.table({"id": [9], "f": [1.0]})
    DeltaTable(path).commit([write_files(DeltaTable(path), rows) for _ in range(60)])


def damaged_pack(path: Path) -> None:
    _indexed(path)
    DeltaTable(path).optimize.key_index()
    (pack,) = _log(path, "_keys").glob("*/*.keys")
    pack.write_bytes(pack.read_bytes()[:-9])


PROBLEMS: Final = {
    long_log: "log-length",
    expired_log: "log-expired",
    missing_hint: "last-checkpoint",
    damaged_checkpoint: "checkpoint",
    empty_checkpoint: "checkpoint-incomplete",
    damaged_compaction: "compaction",
    damaged_checksum: "checksum",
    missing_file: "file-missing",
    orphan: "orphans",
    temporary_file: "temporary-files",
    vectors_without_feature: "deletion-vector",
    vector_without_count: "deletion-vector",
    vector_with_another_end: "deletion-vector",
    wrong_statistics: "statistics",
    misplaced_feature: "feature-misplaced",
    feature_without_another: "feature-needs",
    property_without_feature: "feature-unsupported",
    invalid_property: "property-value",
    unknown_property: "property-unknown",
    property_in_another_case: "property-spelling",
    constraint_of_delta_rs: "access",
    mapping_by_version: "access",
    damaged_branch: "branch",
    old_branch: "branch",
    file_without_keys: "keys",
    damaged_pack: "keys",
    many_small_files: "small-files",
}


def _found(path: Path, check: str) -> list[Finding]:
    found = DeltaTable(path).doctor().of(check)
    return [one for one in found if check != "access" or one.severity is Severity.WARNING]


def _follow(path: Path, finding: Finding) -> None:
    """Delete the file if the advice says so, and make the calls that it names."""
    assert finding.advice is not None
    calls = _CALL.findall(finding.advice)
    if "delete it" in finding.advice or "delete the file" in finding.advice:
        assert finding.path is not None
        (path / finding.path).unlink()
    else:
        assert calls, finding.advice
    for call in calls:
        eval(f"table.{call}", {"table": DeltaTable(path)})  # noqa: S307  # as its readers do


@pytest.mark.parametrize(
    ("break_it", "check"), PROBLEMS.items(), ids=[one.__name__ for one in PROBLEMS]
)
def test_advice_solves_the_problem(
    break_it: Callable[[Path], None], check: str, tmp_path: Path
) -> None:
    break_it(tmp_path)
    finding, *_ = _found(tmp_path, check)
    _follow(tmp_path, finding)
    assert not _found(tmp_path, check)
    assert {1, 2, 3} >= set(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) - {9}
