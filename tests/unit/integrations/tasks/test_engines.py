"""Arguments of engines are checked when they are constructed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable
from deltalog.errors import InvalidInputError

dask = pytest.importorskip("deltalog.dask", reason="dask is not installed")


@pytest.mark.parametrize("client", [5, object(), "tcp://127.0.0.1:9", "threads", True])
def test_clients_of_dask(client: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"DaskEngine with client=.* a client of dask\.dis"):
        dask.DaskEngine(client)


def test_an_address_of_dask_becomes_a_client() -> None:
    with pytest.raises(
        InvalidInputError, match=r"as distributed\.Client\('tcp://127\.0\.0\.1:9'\)$"
    ):
        dask.DaskEngine("tcp://127.0.0.1:9")
    assert repr(dask.DaskEngine()) == "DaskEngine()"


def test_engines_of_a_table(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, {"id": "long"})
    for wrong in (5, "dask", dask.DaskEngine, object()):
        given: Any = wrong
        with pytest.raises(
            InvalidInputError, match=r"expected an engine, such as .*DaskEngine\(\)"
        ):
            DeltaTable(tmp_path, engine=given)


def test_rows_come_first(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"rows come first: deltalog\.dask\.write\(rows, 'g'"
    ):
        dask.write("g", {"id": [1]})
    table = DeltaTable.create(tmp_path, {"id": "long"})
    with pytest.raises(InvalidInputError, match=r"rows come first: .*write\(rows, table\)$"):
        dask.write(table, {"id": [1]})


def test_arguments_of_ray() -> None:
    ray = pytest.importorskip("deltalog.ray", reason="ray is not installed")
    with pytest.raises(
        TypeError, match=r"^RayEngine\(\) takes no .*, found 1; write the names: num"
    ):
        ray.RayEngine(5)
    with pytest.raises(InvalidInputError, match="RayEngine with ray_remote_args=5"):
        ray.RayEngine(ray_remote_args=5)
