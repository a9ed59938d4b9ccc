"""The reader of one statement: its words, and its slices that are expressions, types and queries.

Owns what the grammars of statements share. Every error has its position in the statement.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, parse_sql
from deltalog.expressions.render import quote_name, type_name
from deltalog.expressions.sql import length_limits, parse_collated_type
from deltalog.query.lexer import (
    SyntaxProblem,
    TextParts,
    begins_query,
    error_at,
)
from deltalog.query.names import QualifiedName, Version, version_of
from deltalog.query.translate import check_query
from deltalog.schema.types import STRING
from deltalog.statements.clauses import LeadingClauses, Span, leading_clauses
from deltalog.statements.slices import (
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
from deltalog.statements.words import WordReader

if TYPE_CHECKING:
    from deltalog.expressions import Expression

Parameters = Sequence[object] | Mapping[str, object] | None
T = TypeVar("T")

_AFTER_WITH: Final = ("INSERT", "MERGE", "UPDATE", "DELETE")
_LIMITED: Final = re.compile(r"\b(?:varchar|character|char)\s*\(\s*\d+\s*\)", re.IGNORECASE)
_PARAMETER: Final = "deltalog_parameter_"
_SUBQUERY: Final = "deltalog_query_"
_DEFAULT: Final = "deltalog_default_"


class StatementReader(WordReader):
    """Reads a statement word by word; keywords ignore case.

    Args:
        sql: one statement.
        parameters: values for `?` (a sequence) or `:name` (a mapping).
        takes_foreign: whether the session's engine knows more expressions than we do.

    Raises:
        InvalidInputError: as `split`; or the number of values is not that of the `?`.
    """

    def __init__(
        self, sql: str, parameters: Parameters = None, *, takes_foreign: bool = False
    ) -> None:
        if not isinstance(sql, str):
            raise InvalidInputError(f"expected a statement as a text, found {sql!r}")
        is_right = isinstance(parameters, Sequence | Mapping | None)
        if isinstance(parameters, str | bytes) or not is_right:
            raise InvalidInputError(
                "parameters: expected a list of values for `?`, or a mapping for `:name`, found a "
                f"{type(parameters).__name__}"
            )
        super().__init__(sql)
        self._clauses: LeadingClauses | None = None
        self._takes_foreign = takes_foreign
        # For each word, the first one from it on that opens no bracket.
        self._after_brackets = list(range(len(self._words)))
        for place in range(len(self._words) - 2, -1, -1):
            if self._words[place].says("("):
                self._after_brackets[place] = self._after_brackets[place + 1]
        marks = [word.start for word in self._words if word.says("?")]
        if marks and not isinstance(parameters, Sequence):
            raise error_at(sql, marks[0], "the parameter ? needs a list of values as `parameters`")
        if isinstance(parameters, Sequence) and len(parameters) != len(marks):
            raise InvalidInputError(
                f"cannot run {sql!r}: it has {len(marks)} parameters ?, and {len(parameters)} "
                "values were given"
            )
        self._named = parameters if isinstance(parameters, Mapping) else {}
        values = parameters if isinstance(parameters, Sequence) else ()
        # The place of a `?` in the statement → the name that stands for it, and its value.
        self._marked = {
            place: (f"{_PARAMETER}{number}", value)
            for number, (place, value) in enumerate(zip(marks, values, strict=True))
        }

    @property
    def is_at_query(self) -> bool:
        """Whether a query comes next, in brackets or not."""
        return self._begins_query(self._place)

    def table(self) -> QualifiedName:
        """Read the name of a table: a path, or a name with its parts; `@v3` is a version."""
        parts = self.path("a table")
        if not self.take("@"):
            return QualifiedName(parts)
        word = self.word
        self._place += 1
        try:
            return QualifiedName(parts, version_of(word.text))
        except InvalidInputError as error:
            raise error_at(self.sql, word.start, str(error)) from None

    def alias(self, *stops: str) -> str | None:
        """Read `[AS] name`, if a name comes next and none of these keywords."""
        if self.take("AS"):
            return self.name("an alias")
        is_name = self.word.kind in {"word", "quoted"}
        return self.name() if is_name and not any(map(self.is_at, stops)) else None

    def version(self) -> Version | None:
        """Read `VERSION AS OF 3` or `TIMESTAMP AS OF '…'`, if it comes next."""
        self.take("FOR")
        kind = self.take_one("VERSION AS OF", "SYSTEM_VERSION AS OF", "TIMESTAMP AS OF",
                             "SYSTEM_TIME AS OF")  # fmt: skip
        if kind is None:
            return None
        start = self.word.start
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
                self.sql, start, f"expected a moment such as '2025-01-31', found {value!r}"
            )
        return value  # type: ignore[no-any-return]  # a text, or a moment

    def constant(self) -> Any:
        """Read a constant: a text, a number, a typed literal, or a parameter."""
        start = self.word.start
        found = self._parsed(self._slice(self._end_of_constant()))
        if not isinstance(found, Literal):
            raise error_at(self.sql, start, "expected a constant")
        return found.value

    def text(self, what: str = "a text in quotes") -> str:
        """Read a text."""
        start, found = self.word.start, self.constant()
        if not isinstance(found, str):
            raise error_at(self.sql, start, f"expected {what}, found {found!r}")
        return found

    def integer(self, what: str = "a whole number") -> int:
        """Read a whole number, which may have a sign."""
        start, found = self.word.start, self.constant()
        if not isinstance(found, int) or isinstance(found, bool):
            raise error_at(self.sql, start, f"expected {what}, found {found!r}")
        return found

    def table_at_version(self) -> QualifiedName:
        """Read the name of a table, and its version, which may stand in either form."""
        found, version = self.table(), self.version()
        return found if version is None else QualifiedName(found.parts, version)

    def location_or_table(self) -> QualifiedName:
        """Read the name of a table, or its location as a text."""
        if self.word.kind != "text":
            return self.table()
        return QualifiedName(("delta", self.text("a location")))

    def condition(
        self, *stops: str, ends_at_query: bool = False, by_engine: bool = False
    ) -> SqlCondition:
        """Read an expression, up to one of these keywords, a comma, a closing bracket or the end.

        Inside brackets and CASE … END nothing ends it. Its grammar is checked here, its columns
        when the statement is run.

        Args:
            stops: keywords.
            ends_at_query: whether a query without brackets ends it, too.
            by_engine: whether the session's engine evaluates it, which may know more.
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
        """Read an expression as `condition` does, and return its text: a rule that tables keep."""
        start = self._place
        found = self.condition(*stops)
        if found.parameters or found.subqueries:
            raise error_at(
                self.sql, self._words[start].start,
                "what a table keeps has no parameters and no queries",
            )  # fmt: skip
        return found.text

    def bracketed_source(self) -> str:
        """Read an expression in brackets, and return its text."""
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
        # Names of fields keep their case.
        limited = (text if "<" in text else text.lower()) if is_limited else None
        return WrittenType(found, limited, collations, by_bytes)

    def query(self) -> Query:
        """Read a query: up to the bracket that closes it, or to the end of the statement."""
        if not self.is_at_query:
            self.fail("expected a query")
        stops = () if self._clauses is None else self._clauses.ends
        return self._checked(self._composed(self._end_of_slice(stops, ends_at_comma=False)))

    def take_clauses(self, keywords: Collection[str]) -> bool:
        """Read `WITH …` and `FROM …` before a statement that is no query, if they come next.

        Args:
            keywords: with which statements begin.

        Returns:
            Whether a relation was read, for which statements of INSERT follow.
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
        """Return the query to which `WITH` gives a name; None if it gives the name to none."""
        if self._clauses is None or not self._clauses.has_named(name):
            return None
        if name.version is not None:
            self.fail(f"{name.parts[0]!r} is a query of WITH, which has no versions")
        pieces = self._clauses.of_named(quote_name(name.parts[0]))
        return self._checked(self._joined(pieces, self._place))

    def rows(self) -> tuple[Query, Defaults]:
        """Read a query; in VALUES, an item may be the keyword DEFAULT.

        Returns:
            The query, in which parameters without a value stand for DEFAULT; and for each row its
            items: the name of such a parameter, or None.
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
        """Read up to a word; queries in brackets become parameters if `subqueries` is given."""
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
        """Read up to a word, and replace what is not SQL of a query."""
        while self._place < end:
            word, before = self.word, self._words[self._place - 1]
            if word.start in self._marked:
                name, value = self._marked[word.start]
                parts.replace(word.start, word.end, f":{name}")
                parameters[name] = value
            elif before.says(":") and before.end == word.start and word.text in self._named:
                parameters[word.text] = self._named[word.text]
            elif subqueries is not None and self._is_subquery():
                by = self._subquery(subqueries)
                parts.replace(word.start, self._words[self._place - 1].end, by)
                continue
            self._place += 1

    def _composed(self, end: int) -> Query:
        """Read a query up to a word, with what the clauses before the statement give it."""
        if self._clauses is None:
            return self._slice(end)
        try:
            pieces = self._clauses.of_query(self._words, Span(self._place, end))
        except SyntaxProblem as error:
            raise error_at(self.sql, error.place, error.problem) from error
        return self._joined(pieces, end)

    def _joined(self, pieces: Sequence[Span | str], end: int) -> Query:
        """Put a query together of words of the statement and texts, and go on at a word."""
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
        """Return a query of which the grammar and the parameters are right."""
        try:
            names = check_query(found.text)
        except SyntaxProblem as error:
            raise error_at(self.sql, found.origin(error.place), error.problem) from error
        for name in sorted(names - found.parameters.keys()):
            place = found.text.find(f":{name}")
            problem = f"the parameter :{name} has no value in `parameters`"
            raise error_at(self.sql, found.origin(place), problem)
        return found

    def _is_subquery(self) -> bool:
        place = self._place + self.word.says("EXISTS")
        return self._words[place].says("(") and self._begins_query(place)

    def _subquery(self, subqueries: dict[str, Subquery]) -> str:
        """Read a query in brackets, and return what stands for it in the expression."""
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
            return parse_sql(found.text, parameters=found.parameters)
        except InvalidInputError as error:
            raise self._error_in(self._place if start is None else start, error) from error

    def _error_in(self, start: int, error: InvalidInputError) -> InvalidInputError:
        return error_at(self.sql, self._words[start].start, str(error))
