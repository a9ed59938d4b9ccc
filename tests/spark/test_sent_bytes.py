"""How many bytes are sent to the tasks of a cluster; the session is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer

from deltalog import DeltaTable
from deltalog._util.json import dumps
from deltalog.log.context import utc_context
from deltalog.operations.changes.bins import BinRewrite, Rewritten
from deltalog.operations.engine import LocalEngine
from deltalog.spark.engine.engine import BinSpec
from deltalog.storage import open_store

FILES_PER_PARTITION = 8
SERIALIZER: Any = CloudPickleSerializer()


class JobSeenError(Exception):
    """Ends an OPTIMIZE before it rewrites files."""


class SeeingEngine(LocalEngine):
    """Notes the job of an OPTIMIZE."""

    job: BinRewrite | None = None

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        self.job = job
        raise JobSeenError


def spec_of(path: Path, num_partitions: int, optimize: Any) -> BinSpec:
    """The input of the tasks that optimize a table whose files are only in the log."""
    fields: list[Any] = [
        {"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("p", "id")
    ]
    schema = dumps({"type": "struct", "fields": fields}).decode()
    actions: list[Any] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": ["p"], "configuration": {},
        }},
    ]  # fmt: skip
    for number in range(num_partitions * FILES_PER_PARTITION):
        partition = number // FILES_PER_PARTITION
        actions.append({"add": {
            "path": f"p={partition}/part-{number:05d}-0123456789abcdef.snappy.parquet",
            "partitionValues": {"p": str(partition)}, "size": 1000, "modificationTime": 1,
            "dataChange": True, "stats": '{"numRecords":10}',
        }})  # fmt: skip
    (path / "_delta_log").mkdir(parents=True)
    log = path / "_delta_log" / f"{0:020}.json"
    log.write_bytes(b"\n".join(map(dumps, actions)))
    engine = SeeingEngine()
    table = DeltaTable.from_context(utc_context(open_store(str(path))), engine)
    with pytest.raises(JobSeenError):
        optimize(table)
    assert engine.job is not None
    assert len(engine.job.bins) == num_partitions
    return BinSpec.of(engine.job)


@pytest.mark.parametrize(
    "optimize",
    [lambda table: table.optimize.compact(), lambda table: table.optimize.z_order(["id"])],
    ids=["compact", "z-order"],
)
def test_an_optimize_sends_less_than_200_bytes_per_file(tmp_path: Path, optimize: Any) -> None:
    sizes = {
        number: len(SERIALIZER.dumps(spec_of(tmp_path / str(number), number, optimize)))
        for number in (100, 400)
    }
    more_files = 300 * FILES_PER_PARTITION
    assert (sizes[400] - sizes[100]) / more_files < 200
    assert sizes[100] < 200 * 100 * FILES_PER_PARTITION + 100_000


def test_a_task_finds_its_own_bin(tmp_path: Path) -> None:
    spec = spec_of(tmp_path / "table", 3, lambda table: table.optimize.compact())
    again: BinSpec = SERIALIZER.loads(SERIALIZER.dumps(spec))
    partitions = [
        again.bin(number).files.column("partitionValues").to_pylist() for number in range(3)
    ]
    assert sorted(partitions) == [[[("p", str(p))]] * FILES_PER_PARTITION for p in range(3)]
