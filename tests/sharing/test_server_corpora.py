"""The official client, unmodified, on the tables of other writers: the digests of `check.py`."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable
from deltalog.sharing.server import app
from tests.support.asgi import serving
from tests.support.corpora import Entry, covering, load_entries, readable_entries
from tests.support.sharing import config_of, write_profile

delta_sharing = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),  # the client's
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # it leaves
    pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning"),  # directories
]

# What the client itself, or pandas, cannot do: the server's answer is right.
NO_FEATURE = "the client knows neither type widening nor variants"
TO_FLOAT = "pandas makes floats of numbers beside NULL, and nothing of NaN"
LIMITS = {
    "delta-golden/type-widening": NO_FEATURE,
    "delta-kernel-rs/type-widening": NO_FEATURE,
    "delta-spark/variant-stats-nested-no-checkpoint": NO_FEATURE,
    "delta-spark/variant-stats-no-checkpoint": NO_FEATURE,
    "duckdb-delta/variant-basic": NO_FEATURE,
    "gen-duckdb/append_variant": NO_FEATURE,
    "spark-reference/tw-automatic-merge-schema": NO_FEATURE,
    "spark-reference/tw-decimals": NO_FEATURE,
    "spark-reference/tw-dv-cdf": NO_FEATURE,
    "spark-reference/tw-integers-classic-checkpoint": NO_FEATURE,
    "spark-reference/tw-nested-column-mapping": NO_FEATURE,
    "spark-reference/tw-partition-columns": NO_FEATURE,
    "spark-reference/types-variant": NO_FEATURE,
    "spark-reference/types-variant-shredded": NO_FEATURE,
    "gen-deltalake/extremes": TO_FLOAT,
    "gen-deltalake/partition_all_types": TO_FLOAT,
    "spark-reference/cp-partition-values-parsed": TO_FLOAT,
    "spark-reference/stats-strings-nulls-nan": TO_FLOAT,
    "spark-reference/types-primitives": TO_FLOAT,
    "spark-reference/cdf-type-and-partition-mix": TO_FLOAT,
    "spark-reference/types-legacy-calendar": "the client does not rebase old calendars",
    "spark-reference/defaults-char-varchar": "the client does not pad CHAR columns",
    "spark-reference/types-void-nested": "the client does not know the type void",
    "dat/multi_partitioned": "the client does not partition by binary columns",
    "levi/multi_partitioned": "the client does not partition by binary columns",
    "dask-deltatable/empty": "the client cannot show a table without a file in the format delta",
    "dremio/emptyDataFilesNoStatsParsed": "as above",
    "spark-reference/cm-cdf-rename": "the client shows the names of the range's last version",
}
LIMITS_OF_OLD_VERSIONS = {
    "spark-reference/tw-feature-dropped": NO_FEATURE,
    "spark-reference/generated-date-partition": "the client reads INT96 times in nanoseconds",
}
PARQUET_ONLY = {"dat/multi_partitioned", "levi/multi_partitioned"}
DELTA_ONLY = {"dask-deltatable/empty", "dremio/emptyDataFilesNoStatsParsed"}


def _changes() -> list[tuple[Entry, dict[str, Any]]]:
    return [
        (entry, case)
        for entry in load_entries("DELTALOG_REFERENCE")
        if entry.id not in LIMITS
        for case in entry.facts["expected"].get("cdf", [])
        if case["outcome"] == "rows"
    ]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    entries = {entry.id: entry for entry in readable_entries()}
    entries |= {entry.id: entry for entry, _ in [*_changes(), *_old_versions()]}
    tables = {
        _name(entry): {"location": str(entry.path), "historyShared": True}
        for entry in entries.values()
    }
    path = tmp_path_factory.mktemp("corpora") / "profile.share"
    with serving(app(config_of(tables, deltaTableCacheSize=50))) as url:
        yield str(write_profile(path, f"{url}/delta-sharing"))


def _name(entry: Entry) -> str:
    return f"s.d.{re.sub('[^a-zA-Z0-9_-]', '-', entry.id)}"  # the client does not escape names


def _digest(entry: Entry) -> Callable[[pa.Table], str]:
    spec = importlib.util.spec_from_file_location("digest", entry.root / "digest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[pa.Table], str] = module.digest
    return found


def _as_arrow(frame: Any, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False)


def _schema(entry: Entry, version: int | None = None) -> pa.Schema:
    schema: pa.Schema = DeltaTable(entry.path, version=version).schema().to_arrow()
    return schema


def _silently(load: Callable[[], Any]) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):  # the client prints
        return load()


def _fits(entry: Entry, *others: str) -> bool:
    return entry.id not in LIMITS or entry.id in others


_COVERING = set(covering(readable_entries()))
_SHOWN = [
    entry
    for entry in readable_entries()
    if entry in _COVERING or entry.id in PARQUET_ONLY | DELTA_ONLY
]
CASES = [
    *((entry, None) for entry in _SHOWN if _fits(entry, *DELTA_ONLY)),
    *((entry, True) for entry in _SHOWN if _fits(entry, *PARQUET_ONLY)),
]


@pytest.mark.parametrize(("entry", "use_delta_format"), CASES, ids=str)
def test_the_latest_version(profile: str, entry: Entry, use_delta_format: bool | None) -> None:
    frame = _silently(
        lambda: delta_sharing.load_as_pandas(
            f"{profile}#{_name(entry)}", use_delta_format=use_delta_format
        )
    )
    found = _digest(entry)(_as_arrow(frame, _schema(entry)))
    assert found == entry.expected("latest")["digest"]


REFUSED = [entry for entry in readable_entries() if LIMITS.get(entry.id) == NO_FEATURE]


@pytest.mark.protocol("SHARE-CAP-09")
@pytest.mark.parametrize("entry", REFUSED, ids=str)
def test_features_that_the_client_does_not_know(profile: str, entry: Entry) -> None:
    with pytest.raises(OSError, match="Unsupported Delta Table Properties"):
        delta_sharing.load_as_pandas(f"{profile}#{_name(entry)}")


def _old_versions() -> list[tuple[Entry, int]]:
    """The oldest version with rows of each table that has a newer one."""
    found = []
    for entry in filter(_fits, load_entries("DELTALOG_REFERENCE")):
        if entry.id in LIMITS_OF_OLD_VERSIONS:
            continue
        versions = sorted(map(int, entry.facts["expected"]["versions"]))[:-1]
        cases = {version: entry.expected(f"v{version}") for version in versions}
        with_rows = [
            version
            for version, case in cases.items()
            if case["outcome"] == "rows" and case["num_rows"]
        ]
        found += [(entry, version) for version in with_rows[:1]]
    return found


@pytest.mark.protocol("SHARE-QT-10")
@pytest.mark.parametrize(("entry", "version"), _old_versions(), ids=str)
def test_an_old_version(profile: str, entry: Entry, version: int) -> None:
    expected = entry.expected(f"v{version}")
    frame = _silently(
        lambda: delta_sharing.load_as_pandas(
            f"{profile}#{_name(entry)}", version=version, use_delta_format=True
        )
    )
    assert _digest(entry)(_as_arrow(frame, _schema(entry, version))) == expected["digest"]


@pytest.mark.protocol("SHARE-CDF-05", "SHARE-DLT-06")
@pytest.mark.parametrize(("entry", "case"), _changes(), ids=str)
def test_changes(profile: str, entry: Entry, case: dict[str, Any]) -> None:
    frame = _silently(
        lambda: delta_sharing.load_table_changes_as_pandas(
            f"{profile}#{_name(entry)}",
            starting_version=case["start"],
            ending_version=case["end"],
            use_delta_format=True,
        )
    )
    more = [pa.field("_change_type", pa.string()), pa.field("_commit_version", pa.int64())]
    assert _digest(entry)(_as_arrow(frame, pa.schema([*_schema(entry), *more]))) == case["digest"]
