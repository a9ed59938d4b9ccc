"""The source uses the field's words: CONTRIBUTING.md has what to write instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).resolve().parents[2] / "src"
BANNED: Final = {
    "room": "package, or folder",
    "door": "entry point",
    "told": "stated, recorded, given",
    "mend": "repair",
    "carry out": "run",
}
"""Word → what to write instead. Of names, too: `_` ends a word."""
EXEMPT: Final = ("told_files_total",)
"""Names that others depend on: a metric of the sharing server."""
FORMS: Final = {
    "room": r"rooms?",
    "door": r"doors?",
    "told": r"told",
    "mend": r"mend(s|ed|ing)?",
    "carry out": r"carr(y|ies|ied|ying)[ _]out",
}


def _uses(word: str) -> list[str]:
    found = re.compile(rf"(?<![a-z]){FORMS[word]}(?![a-z])", re.IGNORECASE)
    return [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "moved.py"  # has the old names
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if found.search(line) and not any(name in line for name in EXEMPT)
    ]


@pytest.mark.parametrize("word", BANNED)
def test_the_source_has_no_words_of_its_own(word: str) -> None:
    assert _uses(word) == [], f"write {BANNED[word]}"


def test_each_word_is_looked_for_in_each_form() -> None:
    line = "carried out: a room behind the doors was mended, as _told"
    assert all(re.search(FORMS[word], line) for word in BANNED)
