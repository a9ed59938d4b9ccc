"""Comments end where Spark's do."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_sql, to_sql
from deltalog.expressions.spark_tokens import without_comments

TEXTS = [
    ("id = 1 -- x \\\n OR true", "id = 1"),
    ("id = 1 /* /* */ OR true -- */", "id = 1"),
    ("id /*+ a */ = /* ' */ 1 -- '", "id = 1"),
    ("v = '-- x' AND `a--b` = 'it''s /* ' -- y", "v = '-- x' AND `a--b` = 'it\\'s /* '"),
    ("v = r'\\' -- y'", "v = '\\\\'"),
    ('v = "/*" OR v = "*/"', "v = '/*' OR v = '*/'"),
    ("1 - -1 = 2", "1 - -1 = 2"),
]


@pytest.mark.parametrize(("text", "meant"), TEXTS)
def test_comments_mean_nothing(text: str, meant: str) -> None:
    assert to_sql(parse_sql(text)) == meant


@pytest.mark.parametrize("text", [text for text, _ in TEXTS])
def test_nothing_changes_its_place(text: str) -> None:
    plain = without_comments(text)
    assert len(plain) == len(text)
    assert all(new in (old, " ") for new, old in zip(plain, text, strict=True))


def test_a_comment_that_is_not_closed_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="character 8"):
        parse_sql("id = 1 /* /* */")
