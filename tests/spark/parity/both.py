"""Each statement of a test, done on Spark as well and compared.

The test itself runs as it always does, on its own store and by the core. Before a statement the
files of the store are copied; the copy is changed by Spark, the store by the core, and then both
must be the same table, or both must have refused the statement alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog.data.write.source import is_rereadable, open_batches
from deltalog.errors import DeltaError
from deltalog.log.context import utc_context
from deltalog.log.listing import has_table
from deltalog.log.snapshot import load_snapshot
from deltalog.storage import open_store
from deltalog.storage.store import Store
from tests.spark.parity.differences import may_say
from tests.spark.parity.same import Before, differences
from tests.spark.parity.twin import Numbers, Twin

T = TypeVar("T")


@dataclass
class Both:
    """Does statements twice.

    Args:
        spark: the session.
        scratch: where copies of tables go.
        case: the test function's name, by which differences are listed.

    Attributes:
        compared: how many statements have been done by both.
    """

    spark: SparkSession
    scratch: Path
    case: str
    compared: int = 0
    _is_inside: bool = field(default=False, init=False)

    def do(
        self,
        store: Store,
        on_core: Callable[[], T],
        on_spark: Callable[[Twin], Numbers],
        *,
        app: tuple[str, int] | None = None,
        apart_from: Collection[str] = (),
        gives_numbers: bool = True,
        numbers: Callable[[T], Numbers] = lambda _: {},
    ) -> T:
        """Do a statement on both, and compare.

        Args:
            store: of the table.
            on_core: the statement as the test asks for it.
            on_spark: the same on the copy.
            app: makes it happen once.
            apart_from: facts that Spark's statement cannot bring about.
            gives_numbers: whether it makes new rows.
            numbers: what the core's answer counts, by the names of Spark's.
        """
        if self._is_inside:  # Spark's statements are made of the core's
            return on_core()
        self._is_inside = True
        try:
            path = self.scratch / f"{self.compared}"
            twin = _copied(store, path)
            before = replace(Before.of(twin), gives_numbers=gives_numbers)
            counted, refused = _tried(lambda: on_spark(Twin(self.spark, path, app)))
            try:
                done = on_core()
            except DeltaError as error:
                self._compare_refusals(error, refused, twin, before)
                raise
            assert refused is None, f"the core does this, and Spark refuses: {refused!r}"
            wrong = differences(store, twin, before, apart_from)
            ours = numbers(done)
            wrong += [
                f"{name}: {ours[name]} on the core, {count} on Spark"
                for name, count in (counted or {}).items()
                if name in ours and ours[name] != count
            ]
            assert not wrong, "the tables differ:\n" + "\n".join(wrong)
            self.compared += 1
            return done
        finally:
            self._is_inside = False

    def _compare_refusals(
        self, error: DeltaError, refused: Exception | None, twin: Store, before: Before
    ) -> None:
        told = f"the core says {error!r}, and Spark "
        assert refused is not None, told + "does it"
        assert may_say(refused, error, self.case), (
            f"{told} says {type(refused).__name__}: {refused}"
        )
        now = load_snapshot(utc_context(twin)).version if has_table(twin) else None
        assert now == before.version, f"Spark refused, and made version {now}"
        self.compared += 1


def read_rows(data: object) -> tuple[pa.Table, Callable[[], object]]:
    """Rows, and a way to have them again as the test gave them.

    What can be read only once is read here, and its stand-in can be read only once as well.
    """
    table = open_batches(data).read_all()
    if is_rereadable(data):
        return table, lambda: data
    return table, lambda: iter(table.to_batches())


def _copied(store: Store, path: Path) -> Store:
    for info in store.list_all(""):
        target = path / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.read(info.path))
    return open_store(str(path))


def _tried(statement: Callable[[], Numbers]) -> tuple[Numbers | None, Exception | None]:
    try:
        return statement(), None
    except (DeltaError, PySparkException) as error:
        return None, error
