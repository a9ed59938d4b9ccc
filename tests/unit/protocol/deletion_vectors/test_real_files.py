from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from deltalog.protocol.actions.model import DeletionVectorDescriptor
from deltalog.protocol.deletion_vectors import (
    DeletionBitmap,
    encode_file,
    inline_descriptor,
    location,
    parse_file,
    parse_inline,
)

FOLDERS = [
    Path(os.environ[name])
    for name in ("DELTALOG_CORPUS", "DELTALOG_REFERENCE")
    if os.environ.get(name)
]


def descriptors_of(commit: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in commit.read_text(encoding="utf-8").splitlines():
        if '"deletionVector"' not in line or not line.startswith("{"):
            continue
        try:
            action = json.loads(line)
        except ValueError:
            continue
        for kind in ("add", "remove"):
            vector = (action.get(kind) or {}).get("deletionVector")
            if vector:
                found.append(vector)
    return found


@pytest.mark.corpus
@pytest.mark.protocol("DV-03", "DV-08", "DV-12", "DV-20")
@pytest.mark.skipif(not FOLDERS, reason="DELTALOG_CORPUS and DELTALOG_REFERENCE are not set")
def test_vectors_of_other_writers_are_read_and_written_alike() -> None:
    from uuid import uuid4

    read = 0
    for folder in FOLDERS:
        for commit in folder.glob("*/*/_delta_log/*.json"):
            for raw in descriptors_of(commit):
                told = DeletionVectorDescriptor(
                    storage_type=raw["storageType"],
                    path_or_inline_dv=raw["pathOrInlineDv"],
                    offset=raw.get("offset"),
                    size_bytes=raw["sizeInBytes"],
                    cardinality=raw["cardinality"],
                )
                bitmap = load(commit.parent.parent, told)
                if bitmap is None:
                    continue
                read += 1
                assert parse_inline(inline_descriptor(bitmap)) == bitmap
                file = encode_file([bitmap], uuid4())
                assert parse_file(file.data, file.descriptors[0]) == bitmap
    assert read > 100


def load(table: Path, told: DeletionVectorDescriptor) -> DeletionBitmap | None:
    """The vector; None if its file was vacuumed or belongs to a table elsewhere."""
    path = location(told)
    if path is None:
        return parse_inline(told)
    file = table / path
    return parse_file(file.read_bytes(), told) if file.is_file() else None
