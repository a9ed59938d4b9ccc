"""Parse a query in Spark's dialect with sqlglot, and record the positions of its parts.

This module rewrites syntax that sqlglot does not support or misreads, and refuses a query that
would change data.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import TokenType

from deltalog._util.readable import counted
from deltalog.errors import InvalidInputError
from deltalog.expressions.render import quote_name
from deltalog.expressions.spark_tokens import without_comments
from deltalog.query.bare_calls import is_only_column
from deltalog.query.call_arguments import wrong_arguments
from deltalog.query.lexer import (
    NAMES,
    PipeParser,
    SyntaxProblem,
    TextOfParts,
    TextParts,
    Word,
    begins_query,
    split,
)
from deltalog.query.names import (
    RelationOptions,
    end_of_version,
    on_branch,
    options_in,
    place_from,
    unquoted,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot.expressions import Expr

    from deltalog.query.lexer import Word

_SPAN: Final = "deltalog_span"
_END: Final = "deltalog_end"
OPTIONS: Final = "deltalog_options"
"""The key under which a table's node stores the options of the table, except its version."""
MAX_LEVEL: Final = "deltalog_max_level"
"""The key under which a common table expression's node stores its limit of recursion levels."""
_MAX_LEVEL: Final = re.compile(r"\bMAX\s+RECURSION\s+LEVEL\b", re.IGNORECASE)
_OPTIONS: Final = re.compile(r"\bwith\s*\(", re.IGNORECASE)
_BEFORE_QUERY: Final = ("(", ")", "UNION", "EXCEPT", "INTERSECT", "MINUS", "ALL", "DISTINCT")
_DOUBLED: Final = frozenset("'\"")
_ESCAPE: Final = re.compile(r"\\.|''|\"\"", re.DOTALL)
TOO_DEEP: Final = "it is nested too deeply"
_NO_VERSION: Final = "expected a version or timestamp after AS OF, such as 3 or '2025-01-31'"
_CLAUSES: Final = (
    ("GROUP", "BY"), ("ORDER", "BY"), ("WHERE",), ("HAVING",), ("LIMIT",), ("UNION",), ("QUALIFY",),
)  # fmt: skip
_BESIDE_NAMES: Final = (",", ")", "FROM", "AS", ".")
_SPACED_VERSION: Final = (
    "a version after @ has no spaces around it, as in t@v1; a parameter is written :x"
)
_NO_UNIT: Final = "TABLESAMPLE needs a unit: write (10 PERCENT) or (10 ROWS)"
_COMMA_FROM: Final = re.compile(r"[\s)]*,\s*(?P<word>FROM)\b", re.IGNORECASE)
_AS_OF: Final = re.compile(r"\bAS\s+OF\b", re.IGNORECASE)
_NO_WINDOW: Final = "expected a window after OVER, such as (ORDER BY id), or the name of one"
_OVER: Final = re.compile(r"\bOVER\b", re.IGNORECASE)
# Nodes that change data or access other systems. A query must not contain them.
_STATEMENTS: Final = (
    exp.DDL, exp.DML, exp.Command, exp.Into, exp.Set, exp.Pragma, exp.Copy, exp.Describe,
)  # fmt: skip
# sqlglot's messages → the messages that replace them.
_MESSAGES: Final = {
    "Expecting )": "expected )",
    "Invalid expression / Unexpected token": "expected the end, or an operator before this",
    "Expected table name": "expected a table; a path is written delta.`/path`",
}
_SOME_TYPES: Final = "STRING, INT, BIGINT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP or ARRAY<INT>"
_TWO_DIRECTIONS: Final = re.compile(r"\b(?:ASC\s+DESC|DESC\s+ASC)\b", re.IGNORECASE)
_MANY_ARGUMENTS: Final = re.compile(
    r"The number of provided arguments \((\d+)\) is greater than the maximum .* \((\d+)\)"
)
_PIPE_OPERATOR: Final = re.compile(r"Unsupported pipe syntax operator: '(.*?)'")
# The exceptions that sqlglot may raise for invalid SQL. Some of them are not documented.
FAILURES: Final = (
    SqlglotError, LookupError, TypeError, ValueError, AttributeError, AssertionError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """The tree of a query, and the text that sqlglot parsed.

    Args:
        tree: the tree of the query.
        source: the text that sqlglot parsed, with the positions in the original text.
        plain: the same text, in which spaces replace comments and options of tables.
        options: the position after the name and version of a table → the options of the table.
    """

    tree: Expr
    source: TextOfParts
    plain: str
    options: Mapping[int, RelationOptions]


@lru_cache(maxsize=256)
def read_query(text: str) -> ReadQuery:
    """Parse a query to a tree. Callers must not modify the tree, because it is cached.

    Raises:
        SyntaxProblem: the text is not a query.
    """
    source = _in_words_of_sqlglot(text)
    plain = without_comments(source.text)
    try:
        options = _options_of_tables(plain)
    except SyntaxProblem as problem:
        raise SyntaxProblem(source.origin(problem.place), problem.problem) from problem
    for one in options.values():
        plain = plain[: one.start] + " " * (one.end - one.start) + plain[one.end :]
    levels, plain = _levels_in(plain, source)
    try:
        trees = _DIALECT.parse(plain)
    except RecursionError:
        raise SyntaxProblem(0, TOO_DEEP) from None
    except FAILURES as error:
        (found, *_) = getattr(error, "errors", None) or [{}]
        place = source.origin(found.get("start", 0))
        raise SyntaxProblem(place, _problem(error, found)) from error
    tree = trees[0] if trees else None
    if len(trees) != 1 or not isinstance(tree, exp.Query | exp.Values):
        raise SyntaxProblem(0, _no_query(plain, trees))
    for node in tree.walk():
        _check_complete(node, plain, source)
        _check_selected(node, source, plain)
        if isinstance(node, _STATEMENTS):
            raise SyntaxProblem(source.origin(start_of(node)), "expected a query that only reads")
        if isinstance(node, exp.Column) and node.parts[0].meta.get("start") is not None:
            node.meta[_SPAN] = (node.parts[0].meta["start"], node.parts[-1].meta["end"] + 1)
    _check_limits(tree, source)
    _check_aggregates(plain, source)
    _note_levels(tree, levels)
    if options:
        _note_options(tree, split(plain), options, source)
    return ReadQuery(tree, source, plain, options)


_OF_STATEMENTS: Final = frozenset(
    {"alter", "create", "delete", "drop", "insert", "merge", "optimize", "update", "vacuum"}
)


def _no_query(text: str, trees: Sequence[Expr | None]) -> str:
    """Return why a text is not one query, and what runs it."""
    (first, *_) = text.lower().split(maxsplit=1) or [""]
    if first in _OF_STATEMENTS:
        return (
            f"expected one query, found {first.upper()}; deltalog.sql runs statements, and a table "
            "has methods for them"
        )
    if len(trees) == 1 and isinstance(trees[0], exp.Predicate | exp.Connector | exp.Not):
        return f"expected one query, found a condition; write SELECT * FROM … WHERE {text.strip()}"  # noqa: S608  # it is shown
    return "expected one query"


def _problem(error: Exception, found: dict[str, Any]) -> str:
    """Return the first line of an error of sqlglot, in terms of the query."""
    if isinstance(error, IndexError):
        return "expected more arguments of a function"
    lines = str(found.get("description") or error).splitlines() or ["expected a query"]
    if "expected type" in lines[0].lower():
        return f"expected a type, such as {_SOME_TYPES}"
    if operator := _PIPE_OPERATOR.match(lines[0]):
        given = "" if operator[1] == "SENTINEL" else f", found {operator[1]}"
        return f"expected a pipe operator after |>, such as WHERE or SELECT{given}"
    return lines[0]


def _check_complete(node: Expr, plain: str, source: TextOfParts) -> None:
    """Refuse a version and a window without a value, which sqlglot accepts."""
    if isinstance(node, exp.Version):
        problem, clause, start = _NO_VERSION, _AS_OF, start_of(node.parent or node)
        is_complete = node.expression is not None and node.args.get("kind") == "AS OF"
    elif isinstance(node, exp.Window):
        problem, clause, start = _NO_WINDOW, _OVER, start_of(node)
        is_complete = bool(node.args.get("alias")) or "partition_by" in node.args
    else:
        return
    if not is_complete:
        words = clause.search(plain, start)
        raise SyntaxProblem(source.origin(words.end() if words else len(plain)), problem)


def _check_selected(node: Expr, source: TextOfParts, plain: str) -> None:
    """Refuse SELECT without columns, and parameters in place of names, which sqlglot accepts."""
    if isinstance(node, exp.Select) and not node.expressions:
        place = source.origin(start_of(node))
        raise SyntaxProblem(place, "expected the columns or values to select, found FROM")
    if isinstance(node, exp.Select) and (after := _after_comma(node, plain)):
        raise SyntaxProblem(source.origin(after), "expected a column after the comma, found FROM")
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Placeholder):
        # sqlglot records no position of a parameter in place of a name.
        name = re.search(rf"(?i)(?:FROM|JOIN|,)\s*(?P<word>[:?]\s*{re.escape(node.name)})", plain)
        raise SyntaxProblem(
            source.origin(name.start("word") if name else 0),
            "a parameter cannot be the name of a table; pass the table by its name, as in "
            "sql(query, t=table)",
        )
    alias = node.args.get("alias") if isinstance(node, exp.Alias) else None
    if isinstance(alias, exp.Placeholder):
        problem = f"expected a name, found the parameter :{alias.name}; a field is written s.field"
        # sqlglot records no position of a parameter in place of a name.
        name = re.compile(rf":\s*{re.escape(alias.name)}\b").search(plain, start_of(node.this))
        raise SyntaxProblem(source.origin(name.start() if name else start_of(node)), problem)


def _after_comma(node: exp.Select, plain: str) -> int:
    """Return the place of FROM after a comma that ends the list of columns; 0 if there is none."""
    last = max(
        (one.meta["end"] for one in node.expressions[-1].walk() if "end" in one.meta), default=None
    )
    found = None if last is None else _COMMA_FROM.match(plain, last + 1)
    return found.start("word") if found else 0


def _check_limits(tree: Expr, source: TextOfParts) -> None:
    """Refuse limits that are not a number of rows; later code would ignore these options."""
    for options in tree.find_all(exp.LimitOptions):
        if options.args.get("percent") or options.args.get("with_ties"):
            place = source.origin(start_of(options.parent or options))
            raise SyntaxProblem(place, "PERCENT and WITH TIES are not supported; write LIMIT n")


def _check_aggregates(plain: str, source: TextOfParts) -> None:
    """Refuse aggregate functions with other arguments than Spark's, and two directions."""
    if wrong := wrong_arguments(plain):
        raise SyntaxProblem(source.origin(wrong[0]), wrong[1])
    if _TWO_DIRECTIONS.search(plain) is None:
        return
    words = split(plain)
    for before, first, second in zip(words, words[1:], words[2:], strict=False):
        # `ORDER BY desc ASC` sorts by a column.
        is_sign = before.kind == "sign" and before.text not in {")", "]"}
        is_column = is_sign or before.text.upper() in {"BY", "SELECT", "DISTINCT"}
        if not is_column and {first.text.upper(), second.text.upper()} == {"ASC", "DESC"}:
            raise SyntaxProblem(source.origin(second.start), "expected ASC or DESC, found both")


def _levels_in(plain: str, source: TextOfParts) -> tuple[dict[int, int], str]:
    """Return the clauses `MAX RECURSION LEVEL n`, position → n, and the text without them."""
    found: dict[int, int] = {}
    if _MAX_LEVEL.search(plain) is None:
        return found, plain
    words = split(plain)
    for number, word in enumerate(words[:-4]):
        if not all(
            words[number + place].says(name)
            for place, name in enumerate(("MAX", "RECURSION", "LEVEL"))
        ):
            continue
        value = words[number + 3]
        if not value.text.isdecimal() or not words[number + 4].says("AS"):
            raise SyntaxProblem(
                source.origin(value.start),
                f"expected a number of levels and AS after MAX RECURSION LEVEL, found {value.text}",
            )
        found[word.start] = int(value.text)
        plain = plain[: word.start] + " " * (value.end - word.start) + plain[value.end :]
    return found, plain


def _note_levels(tree: Expr, levels: Mapping[int, int]) -> None:
    """Store the limits of recursion levels in the nodes of their common table expressions."""
    for place, most in levels.items():
        before = [cte for cte in tree.find_all(exp.CTE) if start_of(cte.args["alias"]) < place]
        if before:
            max(before, key=lambda cte: start_of(cte.args["alias"])).meta[MAX_LEVEL] = most


def _options_of_tables(plain: str) -> dict[int, RelationOptions]:
    """Return the options of tables: the position after a table's name and version → its options."""
    if _OPTIONS.search(plain) is None:
        return {}
    words = split(plain)
    return {words[place_from(words, one.start) - 1].end: one for one in options_in(words)}


def _note_options(
    tree: Expr,
    words: Sequence[Word],
    options: Mapping[int, RelationOptions],
    source: TextOfParts,
) -> None:
    """Store the options of tables in the nodes of these tables."""
    left = dict(options)
    for node in tree.find_all(exp.Table):
        end = node.parts[-1].meta.get("end") if node.parts else None
        if end is not None:
            behind = end_of_version(words, place_from(words, end + 1))
            found = left.pop(words[behind - 1].end, None)
            if found is not None:
                node.meta[OPTIONS] = dict(found.values)
    for one in left.values():
        raise SyntaxProblem(source.origin(one.start), "expected WITH (…) after a table's name")


def start_of(node: Expr) -> int:
    """Return the position of a node's first character; 0 if sqlglot has not recorded it."""
    starts = (one.meta.get("start") for one in node.walk())
    return min((start for start in starts if isinstance(start, int)), default=0)


def span_of(node: Expr) -> tuple[int, int] | None:
    """Return the start and end position of an expression; None if they were not recorded."""
    found: tuple[int, int] | None = node.meta.get(_SPAN)
    return found


def note_span(node: Expr) -> bool:
    """Record the positions of an operand, such as `a * 2` in `a * 2 + 1`; return whether known.

    The rules of the grammar see only the whole chain, so `a * 2` has no position of its own.
    """
    end = node.meta.get(_END)
    if span_of(node) is None and end is not None:
        places = (span_of(one) or (one.meta.get("start"),) for one in node.walk())
        starts = [place[0] for place in places if place[0] is not None]
        if starts:
            node.meta[_SPAN] = (min(starts), end)
    return span_of(node) is not None


# The rules of sqlglot's grammar for expressions and their parts, from the lowest precedence on.
_RULES: Final = (
    "_parse_disjunction", "_parse_equality", "_parse_column", "_parse_function", "_parse_primary",
    "_parse_bitwise", "_parse_unary", "_parse_atom",
)  # fmt: skip


def _with_spans(name: str) -> Callable[..., Expr | None]:
    """Wrap a rule of the grammar so that it records the positions of a node in the tree."""
    rule: Any = getattr(PipeParser, name)

    def read(self: Any, *arguments: Any, **options: Any) -> Expr | None:
        first = self._index
        found: Expr | None = rule(self, *arguments, **options)
        if isinstance(found, exp.Expr) and self._index > first:
            tokens = self._tokens
            found.meta[_SPAN] = (tokens[first].start, tokens[self._index - 1].end + 1)
        return found

    return read


class _Queries(Spark):
    """Spark's dialect, changed so that errors contain positions and casts fail as in ANSI mode."""

    class Parser(PipeParser):
        STRICT_CAST: ClassVar = True

        def raise_error(self, message: str, token: Any = None) -> None:
            """Raise an error that contains the position of the problem."""
            token = token or self._curr or self._prev
            place = token.start if token else 0
            plain = message.partition(" but got <Token")[0]
            plain = _MESSAGES.get(plain, plain)
            if many := _MANY_ARGUMENTS.match(plain):
                most = counted(int(many[2]), "argument")
                called = self._called() or "the function"
                plain = f"{called} expects at most {most}, found {many[1]}"
            elif plain.startswith("Required keyword"):
                called = self._called()
                plain = f"{called} expects more arguments" if called else "expected a value"
            elif plain.startswith("Expected "):
                plain = f"e{plain[1:]}"
            raise ParseError(plain, [{"description": plain, "start": place}])

        def _called(self) -> str:
            """Return the name of the function whose closing bracket is the current token, or ""."""
            if self._curr.token_type is not TokenType.R_PAREN:
                return ""
            depth = 1
            for place in range(self._index - 1, 0, -1):
                kind = self._tokens[place].token_type
                depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
                if not depth:
                    word: str = self._tokens[place - 1].text
                    return word.lower() if word.isidentifier() else ""
            return ""

        def validate_expression(self, expression: Any, args: Any = None) -> Any:
            if isinstance(expression, exp.Binary | exp.Predicate | exp.Not):
                expression.meta[_END] = self._prev.end + 1
            if isinstance(expression, exp.Count) and args == []:  # DuckDB would count all rows
                self.raise_error("Required keyword")
            # sqlglot allows no second argument of these functions; see `call_arguments`.
            is_checked = isinstance(expression, exp.FirstValue | exp.LastValue | exp.AnyValue)
            return super().validate_expression(expression, None if is_checked else args)

        def _warn_unsupported(self) -> None:
            self.raise_error("expected a query", self._tokens[0])


for _rule in _RULES:
    setattr(_Queries.Parser, _rule, _with_spans(_rule))
_DIALECT: Final = _Queries()


def _in_words_of_sqlglot(text: str) -> TextOfParts:
    """Rewrite syntax that sqlglot does not support or misreads.

    `@` and SYSTEM_VERSION become `VERSION AS OF`. `t FOR BRANCH b` becomes the name `t@b`.
    `TABLE t` becomes `SELECT * FROM t`, and `user` a column in backticks.
    """
    try:
        words = split(text)
    except InvalidInputError as error:
        raise SyntaxProblem(0, str(error)) from error
    parts = TextParts(text)
    _check_commas(words)
    for number, word in enumerate(words[:-1]):
        before, following = words[number - 1], words[number + 1]
        _check_word(words, number)
        if word.says("@") and number and before.end == word.start:
            parts.replace(word.start, following.end, _version_clause(following))
        elif word.says("FOR") and following.says("BRANCH") and before.kind in NAMES:
            branch = words[number + 2]
            parts.replace(before.start, branch.end, _branch_name(before, branch))
        elif word.kind == "text" and word.text[0] in _DOUBLED:
            # sqlglot would treat two quotes as the end of one string and the start of another.
            quote, inner = word.text[0], _with_escapes(word.text)
            if inner != word.text[1:-1]:
                parts.replace(word.start, word.end, f"{quote}{inner}{quote}")
        elif is_only_column(words, number):
            parts.replace(word.start, word.end, f"`{word.text}`")
        elif word.says("SYSTEM_VERSION") and following.says("AS"):
            parts.replace(word.start, word.end, "VERSION")
        elif (
            word.says("TABLE")
            and (not number or any(map(before.says, _BEFORE_QUERY)))
            and begins_query(words, number)
        ):
            parts.replace(word.start, word.end, "SELECT * FROM")
    return parts.done(len(text))


def _check_word(words: Sequence[Word], number: int) -> None:
    """Refuse spaces around `@`, and a sample without a unit, which sqlglot accepts.

    The size of a sample is percent in some dialects, and rows in others.
    """
    word, following = words[number], words[number + 1]
    is_version = word.says("@") and number > 0 and words[number - 1].kind in NAMES
    if is_version and not words[number - 1].end == word.start == following.start - 1:
        raise SyntaxProblem(word.start, _SPACED_VERSION)
    if not word.says("TABLESAMPLE"):
        return
    place = number + 1
    place += words[place].says("BERNOULLI") or words[place].says("SYSTEM")
    is_open = words[place].says("(")
    amount = words[place + is_open]
    if amount.kind == "number" and (not is_open or words[place + 2].says(")")):
        raise SyntaxProblem(amount.start, _NO_UNIT)


def _check_commas(words: Sequence[Word]) -> None:
    """Refuse a comma after the last part of a list; sqlglot and DuckDB would ignore it."""
    for before, word, following in zip(words, words[1:], [*words[2:], words[-1]], strict=False):
        if not before.says(","):
            continue
        found = "the end" if word.kind == "end" else word.text.upper()
        is_end = word.kind == "end" or word.says(")") or word.says("]")
        is_clause = any(
            word.says(first) and all(map(following.says, rest)) for first, *rest in _CLAUSES
        )
        is_name = following.kind == "end" or any(map(following.says, _BESIDE_NAMES))
        if is_end or (is_clause and not is_name):
            raise SyntaxProblem(
                before.start, f"expected another part of the list after the comma, found {found}"
            )


def _version_clause(word: Word) -> str:
    """Return the clause for the version after `@`."""
    try:
        version = version_of(word.text)
    except InvalidInputError as error:
        raise SyntaxProblem(word.start, str(error)) from None
    if isinstance(version, int):
        return f" VERSION AS OF {version} "
    return f" TIMESTAMP AS OF '{version}' "


def _branch_name(table: Word, branch: Word) -> str:
    """Return the name of a branch in backticks."""
    if branch.kind not in NAMES:
        raise SyntaxProblem(branch.start, "expected the name of a branch")
    (name,) = on_branch([unquoted(table.text)], unquoted(branch.text))
    return quote_name(name)


def _with_escapes(text: str) -> str:
    """Return the content of a quoted string. Doubled quotes become a backslash and a quote."""
    twice = 2 * text[0]
    return _ESCAPE.sub(
        lambda sign: f"\\{text[0]}" if sign[0] == twice else str(sign[0]), text[1:-1]
    )
