from __future__ import annotations

from deltalog.schema import metadata_columns
from deltalog.schema.metadata_columns import CHANGE_COLUMNS, METADATA_COLUMNS


def test_the_names_are_sparks() -> None:
    assert list(METADATA_COLUMNS) == [
        f"_metadata.{name}"
        for name in (
            *("file_path", "file_name", "file_size", "file_modification_time"),
            *("row_index", "row_id", "row_commit_version"),
        )
    ]
    assert list(CHANGE_COLUMNS) == ["_change_type", "_commit_version", "_commit_timestamp"]


def test_every_name_is_used_by_a_scan() -> None:
    names = {
        text
        for name, text in vars(metadata_columns).items()
        if name.isupper() and isinstance(text, str) and text != "_metadata"
    }
    # The number of a file exists only while rows are changed; nobody can ask for it.
    assert names == {*METADATA_COLUMNS, *CHANGE_COLUMNS, metadata_columns.FILE_NUMBER}
    assert set(METADATA_COLUMNS) > metadata_columns.ROW_TRACKING
