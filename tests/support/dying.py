"""A store that ends the process that writes to it, once; and a driver that does so.

Run as a program it merges into a table, and dies where it would commit.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalog._util.paths import FileInfo
from deltalog.errors import StorageError
from deltalog.storage import open_store
from tests.support.reference_driver import QUICK


class DyingStore:
    """A local store; the first process that puts or deletes a file of some name there dies before.

    Args:
        place: of the table.
        flag: a file that says that it has happened.
        part: of the file's path.
    """

    def __init__(self, place: Path, flag: Path, part: str = ".parquet") -> None:
        self._given = (place, flag, part)
        self._flag = flag
        self._part = part
        self._store = open_store(place)

    def __reduce__(self) -> tuple[Any, ...]:
        return DyingStore, self._given

    @property
    def root(self) -> str:
        return self._store.root

    def stat(self, path: str) -> FileInfo:
        return self._store.stat(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._die(path)
        self._store.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._die(path)
        self._store.put(path, data)

    def delete_many(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._die(path)
        self._store.delete_many(paths)

    def __getattr__(self, name: str) -> Any:
        if name in {"native_path", "_store"}:  # Arrow is to write through this store
            raise AttributeError(name)
        return getattr(self._store, name)

    def _die(self, path: str) -> None:
        if self._part not in path:
            return
        try:
            self._flag.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class HeldStore(DyingStore):
    """A local store on which one data file is written at once, and all others wait or fail.

    Args:
        place: of the table.
        flags: an empty directory. The first writer makes `written` there; the others write when
            there is `go`, and fail when there is `fail`. `held-N` has the number of their process.
    """

    def __init__(self, place: Path, flags: Path) -> None:
        super().__init__(place, flags / "first")
        self._flags = flags

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldStore, (self._given[0], self._flags)

    def put_if_absent(self, path: str, data: bytes) -> None:
        is_first = self._hold(path)
        self._store.put_if_absent(path, data)
        self._tell(is_first)

    def put(self, path: str, data: bytes) -> None:
        is_first = self._hold(path)
        self._store.put(path, data)
        self._tell(is_first)

    def _hold(self, path: str) -> bool:
        if self._part not in path:
            return False
        try:
            self._flag.touch(exist_ok=False)
        except FileExistsError:
            (self._flags / f"held-{os.getpid()}").touch()
            for _ in range(600):
                if (self._flags / "fail").exists():
                    raise StorageError("the disk is full") from None
                if (self._flags / "go").exists():
                    break
                time.sleep(0.05)
            return False
        return True

    def _tell(self, is_first: bool) -> None:
        if is_first:
            (self._flags / "written").touch()


def main(place: str, flag: str) -> None:
    """Die between what tasks have written and the commit of it."""
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from deltalog.spark.streaming.sink import merge_batches

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")
        .config(map={**QUICK})
        .getOrCreate()
    )
    store: Any = DyingStore(Path(place), Path(flag), "_delta_log")
    merge_batches(store, "t.k = s.k", counting, app_id="counter")(batch(spark), 1)


def batch(spark: Any) -> Any:
    """What is merged."""
    return spark.sql("SELECT id AS k, 1L AS n FROM range(1, 4, 1, 2)")


def counting(merge: Any) -> Any:
    """How: each batch adds to the counters."""
    return merge.whenMatchedUpdate(set={"n": "t.n + s.n"}).whenNotMatchedInsertAll()


if __name__ == "__main__":
    main(*sys.argv[1:])
