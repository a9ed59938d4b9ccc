"""Where a query names tables and columns: the places are those of the names, whatever is around."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import SyntaxProblem
from deltalog.query.located import LocatedTable, located, places_of
from deltalog.query.names import QualifiedName
from deltalog.query.parse import read_query
from deltalog.query.translate import TableChangesCall, translated


def _name(one: LocatedTable) -> QualifiedName:
    return one.table.table if isinstance(one.table, TableChangesCall) else one.table


def _texts(sql: str) -> list[str]:
    """The text at the place of each table."""
    found = located(sql)
    return [found.text[one.start : one.end] for one in found.tables]


SPELT = [
    ("SELECT /*+ SHUFFLE_HASH(w) */ w.id FROM w JOIN m ON w.id = m.id", ["w", "m"]),
    ("SELECT /*+ BROADCAST(w), MERGE(m, x) COALESCE(3) */ 1 FROM w, m x", ["w", "m"]),
    ("SELECT /*+ BROADCAST(a.w) */ 1 FROM a.w", ["a.w"]),
    ("SELECT /*+ w /* m */ */ 1 FROM w", ["w"]),
    ("SELECT /*+ not parsed by ( anybody */ 1 FROM w", ["w"]),
    (
        "SELECT 1 FROM m WHERE id IN (SELECT /*+ BROADCAST(w) */ id FROM w)",
        ["m", "w"],
    ),
    ("WITH x AS (SELECT /*+ BROADCAST(w) */ * FROM w) SELECT /*+ MERGE(x) */ * FROM x", ["w"]),
    ("SELECT 1 FROM w UNION SELECT /*+ BROADCAST(m) */ 2 FROM m", ["w", "m"]),
    ("SELECT /* w */ 1 -- m\n FROM /* /* m */ w */ m -- w", ["m"]),
    ("SELECT 1 FROM w -- it goes on \\\n JOIN m", ["w"]),
    ("SELECT 'FROM m', \"w\", '/*', '--' FROM w -- '", ["w"]),
    ("SELECT 'it''s w', r'\\' FROM w", ["w"]),
    ("SELECT `m`.`a``b` FROM `m`", ["`m`"]),
    ("SELECT '😀', 'é', '\ud800'\tFROM\r\n\t`dé 😀`.m", ["`dé 😀`.m"]),
    ("SELECT 1 FROM a /* x */ . /*+ w */ m", ["a /* x */ . /*+ w */ m"]),
    ("SELECT 1 FROM 2024_x JOIN 1m ON true", ["2024_x", "1m"]),
    ("SELECT 1 FROM m VERSION AS OF 1 TABLESAMPLE (5 ROWS) REPEATABLE (3)", ["m VERSION AS OF 1"]),
    ("SELECT 1 FROM m WITH (`versionAsOf` = 1) x", ["m WITH (`versionAsOf` = 1)"]),
    ("SELECT 1 FROM w WITH ('a' 1, b.c = 'x)', d true)", ["w WITH ('a' 1, b.c = 'x)', d true)"]),
    ("SELECT 1 FROM table_changes('m', 1) JOIN m", ["table_changes('m', 1)", "m"]),
    ("TABLE /*+ w */ m", ["m"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "texts"), SPELT)
def test_places_are_those_of_the_names(sql: str, texts: list[str]) -> None:
    assert _texts(sql) == texts


@pytest.mark.parametrize("sql", [sql for sql, _ in SPELT if "'a' 1" not in sql])
def test_what_a_hint_names_is_no_table(sql: str) -> None:
    names = sorted(str(_name(one)) for one in located(sql).tables)
    read = translated(sql).tables.values()
    assert sorted(str(getattr(one, "table", one)) for one in read) == names


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        ("SELECT 1 FROM m TABLESAMPLE (5 ROWS) WHERE true", " WHERE true"),
        ("SELECT 1 FROM m VERSION AS OF 1 TABLESAMPLE (5 ROWS) REPEATABLE (3)", ""),
        ("SELECT 1 FROM m WITH (a = 1) TABLESAMPLE (100 PERCENT) -- x", " -- x"),
        ("SELECT 1 FROM m JOIN w", " JOIN w"),
    ],
)
def test_an_alias_goes_behind_a_sample(sql: str, after: str) -> None:
    found = located(sql)
    assert found.text[found.tables[0].sampled_end :] == after


def test_columns_behind_names_of_tables() -> None:
    found = located("SELECT a.b.*, c.a.b.d.e, x FROM a.b WHERE EXISTS (SELECT a.b.y FROM q)")
    told = [(one.parts, one.has_star, len(one.scopes)) for one in found.columns]
    assert told == [
        (("a", "b"), True, 2),
        (("c", "a", "b", "d"), False, 2),
        (("a", "b", "y"), False, 3),
    ]
    spans = [found.text[start:end] for one in found.columns for start, end in one.spans]
    assert spans == ["a", "b", "c", "a", "b", "d", "a", "b", "y"]


def test_options_say_a_version() -> None:
    (one,) = located("SELECT 1 FROM m WITH (versionAsOf '3', `x.y` = TRUE, z = -1.5)").tables
    assert one.table == QualifiedName(("m",), 3)
    assert one.options == {"x.y": "true", "z": "-1.5"}
    (one,) = located("SELECT 1 FROM m WITH (TIMESTAMPASOF = '2025-01-31')").tables
    assert one.table == QualifiedName(("m",), "2025-01-31")
    query = translated("SELECT 1 FROM m WITH (versionAsOf = 3)")
    assert list(query.tables.values()) == [QualifiedName(("m",), 3)]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT 1 FROM m VERSION AS OF 1 WITH (versionAsOf = 1)", "one version"),
        ("SELECT 1 FROM m WITH (versionAsOf = 1, timestampAsOf = 'x')", "one version"),
        ("SELECT 1 FROM m WITH (versionAsOf = 'x')", "the number of a version"),
        ("SELECT 1 FROM m WITH (a = 1, A = 2)", "'a' once"),
        ("SELECT 1 FROM m WITH (a = b)", "a constant"),
        ("SELECT 1 FROM m WITH (= 1)", "the name of an option"),
        ("SELECT 1 FROM m WITH (a = 1", "expected , or )"),
        ("SELECT 1 FROM (SELECT 1) WITH (a = 1)", "after a table's name"),
    ],
)
def test_options_that_are_none(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem.replace(")", r"\)")):
        located(sql)


def test_other_options_are_refused_here() -> None:
    with pytest.raises(InvalidInputError, match="found 'mergeschema'"):
        translated("SELECT 1 FROM m WITH (mergeSchema = true)")


@pytest.mark.parametrize("sql", ["SELECT moved FROM xm JOIN m", "SELECT 'a m' FROM m"])
def test_a_place_with_another_word_is_refused(sql: str) -> None:
    """However a place gets lost, nothing is put there."""
    found = read_query(sql)
    tree = found.tree.copy()
    places_of(replace(found, tree=tree))
    for node in tree.find_all(exp.Identifier):
        if node.name == "m":
            node.meta["start"] = sql.index("m")
            node.meta["end"] = sql.index("m")
    with pytest.raises(SyntaxProblem, match="is distinct from the words"):
        places_of(replace(found, tree=tree))
