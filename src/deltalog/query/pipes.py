"""Operators of pipe syntax that sqlglot's grammar lacks: SET, DROP, and what follows VALUES.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

_ALL: Final = exp.Star()


class PipeParser(SparkParser):
    """Spark's grammar with these operators."""

    PIPE_SYNTAX_TRANSFORM_PARSERS: ClassVar = {
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
        """Read UNION, EXCEPT or INTERSECT; sqlglot only knows queries in brackets behind them."""
        found: Any = self.parse_set_operation(this=query)
        if found is None:
            return None
        query.pop()
        left: Any = self._build_pipe_cte(query, [_ALL.copy()])
        found.set("with_", left.args["with_"].pop())
        found.set("this", left)
        return self._build_pipe_cte(found, [_ALL.copy()])

    def _piped_set(self, query: Any) -> Any:
        """Read `SET column = value, …`; a value may name the columns that are set before it."""
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
        """Return the query of all columns but some, or with other values of some."""
        if query.expressions != [_ALL]:
            query = self._build_pipe_cte(query, [_ALL.copy()])
        return self._build_pipe_cte(query.select(star, append=False), [_ALL.copy()])

    def _is_piped(self) -> bool:
        return bool(self._match(TokenType.PIPE_GT, advance=False))
