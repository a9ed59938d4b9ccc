"""Split SQL into words, with positions: names, quoted names, strings, numbers and signs.

Only spaces and complete comments are skipped. Words are sufficient for the grammar of statements to
find where an expression or a query ends; `expressions` and `translate` interpret their content.

Protocol: none
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from deltalog._util.similar_names import on_unused_parameter
from deltalog.errors import InvalidInputError
from deltalog.expressions.other_dialects import instead_of
from deltalog.expressions.spark_tokens import (
    COMMENT_LINE,
    DOUBLED,
    SIGNS,
    advice_between,
    advice_on_thousands,
    end_of_comment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WORD: Final = re.compile(
    rf"""
    (?P<gap> (?: \s+ | {COMMENT_LINE} )+ )
  | (?P<text> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<number> (?:\d+(?:\.\d*)?|\.\d+) (?:[eE][+-]?\d+)? [A-Za-z]* )
  | (?P<word> [^\W\d]\w* )
  | (?P<sign> <=> | <= | >= | <> | != | == | => | -> | :: | \|\|
      | [-+*%=<>&|^~!?:.,;()\[\]@] | /(?!\*) )
    """,
    re.VERBOSE | re.DOTALL,
)
_EXCERPT: Final = 120
_SIMILAR: Final = 0.75
"""The minimum similarity of a keyword that is suggested."""
_QUOTES: Final = {"'": "a string", '"': "a string", "`": "a name in backticks"}
NAMES: Final = frozenset({"word", "quoted"})
"""The kinds of words that may be a name."""
_VALUES: Final = frozenset({"word", "quoted", "text", "number"})
# The first words of queries → the kinds of words, and the signs, that may follow.
_QUERIES: Final = {
    "SELECT": (_VALUES, "(*+-~!?:"),
    "VALUES": (_VALUES, "(?:"),
    "FROM": (NAMES | {"text"}, "("),
    "TABLE": (NAMES, ""),
    "WITH": (NAMES, ""),
}
# If a word such as SELECT is the name of a column, one of these words follows it in an expression.
_OPERATORS: Final = frozenset(
    {"AND", "OR", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "NOT"}
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a statement.

    Args:
        kind: `word`, `quoted`, `text`, `number` or `sign`; `end` for the end of the statement.
        text: the word as it is written.
        start: the position of the first character in the statement.
        end: the position after the last character.
    """

    kind: str
    text: str
    start: int
    end: int

    def says(self, keyword: str) -> bool:
        """Return whether the word is a keyword, which is given in upper case, or a sign."""
        return self.kind in {"word", "sign"} and self.text.upper() == keyword


def split(sql: str) -> list[Word]:
    """Return the words of a string, followed by a word of the kind `end`.

    Raises:
        InvalidInputError: no word begins with some character, or a quote or comment is not closed.
    """
    found, place = [], 0
    while place < len(sql):
        match = _WORD.match(sql, place)
        if match is not None:
            if match.lastgroup != "gap":
                found.append(Word(match.lastgroup or "", match[0], place, match.end()))
            place = match.end()
        elif sql.startswith("/*", place):
            place = _end_of_comment(sql, place)
        else:
            raise _error_at(sql, place, _unclosed(sql, place))
    return [*found, Word("end", "", len(sql), len(sql))]


def begins_query(words: Sequence[Word], place: int) -> bool:
    """Return whether a query begins at a word, which may be a bracket.

    A keyword such as SELECT may also be the name of a column; the next word decides.
    """
    while words[place].says("("):
        place += 1
    word = words[place]
    if word.kind != "word" or word.text.upper() not in _QUERIES:
        return False
    kinds, signs = _QUERIES[word.text.upper()]
    following = words[place + 1]
    if following.kind == "word" and following.text.upper() in _OPERATORS:
        return word.says("SELECT") and following.says("NOT")
    return following.kind in kinds or (following.kind == "sign" and following.text in signs)


class SyntaxProblem(Exception):  # noqa: N818  # internal: `error_at` creates the public error
    """A problem at a position of some SQL, which may be only a part of the statement.

    Args:
        place: the position in this SQL.
        problem: the message.
    """

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem


@dataclass(frozen=True, slots=True)
class TextOfParts:
    """A string that consists of parts of an original string and of replacements.

    Args:
        text: the new string.
        origins: for each part, its position in this string and in the original string.
    """

    text: str
    origins: tuple[tuple[int, int], ...]

    def origin(self, place: int) -> int:
        """Return the position in the original string for a position in this string."""
        at = bisect_right(self.origins, place, key=itemgetter(0)) - 1
        here, there = self.origins[max(at, 0)]
        return there + max(0, place - here)


class TextParts:
    """Builder of a string from parts of an original string and from replacements, in order.

    Args:
        text: the original string.
        start: the position of the first character to copy.
    """

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._copied = start
        self._parts: list[str] = []
        self._origins: list[tuple[int, int]] = []
        self._length = 0

    def replace(self, start: int, end: int, by: str) -> None:
        """Copy the original string up to `start`; write `by` for the part up to `end`."""
        self._add(self._text[self._copied : start], self._copied)
        self._add(by, start)
        self._copied = end

    def add(self, text: str, origin: int) -> None:
        """Append a string, which corresponds to a position in the original string.

        Nothing is copied. `skip_to` sets the position at which copying continues.
        """
        self._add(text, origin)

    def skip_to(self, start: int) -> None:
        """Continue copying at another position, which may be before or after the current one."""
        self._copied = start

    def done(self, end: int = 0) -> TextOfParts:
        """Copy the original string up to `end`, unless it was copied before; return the result."""
        self._add(self._text[self._copied : end], self._copied)
        return TextOfParts("".join(self._parts), tuple(self._origins) or ((0, self._copied),))

    def _add(self, text: str, origin: int) -> None:
        if text:
            self._origins.append((self._length, origin))
            self._parts.append(text)
            self._length += len(text)


def error_at(sql: str, place: int, problem: str, *, attempt: str = "read") -> InvalidInputError:
    """Return an error that contains a position in the statement. The caller raises the error."""
    advice = _advice(sql, place) if attempt == "read" else ""
    is_new = advice and advice not in problem
    return _error_at(sql, place, f"{problem}; {advice}" if is_new else problem, attempt)


_PLACEHOLDER: Final = re.compile(r":deltalog_parameter_\d+")
"""The names of the parameters that a user writes as `?`."""


def as_written(sql: str) -> str:
    """Return SQL for a message, with `?` in place of the names of parameters without a name."""
    return _PLACEHOLDER.sub("?", sql)


def check_named(sql: str, parameters: Mapping[str, object]) -> None:
    """Check that a statement or query has each parameter; one in quotes is none.

    Raises:
        InvalidInputError: it lacks one.
    """
    if not parameters:
        return
    used = _named_in(sql)
    for name in parameters:
        if name not in used:
            if hasattr(parameters[name], "__arrow_c_stream__") or hasattr(
                parameters[name], "dtypes"
            ):
                raise InvalidInputError(
                    f"cannot run {sql!r}: the parameter {name!r} is a table; parameters are single "
                    f"values: pass a table by its name, as in deltalog.sql(query, {name}=table)"
                )
            others = ", ".join(f":{one}" for one in used)
            found = f"only {others}" if others else "nor another one"
            raise InvalidInputError(
                f"cannot run {sql!r}: there is no :{name} for the parameter {name!r}, "
                f"{found}{on_unused_parameter(name, used, parameters, [sql])}"
            )


@lru_cache(maxsize=256)  # the same query is asked with other values
def _named_in(sql: str) -> tuple[str, ...]:
    """Return the names after colons, in order."""
    words = pairwise(split(sql))
    return tuple(dict.fromkeys(word.text for before, word in words if before.says(":")))


def _error_at(sql: str, place: int, problem: str, attempt: str = "read") -> InvalidInputError:
    line = sql.count("\n", 0, place) + 1
    character = place - sql.rfind("\n", 0, place)
    begin = max(0, min(place - _EXCERPT // 2, len(sql) - _EXCERPT))
    end = begin + _EXCERPT
    shown = ("…" if begin else "") + sql[begin:end] + ("…" if end < len(sql) else "")
    return InvalidInputError(
        f"cannot {attempt} the statement {as_written(shown)!r} at line {line}, character "
        f"{character}: {problem}"
    )


def _end_of_comment(sql: str, start: int) -> int:
    """Return the position after a comment, which may contain nested comments."""
    end = end_of_comment(sql, start)
    if end is None:
        raise _error_at(sql, start, "a comment is not closed: expected */")
    return end


def _unclosed(sql: str, place: int) -> str:
    sign = sql[place + 1] if sql[place] in "rR" else sql[place]
    if sign in _QUOTES:
        advice = f"; {DOUBLED}" if sign == "'" else ""
        return f"{_QUOTES[sign]} is not closed: expected another {sign}{advice}"
    problem = f"the character {sign!r} is not valid outside of quotes"
    return f"{problem}; {SIGNS[sign]}" if sign in SIGNS else problem


# --- Keywords of other SQL dialects, and misspelled keywords


_MERGE: Final = "write MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN … WHEN NOT MATCHED …"
_VIEW: Final = "there are no views; write WITH v AS (…) in the query, or CREATE TABLE v AS …"
_TEMPORARY: Final = (
    "there are no temporary tables; connection.register(name, rows) names rows for a session"
)
_TRANSACTION: Final = (
    "each statement commits on its own; `with table.transaction() as tx:` commits several changes "
    "at once"
)
_PRIMARY: Final = (
    "a table has no such keys or indexes; table.alter.set_key_index(columns) makes look-ups of "
    "keys fast"
)
_VERSION_FIRST: Final = (
    "the version follows the name of the table, before its alias: FROM t VERSION AS OF 3 AS a"
)
_DESCRIBED: Final = (
    "leave out the version: only DESCRIBE HISTORY t LIMIT n limits what is described"
)
_OF_LATEST: Final = (
    "a change is made to the latest version; RESTORE TABLE t TO VERSION AS OF 3 goes back to one"
)
_REPARTITION: Final = (
    "the partition columns of a table are fixed: write a new table, or use ALTER TABLE t CLUSTER "
    "BY (columns)"
)
_FOREIGN: Final = {
    "TOP": "write LIMIT n at the end of the query",
    "ON CONFLICT": _MERGE,
    "ON DUPLICATE": _MERGE,
    "INSERT OR": _MERGE,
    "INSERT IGNORE": _MERGE,
    "REPLACE INTO": _MERGE,
    "UPDATE TABLE": "leave out TABLE",
    "UPSERT": _MERGE,
    "DELETE … USING": f"to use other rows, {_MERGE}",
    "DELETE … JOIN": f"to use other rows, {_MERGE}",
    "UPDATE … JOIN": f"to use other rows, {_MERGE}",
    "PRIMARY KEY": _PRIMARY,
    "FOREIGN KEY": _PRIMARY,
    "REFERENCES": _PRIMARY,
    "UNIQUE": _PRIMARY,
    "CREATE INDEX": _PRIMARY,
    "DROP INDEX": _PRIMARY,
    "CREATE UNIQUE INDEX": _PRIMARY,
    "SET KEY INDEX": _PRIMARY,
    "AUTO_INCREMENT": "write BIGINT GENERATED ALWAYS AS IDENTITY",
    "AUTOINCREMENT": "write BIGINT GENERATED ALWAYS AS IDENTITY",
    "SERIAL": "write BIGINT GENERATED ALWAYS AS IDENTITY",
    "CREATE TEMP TABLE": _TEMPORARY,
    "CREATE TEMPORARY TABLE": _TEMPORARY,
    "CREATE OR REPLACE TEMP TABLE": _TEMPORARY,
    "CREATE EXTERNAL": "leave out EXTERNAL, and write LOCATION",
    "CREATE … OPTIONS": "write LOCATION '/path' and TBLPROPERTIES ('name' = 'value')",
    "CREATE … CLUSTERED": "write CLUSTER BY (columns)",
    "CREATE … CHECK (": "a check has a name: CONSTRAINT name CHECK (condition)",
    "CREATE … STRUCT (": "write STRUCT<field: INT>",
    "CREATE … [ ]": "write ARRAY<INT>",
    "CREATE … AS (": "write GENERATED ALWAYS AS (expression)",
    "ALTER … ADD CHECK": "a check has a name: ADD CONSTRAINT name CHECK (condition)",
    **dict.fromkeys(
        ("ALTER … ADD PARTITION", "ALTER … ADD IF"),
        "partitions are not registered: INSERT INTO adds the rows of one",
    ),
    "ALTER … ADD INDEX": _PRIMARY,
    "ALTER … DROP DEFAULT": "write ALTER COLUMN name DROP DEFAULT",
    "ALTER … DROP PARTITION": "DELETE FROM t WHERE … deletes the rows of a partition",
    "ALTER … PARTITION BY": _REPARTITION,
    "ALTER … PARTITIONED BY": _REPARTITION,
    "ALTER … OWNER TO": "a table has no owner; its store grants access",
    "ALTER … SET PROPERTIES": "write SET TBLPROPERTIES",
    "ALTER … SET OPTIONS": "write SET TBLPROPERTIES",
    "ALTER … RENAME COLUMNS": "write RENAME COLUMN old TO new for each",
    "ALTER … ADD": "write ADD COLUMN name TYPE",
    "ALTER … DROP": "write DROP COLUMN name",
    "TRUNCATE … PARTITION": "DELETE FROM t WHERE … deletes the rows of a partition",
    "DELETE … LIMIT": "DELETE has no LIMIT: write a condition, as in id IN (SELECT … LIMIT n)",
    "ALTER … SET DATA": "write TYPE in place of SET DATA TYPE, as in ALTER COLUMN c TYPE BIGINT",
    "OPTIMIZE TABLE": "leave out TABLE",
    "VACUUM TABLE": "leave out TABLE",
    "EXPLAIN ANALYZE": "write EXPLAIN",
    "OUTPUT": "no change returns rows; SELECT reads them",
    "CREATE VIEW": _VIEW,
    "CREATE TEMP VIEW": _VIEW,
    "CREATE TEMPORARY VIEW": _VIEW,
    "CREATE OR REPLACE VIEW": _VIEW,
    "CREATE OR REPLACE TEMP VIEW": _VIEW,
    "CREATE OR REPLACE TEMPORARY VIEW": _VIEW,
    "CREATE MATERIALIZED VIEW": _VIEW,
    "CREATE OR REPLACE MATERIALIZED VIEW": _VIEW,
    "DROP VIEW": _VIEW,
    "CREATE FUNCTION": "there are no functions of users; QueryBuilder and Python compute more",
    "RETURNING": "no change returns rows; SELECT reads them",
    "MODIFY": "write ALTER TABLE t ALTER COLUMN c TYPE …",
    "VACUUM … DAYS": "write the hours, as in RETAIN 168 HOURS",
    "VACUUM … DRY": "write DRY RUN",
    "SIMILAR TO": "write column RLIKE 'pattern'",
    "~": "write column RLIKE 'pattern'",
    "SAFE_CAST": "write try_cast(value AS type)",
    "MERGE … INSERT VALUES": "write INSERT (columns) VALUES (…), or INSERT *",
    "MERGE … UPDATE *": "write UPDATE SET *",
    "BEGIN": _TRANSACTION,
    "START TRANSACTION": _TRANSACTION,
    "COMMIT": _TRANSACTION,
    "ROLLBACK": f"RESTORE TABLE t TO VERSION AS OF n undoes changes; {_TRANSACTION}",
    "FOR UPDATE": "leave out FOR UPDATE: no rows are locked, a conflict fails the later commit",
    "FOR SHARE": "leave out FOR SHARE: no rows are locked",
    "DISTINCT ON": "write QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1",
    **dict.fromkeys(
        (
            "AT ( VERSION",
            "AT ( TIMESTAMP",
            "AT ( OFFSET",
            "BEFORE ( VERSION",
            "BEFORE ( TIMESTAMP",
            "BEFORE ( STATEMENT",
            "VERSION OF",
            "OF VERSION",
            "OF TIMESTAMP",
        ),
        "write FROM t VERSION AS OF 3, or FROM t TIMESTAMP AS OF '2025-01-31'",
    ),
    "FROM [": "names are quoted by backticks: `name`",
    "JOIN [": "names are quoted by backticks: `name`",
    "SAMPLE": "write TABLESAMPLE (10 PERCENT) or TABLESAMPLE (10 ROWS) after the table",
    "WITH ( NOLOCK )": "leave out WITH (NOLOCK): reads lock nothing",
    "ZORDER": "write ZORDER BY (…)",
    "ALTER … CREATE BRANCH": "write CREATE BRANCH b FOR TABLE t",
    "ALTER … DROP BRANCH": "write DROP BRANCH b FOR TABLE t",
    "MERGE BRANCH": "write PUBLISH BRANCH b FOR TABLE t",
    "SELECT [": "names are quoted by backticks: `name`; an array is array(1, 2)",
    ", [": "names are quoted by backticks: `name`; an array is array(1, 2)",
    ") , SELECT": "leave out the comma before SELECT",
    "DELTA . /": "a location has backticks: delta.`/path`",
    "SELECT … INTO": "write CREATE TABLE t USING delta LOCATION '…' AS SELECT …",
    "PRAGMA": "write DESCRIBE TABLE t",
    **dict.fromkeys(("COPY", "LOAD"), "deltalog.write_deltalake(location, rows) loads rows"),
    "=>": "write >= to compare values",
}
"""Keywords of other dialects → what to write instead. Before `…` is the statement's first word."""
_FORMAT: Final = re.compile(r"%(?:\(\w+\))?s\b")
"""Parameters of other drivers: `%s` and `%(name)s`."""
_PARAMETER: Final = "a parameter is written ? (with a list of values) or :name (with a dictionary)"
_NO_STATISTICS: Final = "no statement is needed: each write stores statistics of its files"
_NO_CACHE: Final = "no statement is needed: each query reads the newest version"
_NO_ACCESS: Final = "the catalog or the store decides who may access a table"
_FIRST: Final = {
    "SET": "connect(settings={…}) sets options of a session, ALTER TABLE t SET TBLPROPERTIES (…) "
    "those of a table, and parameters={…} values",
    "ANALYZE": _NO_STATISTICS,
    "RENAME": "write ALTER TABLE name RENAME TO other",
    "PREPARE": "parameters={…} binds values, in each statement",
    **dict.fromkeys(("LIST", "LS", "TABLES"), "write SHOW TABLES"),
    "PURGE": "write VACUUM t",
    **dict.fromkeys(("UNDROP", "UNDO"), "RESTORE TABLE t TO VERSION AS OF n undoes changes"),
    **dict.fromkeys(("REFRESH", "CACHE", "UNCACHE", "INVALIDATE", "CLEAR"), _NO_CACHE),
    "MSCK": "no statement is needed: the log contains the partitions; FSCK REPAIR TABLE t removes "
    "missing files from it",
    **dict.fromkeys(("GRANT", "REVOKE", "DENY"), _NO_ACCESS),
    **dict.fromkeys(
        ("CALL", "EXEC", "EXECUTE", "DO", "DECLARE"),
        "there are no procedures; OPTIMIZE, VACUUM, RESTORE and others are statements",
    ),
    "CLONE": "write CREATE TABLE copy SHALLOW CLONE t",
    "PIVOT": "write SELECT * FROM t PIVOT (sum(x) FOR name IN ('a', 'b'))",
    "UNPIVOT": "write SELECT * FROM t UNPIVOT (value FOR name IN (a, b))",
    "SUMMARIZE": "write SELECT count(x), min(x), max(x), avg(x) FROM t, or DESCRIBE DETAIL t",
    **dict.fromkeys(
        ("ATTACH", "DETACH", "INSTALL", "IMPORT", "EXPORT"),
        "connect({'t': table}) or connect(catalog=…) names tables",
    ),
    **dict.fromkeys(
        ("UNLOAD", "PUT"), "run a query and write its result, as in sql(…).to_polars()"
    ),
}
"""First words of statements that deltalog lacks → what to do instead."""
_BESIDE_WORDS: Final = 2
"""The maximum distance of such keywords from the error; elsewhere, they are not its cause."""
_CLAUSES: Final = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "VALUES", "SELECT",
                   "UPDATE", "DELETE", "INSERT", "MERGE", "OPTIMIZE", "VACUUM", "USING", "MATCHED",
                   "TABLE", "PARTITIONED")  # fmt: skip
_BEFORE_TABLE: Final = ("FROM", "JOIN", "INTO", "TABLE", "UPDATE", "USING", "AS", ",", ".", "(")


def _advice(sql: str, place: int) -> str:
    """Return what to write instead of foreign or misspelled keywords beside an error."""
    try:
        words = split(sql)
    except InvalidInputError:
        return ""
    if any(found.start() - 1 <= place <= found.end() for found in _FORMAT.finditer(sql)):
        return _PARAMETER
    at = next(number for number, word in enumerate(words) if word.end > place or word.kind == "end")
    if advice := advice_on_thousands(sql, place) or _advice_on_operators(words, at):
        return advice
    for keywords, advice in _FOREIGN.items():
        first, _, rest = keywords.rpartition(" … ")
        if (not first or words[0].says(first)) and _is_beside(words, rest.split(), at):
            return advice
    if advice := _advice_on_clauses(words, at) or _advice_on_calls(words, at):
        return advice
    if at == 0 and (instead := _FIRST.get(words[0].text.upper())):
        return instead
    return _advice_on_spelling(words, at)


def _advice_on_operators(words: Sequence[Word], at: int) -> str:
    pairs = pairwise(words[max(at - 2, 0) : at + 2])
    return next(filter(None, (advice_between(one.text, other.text) for one, other in pairs)), "")


def _advice_on_clauses(words: Sequence[Word], at: int) -> str:
    """Return what to write instead of an incomplete or misplaced clause beside an error."""
    if words[0].says("SELECT") and words[1].says("TOP"):
        return _FOREIGN["TOP"]
    if any(_is_version(one) and other.says("AS") for one, other in _pairs_at(words, at)):
        if words[0].says("DESCRIBE") or words[0].says("DESC"):
            return _DESCRIBED
        return _VERSION_FIRST if words[0].text.upper() in _QUERIES else _OF_LATEST
    for word, following in _pairs_at(words, at):
        is_name = following.kind in NAMES and not following.says("BY")
        if is_name and (word.says("ORDER") or word.says("GROUP")):
            return f"write {word.text.upper()} BY {following.text}"
        if following.kind in {"number", "text"} and _is_version(word):
            return f"write {word.text.upper()} AS OF {following.text}"
    return ""


def _pairs_at(words: Sequence[Word], at: int) -> list[tuple[Word, Word]]:
    return list(pairwise(words[max(at - 1, 0) : at + 2]))


def _is_version(word: Word) -> bool:
    return word.says("VERSION") or word.says("TIMESTAMP")


def _advice_on_calls(words: Sequence[Word], at: int) -> str:
    """Return what to write instead of another dialect's function whose arguments have an error."""
    depth = 0
    for number in range(min(at, len(words) - 1) - 1, 0, -1):
        depth += words[number].says(")") - words[number].says("(")
        if depth < 0:
            name = words[number - 1]
            instead = instead_of(name.text.lower()) if name.kind == "word" else ""
            return instead.removeprefix("; ")
    return ""


def _advice_on_spelling(words: Sequence[Word], at: int) -> str:
    for number in range(at, max(at - 2, -1), -1):
        word, before = words[number], words[number - 1] if number else None
        if word.kind != "word" or word.says("DATE"):
            continue
        if before and any(map(before.says, _BEFORE_TABLE)):
            continue
        text = word.text.upper()
        close = get_close_matches(text, _CLAUSES, 1, _SIMILAR)
        if close and text not in {close[0], f"{close[0]}S"}:  # `orders` is a name
            return f"did you mean {close[0]}?"
    return ""


def _is_beside(words: Sequence[Word], keywords: Sequence[str], at: int) -> bool:
    """Return whether the keywords are at an error or beside it; one keyword must be next to it.

    An error at the first word is about the whole statement, so several keywords may be anywhere.
    """
    count = len(keywords)
    reach = 1 if count == 1 else _BESIDE_WORDS if at else len(words)
    first = max(at - reach - count + 1, 0)
    last = min(at + reach, len(words) - count)
    return any(
        all(words[place + number].says(one) for number, one in enumerate(keywords))
        for place in range(first, last + 1)
    )


# --- pipe operators that sqlglot's grammar lacks: SET, DROP, and operators after VALUES


_ALL: Final = exp.Star()


class PipeParser(SparkParser):
    """Spark's grammar, including the pipe operators that sqlglot lacks."""

    PIPE_SYNTAX_TRANSFORM_PARSERS: ClassVar[dict[str, Any]] = {
        **SparkParser.PIPE_SYNTAX_TRANSFORM_PARSERS,
        "DROP": lambda self, query: self._piped_drop(query),
        "SET": lambda self, query: self._piped_set(query),
    }

    def _parse_select(self, *arguments: Any, **options: Any) -> Any:
        found: Any = super()._parse_select(*arguments, **options)
        takes_pipe = options.get("consume_pipe", True) and not options.get("table")
        if isinstance(found, exp.Values) and takes_pipe and self._is_piped():
            return self._parse_pipe_syntax_query(exp.select(_ALL.copy()).from_(found))
        return found

    def _parse_pipe_syntax_set_operator(self, query: Any) -> Any:
        """Parse UNION, EXCEPT or INTERSECT after a pipe; sqlglot would require brackets."""
        found: Any = self.parse_set_operation(this=query)
        if found is None:
            return None
        query.pop()
        left: Any = self._build_pipe_cte(query, [_ALL.copy()])
        found.set("with_", left.args["with_"].pop())
        found.set("this", left)
        return self._build_pipe_cte(found, [_ALL.copy()])

    def _piped_set(self, query: Any) -> Any:
        """Parse `SET column = value, …`. A value may use columns that are set before it."""
        self._advance()
        while True:
            column = self._parse_id_var()
            if column is None or not self._match(TokenType.EQ):
                self.raise_error("expected column = value")
            one = exp.Alias(this=self._parse_disjunction(), alias=column)
            query = self._with_star(query, exp.Star(replace=[one]))
            if not self._match(TokenType.COMMA):
                return query

    def _piped_drop(self, query: Any) -> Any:
        self._advance()
        return self._with_star(query, exp.Star(except_=self._parse_csv(self._parse_id_var)))

    def _with_star(self, query: Any, star: exp.Star) -> Any:
        """Return a query of all columns, except those that `star` excludes or replaces."""
        if query.expressions != [_ALL]:
            query = self._build_pipe_cte(query, [_ALL.copy()])
        return self._build_pipe_cte(query.select(star, append=False), [_ALL.copy()])

    def _is_piped(self) -> bool:
        return bool(self._match(TokenType.PIPE_GT, advance=False))
