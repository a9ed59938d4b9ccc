"""Check the pages of data files against their headers and checksums.

Protocol: Data Files; Apache Parquet's `parquet.thrift` (PageHeader)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.errors import DataFileMissingError, DeltaError
from deltalog.insight.doctor.patient import decoded
from deltalog.insight.doctor.report import Finding, Severity
from deltalog.paths import canonical_path, is_absolute
from deltalog.storage.byte_sources import FetchedBytes, LocalBytes
from deltalog.storage.parquet import open_parquet
from deltalog.storage.parquet_groups import read_stored
from deltalog.storage.parquet_page_headers import check_pages
from deltalog.storage.parquet_parts import guarded
from deltalog.storage.store import native_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.insight.doctor.patient import Patient
    from deltalog.storage.store import Store


def check_stored_pages(patient: Patient) -> Iterator[Finding]:
    """Check the pages of some files; those of other tables, as of a shallow clone, are passed."""
    files = patient.sample(patient.snapshot.files(["path", "size"]))
    sizes: list[Any] = files.column("size").to_pylist()
    for path, size in zip(decoded(files.column("path")), sizes, strict=True):
        own = canonical_path(path, patient.store.root)
        if is_absolute(own):
            continue
        try:
            _check(patient.store, own, size)
        except DataFileMissingError:
            continue  # `paths` tells
        except DeltaError as error:
            yield Finding(
                check="pages",
                severity=Severity.ERROR,
                message=f"{path}: {error}",
                advice="its bytes are not those that were written: restore it from a backup",
                path=path,
            )


def _check(store: Store, path: str, size_bytes: int | None) -> None:
    """Check all pages of a file; encrypted ones are passed.

    Raises:
        DeltaError: a page is damaged, or the file cannot be read.
    """
    reader = open_parquet(store, path, size_bytes=size_bytes)
    try:
        footer = guarded(store, path, reader.stored_footer)
        size = store.stat(path).size_bytes if size_bytes is None else size_bytes
        stored = read_stored(footer, size)
        native = native_path(store, path)
        for group in () if stored is None else stored.groups:
            source: LocalBytes | FetchedBytes = (
                FetchedBytes(reader.fetch(group.ranges(size)), size)
                if native is None
                else LocalBytes(native)
            )
            try:
                check_pages(group, () if stored is None else stored.schema, source)
            finally:
                source.close()
    finally:
        reader.close()
