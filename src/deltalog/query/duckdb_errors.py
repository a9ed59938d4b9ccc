"""Errors of DuckDB in terms of the user's query, and the errors of tables behind them.

Protocol: none
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError
from deltalog.expressions.other_dialects import instead_of, instead_of_word
from deltalog.query.columns import column_names, fields_beside, index_names
from deltalog.query.duckdb_expressions import BY_ZERO
from deltalog.query.duckdb_files import NativeRows
from deltalog.query.native import MONTHS_TEXT
from deltalog.query.windows import problem_of_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# How the messages of errors begin that the files of a table cannot cause.
_OF_QUERIES: Final = (
    "Binder Error", "Catalog Error", "Conversion Error", "Not implemented Error",
    "Out of Range Error", "Parser Error",
)  # fmt: skip


_ADVICE: Final = {
    "Conversion Error": "TRY_CAST returns NULL instead",
    "Out of Range Error": "cast an operand to a wider type",
}


def problem_of(
    message: str, watched: Mapping[str, Any], *, is_translated: bool, query: str | None = None
) -> str:
    """Return a message of DuckDB for the user, without a position in SQL that deltalog wrote.

    Args:
        message: DuckDB's message.
        watched: a name in the query → its rows.
        is_translated: whether deltalog wrote the query's SQL.
        query: the user's query; None if it is not known.
    """
    if BY_ZERO in message:
        return message[message.index(BY_ZERO) :].partition("\n")[0]
    message = message.replace(MONTHS_TEXT, "INTERVAL YEAR TO MONTH")
    if not is_translated:
        missing = _NO_TABLE.match(message)
        known = ", ".join(map(repr, watched)) or "none"
        unknown = _NO_FUNCTION.match(message)
        if unknown is not None:
            return (
                f"there is no function {unknown[1]!r}: the dialect is DuckDB's, not DataFusion's; "
                "deltalog.sql(query, name=table) runs Spark's"
            )
        return f"there is no table {missing[1]!r}; known: {known}" if missing else message
    if query is not None and (of_windows := problem_of_windows(message, query, _sql_name)):
        return of_windows
    problem, _, _ = message.partition("\n\nLINE ")
    kind, _, text = problem.partition(": ")
    text = text or problem
    advice = _ADVICE.get(kind)
    hint = f" ({advice})" if advice else ""
    for pattern, meaning in _ERRORS:
        if pattern.match(text):
            shown = pattern.sub(meaning, text, count=1)
            return shown if "CAST(" in shown else shown + hint
    if kind == "Binder Error":
        return _binder_problem(text, watched)
    return text if kind == "Invalid Input Error" else text + hint


_UNKNOWN_COLUMN = re.compile(
    r'Referenced column "(?P<name>.*?)" not found in FROM clause!'
    r'|(?:Values list|Table) "(?:.*?)" does not have a column named "(?P<qualified>.*?)"'
)
_UNKNOWN_FIELD = re.compile(
    r'Could not find key "(.*?)" in struct\s*Candidate Entries: (.*)', re.DOTALL
)
_UNKNOWN_TABLE = re.compile(r'Referenced table "(.*?)" not found!(?:\nCandidate tables: (.*))?')
_NAMED: Final = re.compile(r'"(?:[^"]*\.)?([^".]*)"')
_NO_TABLE: Final = re.compile(r"Catalog Error: Table with name (.*?) does not exist!")
_NO_FUNCTION: Final = re.compile(
    r"Catalog Error: (?:Scalar|Aggregate|Table) Function with name (.*?) does not exist!"
)
_MOST_NAMES: Final = 10
_MANY_ROWS: Final = "More than one row returned by a subquery used as an expression"
_SQL_NAMES: Final = {
    "BOOL": "BOOLEAN", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT",
}  # fmt: skip
"""DuckDB's names of types in messages → those of SQL."""
_OF_MAPS: Final = "for a map, use LATERAL VIEW explode(m) e AS k, v"
_OF_ROWS: Final = frozenset({"inline", "inline_outer", "stack", "json_tuple"})
_PART_OF: Final = re.compile(r"(?:struct_extract|map_extract_value)\((\w+), '(\w+)'\)")
_ITEMS: Final = re.compile(r"(\w+)\[\]")
_PARTS: Final = re.compile(r"\b(MAP|STRUCT)\(([^()]*)\)")


def _sql_type(name: str) -> str:
    """Return DuckDB's name of a type, or a list of names, in Spark's SQL."""
    name = name.replace("VARCHAR", "STRING").replace("INTEGER_LITERAL", "INT")
    return _PARTS.sub(r"\1<\2>", _ITEMS.sub(r"ARRAY<\1>", name))


def _sql_name(name: str) -> str:
    """Return a name of a type in one of DuckDB's two spellings in Spark's SQL."""
    return _SQL_NAMES.get(name) or _sql_type(name)


def _qualified(choices: str) -> str:
    """Return what to write instead of a column's name alone."""
    first, _, second = choices.partition(" or ")
    if first == second:  # the query reads one table twice, without aliases
        return "give each table an alias, as in FROM t a JOIN t b ON a.id = b.id"
    return f"write {choices}"


_ERRORS: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (
        re.compile(r'column "(.*?)" must appear in the GROUP BY clause.*', re.DOTALL),
        r"column '\1' is neither in GROUP BY nor aggregated; add it, or use any_value(\1)",
    ),
    (
        re.compile(r'Ambiguous reference to column name "(.*?)" \(use: (.*)\)'),
        lambda found: f"column {found[1]!r} is in several tables; {_qualified(found[2])}",
    ),
    (
        re.compile(r"WHERE clause cannot contain aggregates!"),
        "WHERE chooses rows before they are grouped, so it cannot aggregate; write HAVING",
    ),
    (
        re.compile(r"GROUP BY clause cannot contain (?:aggregates|window functions)!"),
        "GROUP BY cannot contain aggregate or window functions; compute them in a subquery",
    ),
    (
        re.compile(r"(WHERE|HAVING) clause cannot contain window functions!"),
        r"\1 chooses rows before window functions are computed; write QUALIFY, or a subquery",
    ),
    (
        re.compile(r"at least one window function must appear in the SELECT column or QUALIFY .*"),
        "QUALIFY chooses rows by a window function, and the query has none; write WHERE",
    ),
    (
        re.compile(r"[wW]indow functions are not allowed in window definitions"),
        "a window function cannot be inside of another; use a subquery",
    ),
    (
        re.compile(r"Window functions are not supported here"),
        "a window function needs OVER, as in row_number() OVER (ORDER BY …)",
    ),
    (
        re.compile(r"(ORDER|GROUP BY) term out of range - should be between 1 and (\d+)"),
        lambda found: (
            f"a number in {'ORDER BY' if found[1] == 'ORDER' else 'GROUP BY'} is the position of "
            f"a result column; expected 1 to {found[2]}"
        ),
    ),
    (
        re.compile(r"LIMIT/OFFSET cannot be negative"),
        "LIMIT and OFFSET expect a number of rows from 0 on",
    ),
    (
        re.compile(r'Column "(.*?)" does not exist on (left|right) side of join!'),
        r"there is no column '\1' on the \2 side of JOIN … USING",
    ),
    (
        re.compile(
            r'Column "(.*?)" in (?:EXCLUDE|REPLACE) list not found in FROM clause.*', re.DOTALL
        ),
        r"there is no column '\1', which the list after * names",
    ),
    (
        re.compile(r"Cannot extract field '(.*?)' from expression \"(.*?)\" because it is not .*"),
        lambda found: (
            "there is no field '{0}': {1} is no struct; {1}[0] is the first element of an array"
        ).format(found[1], _PART_OF.sub(r"\1.\2", found[2])),
    ),
    (
        re.compile(r"Overflow in (\w+) of (\w+) \((.*)\)!"),
        lambda found: (
            f"Overflow in {found[1]}: {found[3]} is out of the range of "
            f"{_SQL_NAMES.get(found[2], found[2])}"
        ),
    ),
    (
        re.compile(
            r"Type INT128 with value (-?\d+) can't be cast because the value is out of range for "
            r"the destination type INT64.*",
            re.DOTALL,
        ),
        (
            r"the result \1 is out of range for BIGINT; compute with decimals, as in "
            r"sum(CAST(x AS DECIMAL(20, 0)))"
        ),
    ),
    (
        re.compile(r"Parameter not supported in (ORDER|GROUP) BY clause"),
        (
            r"\1 BY cannot contain a parameter alone, because it is a value and not the name of a "
            "column; write the column"
        ),
    ),
    (
        re.compile(r"ORDER BY non-integer literal has no effect.*", re.DOTALL),
        "ORDER BY has a string, which orders nothing; write the column without quotes",
    ),
    (
        re.compile(r"Data type '(.*?)' not recognized"),
        (
            r"a dataframe has a column of the dtype '\1', which SQL does not have; convert it "
            "first, for example to strings"
        ),
    ),
    (
        re.compile(r"Unsupported Internal Arrow Type.*"),
        (
            "the rows have a column of an Arrow type that SQL does not have; cast it first, for "
            "example float16 to float32, and decimal256 to decimal128"
        ),
    ),
    (
        re.compile(r"Provided table/dataframe must have at least one column"),
        "one of its tables has no columns, such as an empty list; pass Arrow data with a schema",
    ),
    (
        re.compile(r"Subquery returns (\d+) columns - expected (\d+)"),
        r"a subquery that stands for values has \1 columns; expected \2",
    ),
    (
        re.compile(r'Ambiguous reference to table "(.*?)" .*'),
        r"several tables are called '\1'; give each another alias",
    ),
    (
        re.compile(r"STAR expression is only allowed as the root element of an expression.*"),
        "* stands for all columns only as a whole item of SELECT, and in count(*)",
    ),
    (
        re.compile(r"UNNEST\(\) can only be applied to lists, structs and NULL, not (.*)"),
        lambda found: f"explode expects an array, found {_sql_type(found[1])}; {_OF_MAPS}",
    ),
    (
        re.compile(r"Scalar Function with name (\w+) does not exist!.*", re.DOTALL),
        lambda found: (
            f"there is no SQL function {found[1]!r} here; for several rows or columns, write "
            f"LATERAL VIEW {found[1]}(…) e AS a, b"
            if found[1] in _OF_ROWS
            else f"there is no SQL function {found[1]!r} here{instead_of(found[1])}"
        ),
    ),
    (
        re.compile(r"UNNEST requires a single list or array as input"),
        f"explode expects an array; {_OF_MAPS}",
    ),
    (
        re.compile(
            r"No function matches the given name and argument types 'array_length\(([^,]*), .*",
            re.DOTALL,
        ),
        lambda found: f"posexplode expects an array, found {_sql_type(found[1])}",
    ),
    (
        re.compile(
            r"No function matches the given name and argument types '(.+?)\((.*?)\)'.*", re.DOTALL
        ),
        lambda found: (
            f"the {'function' if found[1].isidentifier() else 'operator'} {found[1]} does not take "
            f"({_sql_type(found[2])})"
        ),
    ),
    (
        re.compile(r'syntax error at or near "(.*?)".*', re.DOTALL),
        r"the syntax is not valid near '\1'",
    ),
    (
        re.compile(r"DISTINCT requires at least one argument"),
        "DISTINCT needs a value, as in count(DISTINCT id)",
    ),
    (
        re.compile(r"SELECT clause without selection list"),
        "SELECT needs columns or values to select",
    ),
    (
        re.compile(r'window "(.*?)" does not exist'),
        r"there is no window '\1': define it by WINDOW \1 AS (…), or write OVER (…)",
    ),
    (
        re.compile(r'Referenced column "(.*?)" was not found because the FROM clause is missing'),
        r"there is no column '\1': the query has no FROM",
    ),
    (
        re.compile(r"\* expression without FROM clause!"),
        "* stands for the columns of a table, but the query has no FROM",
    ),
    (
        re.compile(r'table "(.*?)" has (\d+) columns available but (\d+) columns specified'),
        r"the alias '\1' names \3 column(s), but its rows have \2",
    ),
    (
        re.compile(r"Sample sample_size .* out of range.*"),
        "TABLESAMPLE expects 0 to 100 percent",
    ),
    (
        re.compile(r"Cannot unpivot columns of types (.*) and (.*) - an explicit cast is required"),
        lambda found: (
            f"UNPIVOT needs columns of one type, found {_sql_type(found[1])} and "
            f"{_sql_type(found[2])}; cast them in a subquery"
        ),
    ),
    (
        re.compile(r'Column "(.*?)" referenced in UNPIVOT but no matching entry .*', re.DOTALL),
        r"there is no column '\1', which UNPIVOT names",
    ),
    (
        re.compile(r"QUANTILE can only take parameters in the range .*"),
        "percentile expects a fraction from 0 to 1, such as 0.5",
    ),
    (
        re.compile(r'Could not choose a best candidate .* "quantile_cont\(.*', re.DOTALL),
        "percentile expects a fraction from 0 to 1, such as percentile(value, 0.5)",
    ),
    (
        re.compile(r"Argument for ntile must be greater than zero"),
        "ntile expects a number of groups from 1 on",
    ),
    (
        re.compile(r"Type (?:VARCHAR|\w+) with value (.*?) can't be cast .*destination type (\S+)"),
        lambda found: f"cannot cast {found[1]} to {_SQL_NAMES.get(found[2], _sql_type(found[2]))}",
    ),
    (
        re.compile(r'invalid (\w+) field format: "(.*?)", expected format is .*'),
        lambda found: f"cannot cast {found[2]!r} to {found[1].upper()}",
    ),
    (
        re.compile(r"GROUPING statement cannot be used without groups"),
        "grouping(…) needs GROUP BY with ROLLUP, CUBE or GROUPING SETS",
    ),
    (re.compile(r"zero-length delimited identifier"), "a name in backticks is empty"),
    (
        re.compile(_MANY_ROWS + ".*", re.DOTALL),
        "a subquery that stands for one value has several rows",
    ),
    (
        re.compile(
            r"Could not convert string ['\"](.*?)['\"] to ([\w(,)]+)"
            r"(?: when casting from source column (.*))?",
            re.DOTALL,
        ),
        lambda found: (
            f"cannot cast {found[1]!r} to {_sql_name(found[2])}"
            + (f" in column {found[3]!r}" if found[3] else "")
        ),
    ),
    (
        re.compile(r"Unable to transform python value of type '<(?:class|enum) '(.*?)'>' to .*"),
        r"a parameter is a \1; expected a Python value, such as an int, a str or a datetime",
    ),
    (
        re.compile(r"Set operations can only apply to expressions with the same number of .*"),
        "the two sides have different numbers of columns",
    ),
    (
        re.compile(r"aggregate function calls cannot be nested"),
        "an aggregate function cannot be inside of another; use a subquery",
    ),
)


def _without_field(name: str, similar: list[str], watched: Mapping[str, Any]) -> str:
    """Return the problem of a field that a struct lacks; DuckDB names only similar fields."""
    fields: list[str] = []
    for rows in watched.values():
        fields = fields or fields_beside(rows, *similar[:1])
    if not fields:
        return f"there is no field {name!r}; similar fields: {', '.join(map(repr, similar))}"
    more = ", …" if len(fields) > _MOST_NAMES else ""
    return (
        f"there is no field {name!r}; the fields are "
        f"{', '.join(map(repr, fields[:_MOST_NAMES]))}{more}"
    )


def _binder_problem(text: str, watched: Mapping[str, Any]) -> str:
    """Return a binder error of DuckDB in terms of the query."""
    if unknown := _UNKNOWN_COLUMN.match(text):
        unknown_name = unknown["name"] or unknown["qualified"]
        names = {name_key(name): name for rows in watched.values() for name in column_names(rows)}
        if not names:  # the query reads only its own WITH and VALUES
            names = {name_key(name): name for name in _NAMED.findall(text[unknown.end() :])}
        if unknown_name in {name for rows in watched.values() for name in index_names(rows)}:
            return (
                f"there is no column {unknown_name!r}: it is in the index of a dataframe, which "
                "SQL does not read; pass frame.reset_index()"
            )
        # A table that has the column is not the one that the qualifier means.
        others = [key for key in names if key != name_key(unknown_name)]
        near = get_close_matches(name_key(unknown_name), others, n=1)
        shown = [*map(repr, names.values())][:_MOST_NAMES]
        more = ", …" if len(names) > len(shown) else ""
        hint = f"did you mean {names[near[0]]!r}?" if near else f"known: {', '.join(shown)}{more}"
        instead = instead_of_word(name_key(unknown_name))
        return f"there is no column {unknown_name!r}{f'; {hint}' if names else ''}{instead}"
    if absent := _UNKNOWN_FIELD.match(text):
        return _without_field(absent[1], re.findall(r'"(.*?)"', absent[2]), watched)
    if missing := _UNKNOWN_TABLE.match(text):
        tables = (missing[2] or "").replace('"', "'")
        known = f"; the query has {tables}" if tables else ""
        return f"there is no table or alias {missing[1]!r}{known}"
    return text


def cause_of(watched: Mapping[str, Any], run: object, message: str) -> DeltaError | None:
    """Return the original error behind a failed query; DuckDB's own error has only its message."""
    failures = (getattr(one, "failure", None) for one in (*watched.values(), run))
    found: DeltaError | None = next((error for error in failures if error is not None), None)
    if found is not None:
        return found
    if message.startswith(_OF_QUERIES) or BY_ZERO in message:
        return None
    try:
        for one in watched.values():
            if isinstance(one, NativeRows):
                one.check_files()
    except DeltaError as error:
        return error
    return None
