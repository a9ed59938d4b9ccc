"""Statements about one table, made from a grammar, for Delta Spark and for us.

The table is `T` of `CREATE` and `FILL`. Expressions have the types that their places need, most of
the time: a few do not, and both have to refuse them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

CREATE: Final = """
CREATE TABLE T (i INT, l BIGINT, d DECIMAL(10, 2), x DOUBLE, s STRING, dt DATE, ts TIMESTAMP,
  b BOOLEAN, st STRUCT<u: INT, `w x`: STRING>, `odd name` INT, g STRING) USING DELTA {layout}
  TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name',
  'delta.enableDeletionVectors' = '{vectors}', 'delta.enableTypeWidening' = 'true')
"""
FILL: Final = r"""
INSERT INTO T SELECT /*+ COALESCE(1) */ * FROM VALUES
  (1, 10L, 1.50BD, 0.5D, 'a', DATE'2020-02-29', TIMESTAMP'2020-03-08 02:30:00', true,
   named_struct('u', 1, 'w x', 'p'), 7, 'g1'),
  (-7, -3L, -2.25BD, -1.5D, 'it\'s', DATE'1999-12-31', TIMESTAMP'1969-12-31 23:59:59.999999',
   false, named_struct('u', -2, 'w x', NULL), -4, 'g1'),
  (0, 0L, 0.00BD, 0D, '', DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00', NULL, NULL, 0, 'g2'),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (2147483647, 9223372036854775807L, 99999999.99BD, 1e300D, 'Ünï 日本', DATE'9000-12-31',
   TIMESTAMP'2037-06-15 12:00:00', true, named_struct('u', 5, 'w x', '12'), 2, 'g2'),
  (5, 42L, 0.05BD, CAST('NaN' AS DOUBLE), '12', DATE'2024-01-15', TIMESTAMP'2024-11-03 01:30:00',
   false, named_struct('u', NULL, 'w x', 'q%'), NULL, 'G_3')
"""

_NAMES: Final = {
    "int": ["i", "`odd name`", "st.u"],
    "bigint": ["l"],
    "decimal": ["d"],
    "double": ["x"],
    "string": ["s", "g", "st.`w x`"],
    "date": ["dt"],
    "timestamp": ["ts"],
    "boolean": ["b"],
}
_CONSTANTS: Final = {
    "int": ["0", "1", "-3", "7", "2147483647", "NULL"],
    "bigint": ["5L", "-1L", "3000000000"],
    "decimal": ["1.5", "0.01", "-2.25", "100.00", "3BD"],
    "double": ["0.5D", "-1e3D", "2D", "CAST('Infinity' AS DOUBLE)"],
    "string": ["'a'", "''", "'it''s'", "'12'", "'日本'", "'x_y%'", '"dq"', "NULL", "'2020-02-29'"],
    "date": ["DATE'2020-02-29'", "DATE'1970-01-01'", "DATE'2024-12-31'"],
    "timestamp": ["TIMESTAMP'2020-01-01 00:00:00'", "TIMESTAMP'2024-06-30 12:34:56.789'"],
    "boolean": ["true", "false"],
}
_NUMBERS: Final = ["int", "bigint", "decimal", "double"]
KINDS: Final = list(_NAMES)


@st.composite
def expressions(draw: DrawFn, kind: str, depth: int = 2) -> str:
    """An expression of a kind, over the columns of the table."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([*_NAMES[kind], *_NAMES[kind], *_CONSTANTS[kind]]))

    def one(of: str) -> str:
        return draw(expressions(of, depth - 1))

    def one_of(texts: list[str]) -> str:
        return draw(st.sampled_from(texts))

    def any_of(*kinds: str) -> str:
        return one(draw(st.sampled_from(kinds)))

    def _comparison() -> str:
        of = draw(st.sampled_from(KINDS))
        other = of if of not in _NUMBERS or draw(st.booleans()) else draw(st.sampled_from(_NUMBERS))
        if draw(st.integers(0, 11)) == 0:
            other = draw(st.sampled_from(KINDS))  # perhaps of no common type
        sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
        return f"({one(of)} {sign} {one(other)})"

    def _membership() -> str:
        of = draw(st.sampled_from(KINDS))
        options = ", ".join(one(of) for _ in range(draw(st.integers(1, 3))))
        return f"({one(of)} {draw(st.sampled_from(['IN', 'NOT IN']))} ({options}))"

    def _between() -> str:
        of = draw(st.sampled_from([*_NUMBERS, "date", "timestamp", "string"]))
        return f"({one(of)} BETWEEN {one(of)} AND {one(of)})"

    forms: dict[str, list[Callable[[], str]]] = {
        "int": [
            lambda: f"({one('int')} {draw(st.sampled_from('+-*'))} {one('int')})",
            lambda: f"({one('int')} % {one('int')})",
            lambda: f"CAST({any_of('decimal', 'double', 'string', 'bigint', 'boolean')} AS INT)",
            lambda: f"length({one('string')})",
            lambda: f"year({one('date')})",
            lambda: f"month({any_of('date', 'timestamp')})",
            lambda: f"datediff({one('date')}, {one('date')})",
            lambda: f"-{one('int')}",
            lambda: f"abs({one('int')})",
            lambda: f"instr({one('string')}, {one('string')})",
            lambda: f"hour({one('timestamp')})",
            lambda: f"pmod({one('int')}, {one('int')})",
        ],
        "bigint": [
            lambda: f"({one('bigint')} {draw(st.sampled_from('+-*'))} {any_of('int', 'bigint')})",
            lambda: f"({any_of('int', 'bigint')} DIV {any_of('int', 'bigint')})",
            lambda: f"CAST({any_of('int', 'decimal', 'double', 'timestamp', 'string')} AS BIGINT)",
            lambda: f"ceil({any_of('double')})",
            lambda: f"floor({one('double')})",
        ],
        "decimal": [
            lambda: (
                f"({any_of('decimal', 'int')} {draw(st.sampled_from('+-*/%'))} {one('decimal')})"
            ),
            lambda: (
                f"CAST({any_of('int', 'double', 'string', 'bigint')} AS DECIMAL({one_of(_DIGITS)}))"
            ),
            lambda: f"round({one('decimal')}, {draw(st.integers(-1, 3))})",
            lambda: f"abs({one('decimal')})",
        ],
        "double": [
            lambda: f"({any_of(*_NUMBERS)} / {any_of('int', 'double', 'bigint')})",
            lambda: f"({one('double')} {draw(st.sampled_from('+-*'))} {any_of(*_NUMBERS)})",
            lambda: f"CAST({any_of('int', 'decimal', 'string')} AS DOUBLE)",
            lambda: f"sqrt({any_of('int', 'double')})",
        ],
        "string": [
            lambda: f"concat({one('string')}, {any_of('string', 'int')})",
            lambda: f"upper({one('string')})",
            lambda: f"({one('string')} || {one('string')})",
            lambda: f"trim({one('string')})",
            lambda: (
                f"substring({one('string')}, {draw(st.integers(-2, 3))}, {draw(st.integers(0, 3))})"
            ),
            lambda: f"CAST({any_of(*KINDS)} AS STRING)",
            lambda: f"lower({one('string')})",
            lambda: f"coalesce({one('string')}, {one('string')})",
            lambda: f"replace({one('string')}, 'a', {one('string')})",
            lambda: f"lpad({one('string')}, 3, '*')",
            lambda: f"date_format({one('timestamp')}, 'yyyy-MM-dd HH:mm')",
            lambda: f"split({one('string')}, ',')[0]",
            lambda: f"regexp_replace({one('string')}, '[a-z]', '#')",
        ],
        "date": [
            lambda: f"date_add({one('date')}, {one_of(['1', '-30', '`odd name`'])})",
            lambda: f"CAST({any_of('timestamp', 'date')} AS DATE)",
            lambda: f"last_day({one('date')})",
            lambda: f"add_months({one('date')}, {draw(st.integers(-13, 13))})",
            lambda: f"trunc({one('date')}, 'MM')",
            lambda: f"({one('date')} + INTERVAL 1 MONTH)",
        ],
        "timestamp": [
            lambda: f"CAST({any_of('date', 'timestamp')} AS TIMESTAMP)",
            lambda: f"date_trunc('HOUR', {one('timestamp')})",
            lambda: f"({one('timestamp')} - INTERVAL 2 HOURS)",
            lambda: f"timestamp_seconds({one('int')})",
        ],
        "boolean": [
            _comparison,
            _comparison,
            lambda: f"({one('boolean')} AND {one('boolean')})",
            lambda: f"({one('boolean')} OR {one('boolean')})",
            lambda: f"(NOT {one('boolean')})",
            lambda: f"({any_of(*KINDS)} IS {draw(st.sampled_from(['', 'NOT ']))}NULL)",
            lambda: f"({one('string')} {one_of(['LIKE', 'NOT LIKE', 'RLIKE'])} {one_of(PATTERNS)})",
            _membership,
            _between,
            lambda: f"startswith({one('string')}, {one('string')})",
        ],
    }
    every: list[Callable[[], str]] = [
        lambda: f"CASE WHEN {one('boolean')} THEN {one(kind)} ELSE {one(kind)} END",
        lambda: f"coalesce({one(kind)}, {one(kind)})",
        lambda: f"nullif({one(kind)}, {one(kind)})",
    ]
    own = forms[kind]
    return draw(st.sampled_from([*own, *own, *own, *every]))()


_DIGITS: Final = ["10, 2", "5, 0", "38, 10"]
PATTERNS: Final = ["'a%'", "'%1%'", "'_'", "'%日%'", "'%''%'", "'x\\\\_%'", "'G_%'"]
# Columns that are assigned, and the kinds of values that they get.
_ASSIGNED: Final = {
    "i": ["int", "int", "bigint"], "l": ["bigint", "int"], "d": ["decimal", "int"],
    "x": ["double", "decimal", "int"], "s": ["string", "int"], "dt": ["date"],
    "ts": ["timestamp", "date"], "b": ["boolean"], "st.u": ["int"], "st.`w x`": ["string"],
    "`odd name`": ["int"], "g": ["string"],
}  # fmt: skip
# What is done to matched rows and to others, which rows match, and which of them are changed.
_MERGES: Final = [
    ["UPDATE SET t.s = v.s, t.i = v.i", "DELETE", "UPDATE SET t.d = t.d + v.i"],
    [
        "",
        " WHEN NOT MATCHED BY SOURCE AND t.b THEN DELETE",
        " WHEN NOT MATCHED BY SOURCE AND t.i > 3 THEN UPDATE SET t.s = 'alone'",
    ],
    ["t.i = v.i", "t.i <=> v.i", "t.i = v.i AND t.g = 'g1'", "t.l = v.i * 10"],
    ["t.b", "v.s IS NOT NULL", "true"],
]
_AGGREGATES: Final = [
    ("count({})", KINDS), ("count(DISTINCT {})", ["int", "string"]), ("sum({})", _NUMBERS[:3]),
    ("avg({})", ["int", "decimal", "bigint"]), ("min({})", KINDS), ("max({})", KINDS),
    ("bool_and({})", ["boolean"]), ("count_if({})", ["boolean"]),
]  # fmt: skip


@st.composite
def queries(draw: DrawFn) -> str:
    """A query: of rows, of groups, or with a window."""
    where = f" WHERE {draw(expressions('boolean', 3))}" if draw(st.booleans()) else ""
    shape = draw(st.integers(0, 4))
    if shape <= 2:
        chosen = [
            draw(expressions(draw(st.sampled_from(KINDS)), 3))
            for _ in range(draw(st.integers(1, 3)))
        ]
        shown = ", ".join(f"{text} AS c{place}" for place, text in enumerate(chosen))
        return f"SELECT {shown} FROM T{where}"
    if shape == 3:
        key = draw(expressions(draw(st.sampled_from(["string", "int", "boolean"])), 1))
        found = []
        for place in range(draw(st.integers(1, 3))):
            text, kinds = draw(st.sampled_from(_AGGREGATES))
            found.append(
                f"{text.format(draw(expressions(draw(st.sampled_from(kinds)), 1)))} AS a{place}"
            )
        return f"SELECT {key} AS k, {', '.join(found)} FROM T{where} GROUP BY {key}"
    text = draw(expressions(draw(st.sampled_from(KINDS)), 2))
    return (
        f"SELECT i, row_number() OVER (PARTITION BY g ORDER BY i) AS n, count({text}) OVER "
        f"(PARTITION BY g) AS c FROM T{where}"
    )


def _assignments(draw: DrawFn) -> str:
    columns = draw(st.lists(st.sampled_from(list(_ASSIGNED)), min_size=1, max_size=3, unique=True))
    found = []
    for name in columns:
        kind = draw(st.sampled_from(_ASSIGNED[name]))
        found.append(f"{name} = {draw(expressions(kind, 2))}")
    return ", ".join(found)


@st.composite
def changes(draw: DrawFn) -> str:
    """An UPDATE, a DELETE, an INSERT or a MERGE."""
    where = draw(expressions("boolean", 3))
    match draw(
        st.sampled_from(["update", "update", "delete", "insert", "replace", "merge", "merge"])
    ):
        case "update":
            return f"UPDATE T SET {_assignments(draw)} WHERE {where}"
        case "delete":
            return f"DELETE FROM T WHERE {where}"
        case "insert":
            values = [draw(expressions(kind, 1)) for kind in ("int", "decimal", "string", "date")]
            way = draw(st.sampled_from(["VALUES", "SELECT"]))
            if way == "SELECT":
                return (
                    f"INSERT INTO T (i, d, s, dt) SELECT {', '.join(values)} FROM T WHERE {where}"
                )
            plain = [
                draw(st.sampled_from(_CONSTANTS[kind]))
                for kind in ("int", "decimal", "string", "date")
            ]
            return f"INSERT INTO T (i, d, s, dt) VALUES ({', '.join(plain)})"
        case "replace":
            where = f"g = '{draw(st.sampled_from(['g1', 'g2', 'G_3']))}'"
            text = draw(expressions("string", 1))
            return (
                f"INSERT INTO T REPLACE WHERE {where} "
                f"SELECT i, l, d, x, {text}, dt, ts, b, st, `odd name`, g FROM T WHERE {where}"
            )
        case _:
            action, by_source, condition, matched = (
                draw(st.sampled_from(texts)) for texts in _MERGES
            )
            return (
                "MERGE INTO T t USING (SELECT * FROM VALUES (1, 'one'), (NULL, 'none'), (5, NULL), "
                f"(8, 'new') AS q(i, s)) v ON {condition} WHEN MATCHED AND {matched} THEN {action} "
                "WHEN NOT MATCHED THEN INSERT (i, s, g) VALUES (v.i, v.s, concat('n', v.i))"
                f"{by_source}"
            )


ALTERATIONS: Final = [
    "ALTER TABLE T ADD COLUMNS (n1 INT COMMENT 'c' AFTER i, n2 STRUCT<a: STRING>)",
    "ALTER TABLE T ADD COLUMN st.v DOUBLE",
    "ALTER TABLE T RENAME COLUMN `odd name` TO `even name`",
    "ALTER TABLE T RENAME COLUMN st.`w x` TO y",
    "ALTER TABLE T DROP COLUMN x",
    "ALTER TABLE T DROP COLUMN g",
    "ALTER TABLE T DROP COLUMNS (b, st)",
    "ALTER TABLE T ALTER COLUMN i TYPE BIGINT",
    "ALTER TABLE T ALTER COLUMN i TYPE STRING",
    "ALTER TABLE T ALTER COLUMN d TYPE DECIMAL(12, 3)",
    "ALTER TABLE T ALTER COLUMN s FIRST",
    "ALTER TABLE T ALTER COLUMN st.u AFTER `w x`",
    "ALTER TABLE T ALTER COLUMN dt COMMENT 'a ''day'''",
    "ALTER TABLE T ALTER COLUMN i SET NOT NULL",
    "ALTER TABLE T ADD CONSTRAINT c CHECK (l < 9223372036854775807 OR l IS NULL OR true)",
    "ALTER TABLE T ADD CONSTRAINT c CHECK (i > 0)",
    "ALTER TABLE T DROP CONSTRAINT IF EXISTS c",
    "ALTER TABLE T SET TBLPROPERTIES ('own' = 'x', 'delta.appendOnly' = 'true')",
    "ALTER TABLE T UNSET TBLPROPERTIES IF EXISTS ('own')",
    "ALTER TABLE T ADD COLUMN i INT",
    "COMMENT ON TABLE T IS 'it''s a table'",
]  # fmt: skip


def statements() -> SearchStrategy[str]:
    """Any statement: half of them queries, and a few that change the schema."""
    return st.one_of(
        queries(), queries(), queries(), changes(), changes(), st.sampled_from(ALTERATIONS)
    )
