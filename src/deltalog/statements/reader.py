"""Parse one statement: its words, and those parts that are expressions, types or queries.

The grammars of all statements use this reader. Every error contains a position in the statement.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.argument_types import kind_of, shortened
from deltalog._util.escaping import name_key, path_key
from deltalog._util.readable import counted
from deltalog._util.similar_names import similar_to
from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, Literal, lit, parse_sql
from deltalog.expressions.filters import check_quoted_names
from deltalog.expressions.mistakes import advice_on_options
from deltalog.expressions.nodes import And, Comparison, In, Or
from deltalog.expressions.render import quote_name, type_name
from deltalog.expressions.sql import length_limits, parse_collated_type
from deltalog.expressions.sql_nodes import values_of_row
from deltalog.expressions.trees import rebuild
from deltalog.query.lexer import SyntaxProblem, TextParts, Word, begins_query, error_at, split
from deltalog.query.names import (
    VERSION_WORDS,
    QualifiedName,
    Version,
    on_branch,
    unquoted,
    version_of,
)
from deltalog.query.translate import check_query
from deltalog.schema.arrow import type_of_query
from deltalog.schema.check import python_values
from deltalog.schema.types import STRING
from deltalog.statements.clauses import LeadingClauses, Span, leading_clauses
from deltalog.statements.statement import (
    CLOSING,
    OPENING,
    Defaults,
    Query,
    SqlCondition,
    Subquery,
    SubqueryKind,
    WrittenType,
    end_of_type,
    items_of_values,
    stops_at,
)

# --- read the words of a statement: keywords, names and lists


class WordReader:
    """Reads a statement word by word. Keywords may be in upper or lower case.

    Args:
        sql: one statement.

    Raises:
        InvalidInputError: the words are invalid; see `split`.
    """

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._words = split(sql)
        self._place = 0

    @property
    def word(self) -> Word:
        """The next word, which was not read yet."""
        return self._words[self._place]

    @property
    def is_at_end(self) -> bool:
        """Whether only semicolons remain."""
        rest = self._words[self._place :]
        return all(word.says(";") or word.kind == "end" for word in rest)

    def is_at(self, keywords: str) -> bool:
        """Return whether the next words are these keywords or signs, such as `GROUP BY`."""
        return stops_at(self._words, self._place, (keywords,))

    def take(self, keywords: str) -> bool:
        """Read these keywords or signs if they are next; return whether they were."""
        found = self.is_at(keywords)
        self._place += len(keywords.split()) if found else 0
        return found

    def take_one(self, *options: str) -> str | None:
        """Read the keyword that is next, if it is one of these, and return it; else None."""
        return next((option for option in options if self.take(option)), None)

    def expect(self, keywords: str) -> None:
        """Read these keywords or signs. Raise an error if something else is next."""
        if not self.take(keywords):
            self.fail(f"expected {keywords}")

    def expect_one(self, *options: str) -> str:
        """Read one of these keywords, and return it. Raise an error if something else is next."""
        found = self.take_one(*options)
        if found is None:
            self.fail(f"expected {', '.join(options[:-1])} or {options[-1]}")
        return found

    def expect_end(self) -> None:
        """Raise an error unless the statement ends here."""
        if not self.is_at_end:
            more = ""
            if self.word.text == ";":
                more = " (run one statement at a time; connect(…).execute_script(sql) runs several)"
            self.fail("expected the end of the statement", more)

    def fail(self, expected: str, advice: str = "") -> NoReturn:
        """Raise an error at the next word that states what was expected and what was found."""
        found = self.word.text or "the end"
        raise error_at(self.sql, self.word.start, f"{expected}, found {found}{advice}")

    def fail_at(self, word: Word, problem: str) -> NoReturn:
        """Raise an error at a word that was read before."""
        raise error_at(self.sql, word.start, problem)

    def check_once(self, start: Word, columns: Sequence[tuple[str, ...]]) -> None:
        """Raise an error at a word that was read before, if a column comes twice in a list."""
        known: set[tuple[str, ...]] = set()
        for path in columns:
            if path_key(path) in known:
                self.fail_at(start, f"expected each column once, found {'.'.join(path)!r} twice")
            known.add(path_key(path))

    def name(self, what: str = "a name") -> str:
        """Read a name, which may be in backticks."""
        word = self.word
        if word.kind == "quoted" and len(word.text) > 2:
            self._place += 1
            return unquoted(word.text)
        if word.kind != "word":
            self.fail(f"expected {what}")
        self._place += 1
        return word.text

    def path(self, what: str = "a column") -> tuple[str, ...]:
        """Read a name with several parts: `a.b.c`."""
        parts = [self.name(what)]
        while self.take("."):
            parts.append(self.name("a name after the dot"))
        return tuple(parts)

    def listed(self, read: Callable[[], T], *, is_bracketed: bool = True) -> list[T]:
        """Read one or more items that are separated by commas, by default in brackets."""
        if is_bracketed:
            self.expect("(")
        found = [read()]
        while self.take(","):
            found.append(read())
        if is_bracketed:
            self.expect(")")
        return found

    def bracketed_words(self) -> Sequence[Word]:
        """Return the words between the next brackets, without reading them."""
        found: list[Word] = []
        depth = 0
        for word in self._words[self._place :]:
            depth += word.says("(") - word.says(")")
            if not depth:
                break
            found.append(word)
        return found[1:]


# --- read expressions, types and queries


Parameters = Sequence[object] | Mapping[str, object] | None
T = TypeVar("T")

_AFTER_WITH: Final = ("INSERT", "MERGE", "UPDATE", "DELETE")
_LIMITED: Final = re.compile(r"\b(?:varchar|character|char)\s*\(\s*\d+\s*\)", re.IGNORECASE)
_PARAMETER: Final = "deltalog_parameter_"
_SUBQUERY: Final = "deltalog_query_"
_QUERY_NAME: Final = re.compile(rf":{_SUBQUERY}\d+")
_DEFAULT: Final = "deltalog_default_"


class StatementReader(WordReader):
    """Reads a statement word by word, including its expressions, types and queries.

    Args:
        sql: one statement.
        parameters: values for `?` (a sequence) or `:name` (a mapping).
        takes_foreign: whether the session's engine supports expressions that deltalog lacks.

    Raises:
        InvalidInputError: the words are invalid (see `split`), or the number of values differs from
            the number of `?`.
    """

    def __init__(
        self, sql: str, parameters: Parameters = None, *, takes_foreign: bool = False
    ) -> None:
        if not isinstance(sql, str):
            raise InvalidInputError(f"expected a statement as a string, found {shortened(sql)}")
        is_right = isinstance(parameters, Sequence | Mapping | None)
        if isinstance(parameters, str | bytes) or not is_right:
            raise InvalidInputError(
                "parameters: expected a list of values for `?`, or a mapping for `:name`, found "
                f"{kind_of(parameters)}"
            )
        super().__init__(sql)
        self._clauses: LeadingClauses | None = None
        self._takes_foreign = takes_foreign
        # For each word, the position of the next word that is not an opening bracket. This may be
        # the word itself.
        self._after_brackets = list(range(len(self._words)))
        for place in range(len(self._words) - 2, -1, -1):
            if self._words[place].says("("):
                self._after_brackets[place] = self._after_brackets[place + 1]
        marks = [word.start for word in self._words if word.says("?")]
        if marks and not isinstance(parameters, Sequence):
            raise error_at(sql, marks[0], "the parameter ? needs a list of values as `parameters`")
        if isinstance(parameters, Sequence) and len(parameters) != len(marks):
            advice = "" if marks else "; pass a dictionary for parameters such as :name"
            advice = advice or advice_on_options(sql, len(marks))
            if not marks and "%s" in sql:
                advice = "; write ? instead of %s"
            elif len(marks) == 1 and any(
                word.says("IN") and following.says("?") for word, following in pairwise(self._words)
            ):
                advice = "; after IN, pass one list, as in [[1, 2]]"
            raise InvalidInputError(
                f"cannot run {sql!r}: it has {counted(len(marks), 'parameter')} ?, found "
                f"{counted(len(parameters), 'value')}{advice}"
            )
        self._named = parameters if isinstance(parameters, Mapping) else {}
        values = parameters if isinstance(parameters, Sequence) else ()
        # The position of a `?` → the parameter name that replaces it, and its value.
        self._marked = {
            place: (f"{_PARAMETER}{number}", value)
            for number, (place, value) in enumerate(zip(marks, values, strict=True))
        }

    @property
    def is_at_query(self) -> bool:
        """Return whether a query is next, with or without brackets around it."""
        return self._begins_query(self._place)

    def table(self) -> QualifiedName:
        """Read the name of a table, which may have several parts.

        A version, `@v3`, or `FOR BRANCH name` may follow.
        """
        parts = self.path("a table")
        if self.take("FOR BRANCH"):
            return QualifiedName(on_branch(parts, self.name("the name of a branch")))
        if not self.take("@"):
            return QualifiedName(parts)
        word = self.word
        self._place += 1
        try:
            return QualifiedName(parts, version_of(word.text))
        except InvalidInputError as error:
            raise error_at(self.sql, word.start, str(error)) from None

    def alias(self, *stops: str) -> str | None:
        """Read `[AS] name`, if a name is next that is not one of the keywords `stops`."""
        if self.take("AS"):
            return self.name("an alias")
        is_name = self.word.kind in {"word", "quoted"}
        return self.name() if is_name and not any(map(self.is_at, stops)) else None

    def version(self) -> Version | None:
        """Read `VERSION AS OF 3` or `TIMESTAMP AS OF '…'`; None if something else is next."""
        self.take("FOR")
        kind = self.take_one("VERSION AS OF", "SYSTEM_VERSION AS OF", "TIMESTAMP AS OF",
                             "SYSTEM_TIME AS OF")  # fmt: skip
        if kind is None:
            return None
        start = self.word.start
        if advice := VERSION_WORDS.get(self.word.text.strip("'\"`").lower()):
            self.fail(f"expected a version or timestamp: {advice}")
        value = self.constant()
        if "VERSION" in kind:
            text = str(value)
            if not text.isdecimal():
                raise error_at(
                    self.sql, start, f"expected the number of a version, found {value!r}"
                )
            return int(text)
        if not isinstance(value, str) and not hasattr(value, "tzinfo"):
            raise error_at(
                self.sql, start, f"expected a timestamp such as '2025-01-31', found {value!r}"
            )
        return value  # type: ignore[no-any-return]  # a string, or a datetime

    def constant(self) -> Any:
        """Read a constant: a string, a number, a literal with a type, or a parameter."""
        word = self.word
        found = self._parsed(self._slice(self._end_of_constant()))
        if not isinstance(found, Literal):
            quoted = f"; write '{word.text}' if it is a string" if word.kind == "word" else ""
            self.fail_at(word, f"expected a constant, found {word.text}{quoted}")
        return found.value

    def text(self, what: str = "a string in quotes") -> str:
        """Read a constant that is a string."""
        start, found = self.word.start, self.constant()
        if not isinstance(found, str):
            raise error_at(self.sql, start, f"expected {what}, found {found!r}")
        return found

    def integer(self, what: str = "a whole number") -> int:
        """Read a constant that is a whole number, with or without a sign."""
        start, found = self.word.start, self.constant()
        if not isinstance(found, int) or isinstance(found, bool):
            raise error_at(self.sql, start, f"expected {what}, found {found!r}")
        return found

    def table_at_version(self) -> QualifiedName:
        """Read the name of a table, with an optional version as a clause or after `@`."""
        found, version = self.table(), self.version()
        return found if version is None else QualifiedName(found.parts, version)

    def location_or_table(self) -> QualifiedName:
        """Read the name of a table, or its location as a string."""
        if self.word.kind != "text":
            return self.table()
        return QualifiedName(("delta", self.text("a location")))

    def condition(
        self, *stops: str, ends_at_query: bool = False, by_engine: bool = False
    ) -> SqlCondition:
        """Read an expression.

        It ends before a keyword of `stops`, a comma, a closing bracket or the end of the statement.
        These words do not end it inside brackets and inside CASE … END. The grammar of the
        expression is checked here; its columns are checked when the statement runs.

        Args:
            stops: the keywords that end the expression.
            ends_at_query: whether the beginning of a query without brackets also ends the
                expression.
            by_engine: whether the session's engine evaluates the expression. It may then contain
                functions that deltalog lacks.
        """
        start, end = self._place, self._end_of_slice(stops, ends_at_query=ends_at_query)
        if start == end:
            self.fail("expected an expression")
        subqueries: dict[str, Subquery] = {}
        found = self._slice(end, subqueries)
        is_foreign = False
        try:
            query = Query(found.text, {**found.parameters, **dict.fromkeys(subqueries)})
            self._parsed(query, start)
        except InvalidInputError:
            is_foreign = by_engine and self._takes_foreign
            if not is_foreign:
                raise
        return SqlCondition(found.text, found.parameters, subqueries, is_foreign)

    def source(self, *stops: str) -> str:
        """Read an expression that a table will store; return its SQL. See `condition`."""
        start = self._place
        found = self.condition(*stops)
        if found.parameters or found.subqueries:
            raise error_at(
                self.sql, self._words[start].start,
                "an expression that a table stores cannot have parameters or queries",
            )  # fmt: skip
        return found.text

    def bracketed_source(self) -> str:
        """Read an expression in brackets, and return its SQL."""
        self.expect("(")
        found = self.source()
        self.expect(")")
        return found

    def type(self, *stops: str) -> WrittenType:
        """Read a type."""
        start = self._place
        self._place = end = end_of_type(self._words, self._place, stops)
        if start == end:
            self.fail("expected a type")
        text = self.sql[self._words[start].start : self._words[end - 1].end]
        try:
            is_limited = bool(length_limits(text))
            plain = _LIMITED.sub(type_name(STRING), text) if is_limited else text
            found, collations, by_bytes = parse_collated_type(plain)
        except InvalidInputError as error:
            raise self._error_in(start, error) from error
        # Do not convert a type with fields to lower case, because this would change field names.
        limited = (text if "<" in text else text.lower()) if is_limited else None
        return WrittenType(found, limited, collations, by_bytes)

    def query(self) -> Query:
        """Read a query, up to the bracket that closes it or the end of the statement."""
        if not self.is_at_query:
            self.fail("expected a query")
        stops = () if self._clauses is None else self._clauses.ends
        return self._checked(self._composed(self._end_of_slice(stops, ends_at_comma=False)))

    def take_clauses(self, keywords: Collection[str]) -> bool:
        """Read `WITH …` and `FROM …` before a statement that is not a query, if they are next.

        Args:
            keywords: the keywords with which a statement can begin.

        Returns:
            Whether a relation was read. If so, INSERT must follow.
        """
        found = leading_clauses(self._words, self._place, keywords)
        if found is None:
            return False
        self._clauses, self._place = found, found.end
        if found.relation is None and not any(map(self.word.says, _AFTER_WITH)):
            shown = f"{', '.join(_AFTER_WITH[:-1])} or {_AFTER_WITH[-1]}"
            self.fail(f"expected a query, {shown} after WITH")
        return found.relation is not None

    def named_query(self, name: QualifiedName) -> Query | None:
        """Return the query that `WITH` defines under a name; None if there is no such query."""
        if self._clauses is None or not self._clauses.has_named(name):
            return None
        if name.version is not None:
            self.fail(f"{name.parts[0]!r} is a query of WITH, which has no versions")
        pieces = self._clauses.of_named(quote_name(name.parts[0]))
        return self._checked(self._joined(pieces, self._place))

    def rows(self) -> tuple[Query, Defaults]:
        """Read a query. If the query is VALUES, its items may be the keyword DEFAULT.

        Returns:
            The query, in which a parameter replaces each DEFAULT. And the names of these
            parameters: for each row and each item in the row, the name, or None if the item is not
            DEFAULT.
        """
        if not self.is_at("VALUES") or not self.is_at_query or self._has_relation:
            return self.query(), ()
        start, end = self._place, self._end_of_slice((), ends_at_comma=False)
        found: list[list[str | None]] = []
        for place, is_first in items_of_values(self._words, start + 1, end):
            word, after = self._words[place : place + 2]
            is_default = word.says("DEFAULT") and (
                place + 1 == end or any(map(after.says, (",", ")")))
            )
            name = f"{_DEFAULT}{len(found)}_{place}" if is_default else None
            if is_default:
                self._marked[word.start] = (str(name), None)
            if is_first:
                found.append([])
            found[-1].append(name)
        query = replace(self.query(), is_of_values=True)
        has_defaults = any(name is not None for row in found for name in row)
        return query, tuple(map(tuple, found)) if has_defaults else ()

    def bracketed_query(self) -> Query:
        """Read a query in brackets."""
        self.expect("(")
        found = self.query()
        self.expect(")")
        return found

    @property
    def _has_relation(self) -> bool:
        return self._clauses is not None and self._clauses.relation is not None

    def _end_of_constant(self) -> int:
        place = self._place
        if any(map(self._words[place].says, "+-:")):
            place += 1
        word = self._words[place]
        is_typed = word.kind == "word" and self._words[place + 1].kind == "text"
        if word.kind == "end":
            self.fail("expected a constant")
        return place + 1 + is_typed

    def _end_of_slice(
        self, stops: tuple[str, ...], *, ends_at_comma: bool = True, ends_at_query: bool = False
    ) -> int:
        ending = (*stops, ";", ",") if ends_at_comma else (*stops, ";")
        place, brackets, cases = self._place, 0, 0
        while (word := self._words[place]).kind != "end":
            is_name = place > 0 and self._words[place - 1].says(".")
            if not brackets and not cases and not is_name:
                is_query = ends_at_query and word.kind == "word" and place > self._place
                if stops_at(self._words, place, ending) or (
                    is_query and begins_query(self._words, place)
                ):
                    break
            if word.kind == "sign":
                brackets += (word.text in OPENING) - (word.text in CLOSING)
                if brackets < 0:
                    break
            elif not is_name:
                cases = max(0, cases + word.says("CASE") - (cases > 0 and word.says("END")))
            place += 1
        return place

    def _begins_query(self, place: int) -> bool:
        return begins_query(self._words, self._after_brackets[place])

    def _slice(self, end: int, subqueries: dict[str, Subquery] | None = None) -> Query:
        """Read a query up to a word. If `subqueries` is set, parameters replace the subqueries."""
        parts = TextParts(self.sql, self.word.start)
        parameters: dict[str, object] = {}
        self._copy(end, parts, parameters, subqueries)
        found = parts.done(self._words[end - 1].end)
        return Query(found.text, parameters, found)

    def _copy(
        self,
        end: int,
        parts: TextParts,
        parameters: dict[str, object],
        subqueries: dict[str, Subquery] | None = None,
    ) -> None:
        """Copy the SQL up to a word. Parts that are not SQL of a query are replaced."""
        while self._place < end:
            word, before = self.word, self._words[self._place - 1]
            if word.start in self._marked:
                name, value = self._marked[word.start]
                # In `?1`, the number must not become a part of the name.
                following = self._words[self._place + 1]
                is_joined = following.start == word.end and following.text[:1].isalnum()
                parts.replace(word.start, word.end, f":{name}{' ' if is_joined else ''}")
                parameters[name] = value
            elif before.says(":") and before.end == word.start and word.text in self._named:
                parameters[word.text] = self._named[word.text]
            elif subqueries is not None and self._is_subquery():
                by = self._subquery(subqueries)
                parts.replace(word.start, self._words[self._place - 1].end, by)
                continue
            self._place += 1

    def _composed(self, end: int) -> Query:
        """Read a query up to a word, and add the clauses before the statement that apply to it."""
        if self._clauses is None:
            return self._slice(end)
        try:
            pieces = self._clauses.of_query(self._words, Span(self._place, end))
        except SyntaxProblem as error:
            raise error_at(self.sql, error.place, error.problem) from error
        return self._joined(pieces, end)

    def _joined(self, pieces: Sequence[Span | str], end: int) -> Query:
        """Build a query from words of the statement and from strings; then continue at a word."""
        start = self.word.start
        parts, parameters = TextParts(self.sql), dict[str, object]()
        for piece in pieces:
            if isinstance(piece, str):
                parts.add(piece, start)
                continue
            self._place = piece.start
            parts.skip_to(self.word.start)
            self._copy(piece.end, parts, parameters)
            last = self._words[piece.end - 1].end
            parts.replace(last, last, "")
        self._place = end
        found = parts.done()
        return Query(found.text, parameters, found)

    def _checked(self, found: Query) -> Query:
        """Check the grammar and the parameters of a query, and return the query."""
        try:
            names = check_query(found.text)
        except SyntaxProblem as error:
            raise error_at(self.sql, found.origin(error.place), error.problem) from error
        for name in sorted(names - found.parameters.keys()):
            place = found.text.find(f":{name}")
            problem = f"the parameter :{name} has no value in `parameters`"
            if alike := [one for one in self._named if name_key(one) == name_key(name)]:
                problem += f"; found {alike[0]!r}: the case of letters counts"
            else:
                problem += similar_to(name, self._named).replace(":", ";", 1)
            raise error_at(self.sql, found.origin(place), problem)
        return found

    def _is_subquery(self) -> bool:
        place = self._place + self.word.says("EXISTS")
        return self._words[place].says("(") and self._begins_query(place)

    def _subquery(self, subqueries: dict[str, Subquery]) -> str:
        """Read a query in brackets; return the parameter that replaces it in the expression."""
        is_list = self._place > 0 and self._words[self._place - 1].says("IN")
        kind = SubqueryKind.LIST if is_list else SubqueryKind.VALUE
        if self.take("EXISTS"):
            kind = SubqueryKind.EXISTS
        self.expect("(")
        name = f"{_SUBQUERY}{len(subqueries)}"
        clauses = self._clauses
        self._clauses = None if clauses is None else clauses.inside
        found = self._checked(self._composed(self._end_of_slice((), ends_at_comma=False)))
        self._clauses = clauses
        self.expect(")")
        subqueries[name] = Subquery(kind, found)
        return f"(:{name})" if is_list else f":{name}"

    def _parsed(self, found: Query, start: int | None = None) -> Expression:
        try:
            # All names of parameters are known, for an error about one that is misspelled.
            return parse_sql(found.text, parameters={**self._named, **found.parameters})
        except InvalidInputError as error:
            shown = error.with_message(_QUERY_NAME.sub("(SELECT …)", str(error)))
            raise self._error_in(self._place if start is None else start, shown) from error

    def _error_in(self, start: int, error: InvalidInputError) -> InvalidInputError:
        return error_at(self.sql, self._words[start].start, str(error))


# --- expressions of statements, in which results replace queries


_ADVICE: Final = "compare with the rows themselves: write it as a MERGE"


def resolved(
    values_of: Callable[[Query], pa.Table], condition: SqlCondition, columns: Collection[str] = ()
) -> Expression:
    """Return a condition as an expression. Its queries are run, and replaced by their results.

    Args:
        values_of: a function that runs a query.
        condition: the condition in the statement.
        columns: the columns of the rows that the condition tests. The name of such a column in
            double quotes is an error, because double quotes enclose strings; so is a test of
            strings alone that has its name.

    Raises:
        InvalidInputError: a query returns more than one column, or several rows where one value is
            required; a query refers to a column of the outer row; or Python cannot represent a
            value.
    """
    # A random name cannot occur in the statement by accident.
    secret = uuid4().hex
    named = {name: f"{name}_{secret}" for name in condition.subqueries}
    marks = {named[name]: one for name, one in condition.subqueries.items()}
    parameters = {**condition.parameters, **named}
    found = parse_sql(condition.text, parameters=parameters, columns=columns)
    if columns:
        check_quoted_names(found, condition.text, columns)
    answers = {mark: answer_of(values_of, one) for mark, one in marks.items()}

    def answered(node: Expression) -> Expression:
        if isinstance(node, In) and len(node.options) == 1:
            (option,) = node.options
            if isinstance(option, Literal) and option.value in answers:
                return _is_in(node.operand, *answers[option.value])
        if isinstance(node, Literal) and isinstance(node.value, str) and node.value in answers:
            return lit(answers[node.value])
        return rebuild(node, answered)

    return answered(found) if marks else found


def answer_of(values_of: Callable[[Query], pa.Table], subquery: Subquery) -> Any:
    """Return the value, or the list of values, that a query in an expression returns.

    Raises:
        InvalidInputError: the query returns more columns or rows than its use allows.
    """
    text = subquery.query.text.strip()
    try:
        rows = values_of(subquery.query)
    except InvalidInputError as error:
        advice = (
            f"the query ({text}) runs alone, without columns of the table that is changed; with "
            "them, write MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x, "
            "or THEN DELETE"
        )
        if "there is no " not in error.args[0]:
            error.add_note(advice)
            raise
        raise error.with_message(f"{error.args[0]}; {advice}") from error.__cause__
    if subquery.kind is SubqueryKind.EXISTS:
        return rows.num_rows > 0
    if subquery.kind is SubqueryKind.LIST:
        return text, [_values(text, rows, place) for place in range(rows.num_columns)]
    if rows.num_columns != 1:
        raise InvalidInputError(
            f"the query ({text}) must return one value, but has "
            f"{counted(rows.num_columns, 'column')}"
        )
    values = _values(text, rows, 0)
    if len(values) > 1:
        raise InvalidInputError(
            f"the query ({text}) must return one value, but has {len(values)} rows"
        )
    return values[0] if values else None


def _is_in(operand: Expression, text: str, columns: Sequence[Sequence[Any]]) -> Expression:
    """Return the condition that a value, or a row of values, is in the result of a query.

    As in Spark, the comparison with a row of a query is NULL if it involves NULL. For a list of
    rows in the SQL itself, Spark has another rule.
    """
    if len(columns) == 1:
        (values,) = columns
        return In(operand, tuple(map(lit, values))) if values else Literal(value=False)
    parts = values_of_row(operand) or ()
    if len(parts) != len(columns):
        raise InvalidInputError(
            f"the query ({text}) has {counted(len(columns), 'column')}, but is compared with "
            f"{len(parts) or 1}: use the same number of values, such as (a, b) IN (…)"
        )
    rows = [
        And(
            tuple(Comparison("=", part, lit(value)) for part, value in zip(parts, row, strict=True))
        )
        for row in zip(*columns, strict=True)
    ]
    if not rows:
        return Literal(value=False)
    return rows[0] if len(rows) == 1 else Or(tuple(rows))


def _values(text: str, rows: pa.Table, place: int) -> list[Any]:
    """Return the values of one column of a query's result as constants."""
    found = rows.column(place)
    # Use Arrow scalars as constants, because Python can represent neither nanoseconds nor all
    # years.
    is_arrow = pt.is_timestamp(found.type) or pt.is_date(found.type)
    values = list(found) if is_arrow else python_values(found, f"the query ({text})", _ADVICE)
    kind = type_of_query(rows.schema.field(place))
    return values if kind is None else [Literal(value, kind) for value in values]
