"""The tokens of Spark SQL for sqlglot.

Contains quotes, escapes, comments, numbers and keywords. An unexpected character between tokens is
an error, and every error has its position.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.expressions.render import begins_literal, begins_number
from deltalog.expressions.sql_constants import NUMBER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

NAME: Final = re.compile(r"[^\W\d]\w*")
_GAP: Final = re.compile(r"\s*")
_CHARACTERS: Final = "()[],.-+*/%=<>&|^~!?:'\"`"
_OPERATORS: Final = ("==", "<>", "!=", "<=", ">=", "<=>", "||", "::", "->")
# The keywords of the grammar. Soft keywords may also be names.
_KEYWORDS: Final = ("AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "LIKE", "BETWEEN",
                    "CASE", "WHEN", "THEN", "ELSE", "FROM", "SELECT")  # fmt: skip
_SOFT_KEYWORDS: Final = ("ILIKE", "RLIKE", "REGEXP", "ESCAPE", "DIV", "INTERVAL", "AS", "END",
                         "DISTINCT", "ANY", "SOME", "ALL", "UNKNOWN")  # fmt: skip
_OF_CASE: Final = frozenset({TokenType.WHEN, TokenType.THEN, TokenType.ELSE})
_NAME_FOLLOWS: Final = frozenset({TokenType.DOT, TokenType.COLON})


_THOUSANDS: Final = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_CLAUSE: Final = re.compile(
    r"""
    (?P<plain> (?:GROUP|CLUSTER|DISTRIBUTE|SORT|PARTITION)\s+BY | LATERAL\s+VIEW | HAVING | QUALIFY
      | OFFSET | FETCH | WINDOW | TABLESAMPLE | PIVOT | UNPIVOT | UNION | INTERSECT | EXCEPT
      | MINUS (?=\s+(?:ALL\s+|DISTINCT\s+)?\(?\s*SELECT\b) )\b
    | (?:(?:NATURAL|LEFT|RIGHT|FULL|INNER|CROSS|OUTER|SEMI|ANTI)\s+)*JOIN\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PATTERN: Final = "a pattern has quotes, as in name LIKE 'n%'"
_FUNCTIONS: Final = {
    "CONTAINS": "contains(name, 'n')",
    "STARTSWITH": "startswith(name, 'n')",
    "ENDSWITH": "endswith(name, 'n')",
    "STARTS_WITH": "startswith(name, 'n')",
    "ENDS_WITH": "endswith(name, 'n')",
    "MATCHES": "name RLIKE 'pattern'",
    "ISIN": "name IN ('a', 'b')",
}
_DOUBLED_SIGNS: Final = {
    "&&": "write AND",
    "**": "write power(base, exponent)",
    "//": "write a div b; a comment begins with --",
    **dict.fromkeys(("===", "= ="), "write ="),
    **dict.fromkeys(("=!", "=!=", "==!", "!==", "<>=", "=<>", "! ="), "write !="),
    **dict.fromkeys(("< >", "><"), "write <>"),
    "> =": "write >=",
    "< =": "write <=",
}
# Tokens of other dialects → what to write instead, at the token, and after the token.
_AT: Final = {
    "~": "a regular expression is name RLIKE 'pattern'",
    "!": "write !=, or NOT before LIKE, IN and BETWEEN",
    ":": "a field of a struct is info.city; only a value can be a parameter, such as :x",
    "NOT": "write IS NOT NULL, NOT IN (…) or NOT LIKE",
    "->": "a field of a struct is info.city",
    "LIMIT": "a condition has no LIMIT",
    "ISNULL": "write IS NULL",
    "NOTNULL": "write IS NOT NULL",
    "GLOB": "write LIKE, as in name LIKE 'a%'",
    "SIMILAR": "a regular expression is name RLIKE 'pattern'",
    "ORDER": "a condition has no ORDER BY",
    "%": "a parameter is written ? (with a list of values) or :name (with a dictionary)",
    "SELECT": "deltalog.sql runs statements with subqueries, such as DELETE FROM t WHERE id IN "
    "(SELECT …), and MERGE compares rows with those of another table",
    "FROM": "to use the rows of another table, merge them: MERGE INTO … USING …",
    "PRIMARY": "a table has no such keys or indexes; table.alter.set_key_index(columns) makes "
    "look-ups of keys fast",
}
_AFTER: Final = {
    "WHERE": "leave out WHERE",
    "IN": "the options of IN are in round brackets, as in id IN (1, 2); array_contains(tags, 'a') "
    "looks into an array",
}
SIGNS: Final = {
    ";": "leave it out",
    "{": "a list of values is in round brackets, as in id IN (1, 2); a parameter is written :x, "
    "with parameters={'x': value}",
    **dict.fromkeys("$}@", "a parameter is written :x, with parameters={'x': value}"),
    **dict.fromkeys(
        "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4",
        "it is a quote of a text program; write straight quotes, as in 'text'",
    ),
}
"""Characters of other dialects and programs → what to write instead."""
DOUBLED: Final = (
    "inside of a string, ' is written twice, as in 'O''Brien'; a parameter needs no quotes"
)
"""What to write for a string that contains a quote."""


def advice_at(token: Token | None, before: Token | None) -> str:
    """Return what to write instead of other dialects' syntax at a token, or before it."""
    if before and (between := advice_between(before.text, token.text if token else "")):
        return f"; {between}"
    for one, table in ((token, _AT), (before, _AFTER)):
        if one and one.token_type not in {TokenType.STRING, TokenType.IDENTIFIER}:
            advice = table.get(one.text.upper())
            if advice:
                return f"; {advice}"
    return ""


def advice_between(before: str, after: str) -> str:
    """Return what to write instead of operators that Spark lacks; empty if they have none.

    Args:
        before: the token before the error.
        after: the token at the error; empty at the end.
    """
    before, after = before.upper(), after.upper()
    if after in _FUNCTIONS:
        return f"there is no such operator; write {_FUNCTIONS[after]}"
    if before in {"LIKE", "ILIKE"}:
        return _PATTERN
    if before == "%" and not after:
        return f"% computes a remainder; {_PATTERN}"
    if before == "=" and after in {"<", ">"}:
        return f"write {after}="
    for doubled in (before + after, f"{before} {after}"):
        if instead := _DOUBLED_SIGNS.get(doubled):
            return instead
    if before == "INTERVAL" and NAME.fullmatch(after):
        return f"for a number in a column, write timestampadd(DAY, {after.lower()}, moment)"
    return ""


def advice_on_thousands(sql: str, place: int) -> str:
    """Return what to write if an error is in a number such as `1,000`; empty if it is not."""
    for found in _THOUSANDS.finditer(sql):
        if found.start() <= place < found.end():
            return f"a number has no separator of thousands: {found[0].replace(',', '')}"
    return ""


def advice_on_clause(sql: str, place: int) -> str:
    """Return what to write instead of a clause of a query after a condition; empty for others."""
    found = _CLAUSE.match(sql, place)
    if found is None:
        return ""
    clause = " ".join(found["plain"].upper().split()) if found["plain"] else "JOIN"
    return f"a condition has no {clause}; deltalog.sql runs queries"


def error_at(sql: str, start: int, source: str, problem: str) -> InvalidInputError:
    """Return an error with its position in the SQL; the caller raises it."""
    shown = f" ({source})" if source else ""
    return InvalidInputError(
        f"cannot read the SQL {sql!r} at character {start + 1}{shown}: {problem}"
    )


def retag_for_deltalake(sql: str, tokens: list[Token], columns: Collection[str]) -> None:
    """Retag column names in double quotes as names, and `int'10'` as a typed literal.

    Args:
        sql: the SQL of the tokens.
        tokens: the tokens, changed in place.
        columns: the columns of the table, in lower case. Next to a dot, a token in double quotes
            is always a name, because a string is not possible there.
    """
    kinds = [None, *(token.token_type for token in tokens), None]
    for place, token in enumerate(tokens):
        if token.token_type is not TokenType.STRING:
            continue
        before, after = kinds[place], kinds[place + 2]
        if sql[token.start] == '"':
            if name_key(token.text) in columns or TokenType.DOT in (before, after):
                token.token_type = TokenType.IDENTIFIER
        elif before is TokenType.VAR and begins_number(tokens[place - 1].text):
            tokens[place - 1].token_type = TokenType.INTRODUCER


class SparkTokenizer(Spark.Tokenizer):
    """sqlglot's tokenizer with Spark's quotes and escapes; it skips no unexpected characters."""

    SINGLE_TOKENS: ClassVar = {
        char: token for char, token in Tokenizer.SINGLE_TOKENS.items() if char in _CHARACTERS
    }
    KEYWORDS: ClassVar = {
        word: Spark.Tokenizer.KEYWORDS[word] for word in (*_OPERATORS, *_KEYWORDS, *_SOFT_KEYWORDS)
    }
    # Inside quotes, a doubled quote is one quote character.
    STRING_ESCAPES: ClassVar = ["\\", "'", '"']
    NESTED_COMMENTS: ClassVar[bool] = False
    # Do not convert `5L` to a cast, as sqlglot does, because `sql_constants` parses it.
    NUMERIC_LITERALS: ClassVar[dict[Any, Any]] = {}
    COMMANDS: ClassVar[set[Any]] = set()

    def tokenize(self, sql: str) -> list[Token]:
        """Split a string into tokens.

        Raises:
            InvalidInputError: a character starts no token, or a quote is not closed.
        """
        sql = without_comments(sql)
        try:
            raw = super().tokenize(sql)
        except TokenError as error:
            # Only the private core of the tokenizer contains the position of the invalid token.
            start = self._core._start  # noqa: SLF001
            raise _no_token(sql, start) from error
        tokens: list[Token] = []
        end = 0
        for token in raw:
            _check_gap(sql, end, token.start)
            _check_source(sql, token)
            _retag(sql, tokens, token)
            end = token.end + 1
        _check_gap(sql, end, len(sql))
        _rename_outside_of_case(tokens)
        return tokens


# The types of tokens that may be column names.
NAMES: Final = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        *(SparkTokenizer.KEYWORDS[word] for word in _SOFT_KEYWORDS),
    }
)


def _rename_outside_of_case(tokens: list[Token]) -> None:
    """Retag WHEN, THEN and ELSE outside of CASE as names, because Spark accepts them as columns."""
    depth = 0
    for token in tokens:
        if token.token_type is TokenType.CASE:
            depth += 1
        elif token.token_type is TokenType.END:
            depth = max(depth - 1, 0)
        elif depth == 0 and token.token_type in _OF_CASE:
            token.token_type = TokenType.VAR


def _check_gap(sql: str, start: int, end: int) -> None:
    gap = _GAP.match(sql, start, end)
    if gap is None or gap.end() < end:
        raise _no_token(sql, gap.end() if gap else start)


def _check_source(sql: str, token: Token) -> None:
    first = sql[token.start]
    match token.token_type:
        case TokenType.VAR:
            if NUMBER.fullmatch(token.text):
                token.token_type = TokenType.NUMBER
                return
            name = NAME.match(token.text)
            if name is None or name.end() < len(token.text):
                raise _no_token(sql, token.start + (name.end() if name else 0))
        case TokenType.NUMBER:
            if not NUMBER.fullmatch(token.text):
                raise _no_token(sql, token.start)
        case TokenType.IDENTIFIER if first == "`":
            if not token.text:
                raise error_at(sql, token.start, "``", "a name in backticks is empty")
        case TokenType.HEX_STRING | TokenType.IDENTIFIER if first == "0":
            raise _no_token(sql, token.start)
        case TokenType.RAW_STRING:
            token.token_type = TokenType.STRING


def _retag(sql: str, tokens: list[Token], token: Token) -> None:
    """Append a token, retagged as a keyword or name depending on the previous token."""
    kind = token.token_type
    last = tokens[-1] if tokens else None
    before = last.token_type if last else None
    if kind is TokenType.STRING:
        if last and before is TokenType.VAR and begins_literal(last.text):
            last.token_type = TokenType.INTRODUCER
    elif kind is TokenType.NUMBER:
        if last and before is TokenType.DOT:
            if last.end + 1 < token.start:
                raise error_at(sql, token.start, token.text, "expected a name after the dot")
            tokens.pop()
            token.start, token.text = last.start, f".{token.text}"
    elif before in _NAME_FOLLOWS and kind is not TokenType.IDENTIFIER and NAME.match(token.text):
        token.token_type = TokenType.VAR
    tokens.append(token)


def _no_token(sql: str, position: int) -> InvalidInputError:
    char = sql[position]
    if char in "'\"`":
        problem = f"the quote {char} is never closed"
        problem += f"; {DOUBLED}" if char == "'" else ""
    elif sql.startswith("/*", position):
        problem = "the comment is never closed"
    elif char.isdigit():
        problem = "this is not a number; put a name that begins with a digit in backticks"
    elif char in "xX":
        problem = "X'…' needs hexadecimal digits and a closing quote"
    else:
        problem = f"{char!r} has no meaning in an expression"
        problem += f"; {SIGNS[char]}" if char in SIGNS else ""
    return error_at(sql, position, char, problem)


def check_double_quotes(sql: str, tokens: list[Token], columns: Mapping[str, str]) -> None:
    """Refuse strings in double quotes that are names of columns.

    Raises:
        InvalidInputError: a string is the name of a column.
    """
    for token in tokens:
        if token.token_type is not TokenType.STRING or sql[token.start] != '"':
            continue
        column = columns.get(name_key(token.text))
        if column is not None:
            raise error_at(
                sql, token.start, sql[token.start : token.end + 1],
                f"double quotes mean a string, but {column!r} is a column: write `{column}` for "
                f"the column, or '{token.text}' for the string",
            )  # fmt: skip


# --- Comments in SQL


COMMENT_LINE: Final = r"--(?:\\\n|[^\r\n])*"
"""A pattern for a comment that ends at the end of its line."""

_PART: Final = re.compile(
    rf"""
    (?P<kept> (?<!\w)[rR]'[^']*' | (?<!\w)[rR]"[^"]*" | '(?:[^'\\]|\\.|'')*'
      | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*` )
  | (?P<line> {COMMENT_LINE} )
  | (?P<opening> /\* )
    """,
    re.VERBOSE | re.DOTALL,
)
_BORDER: Final = re.compile(r"/\*|\*/")


def end_of_comment(sql: str, start: int) -> int | None:
    """Return the position after a comment, which may be nested; None if it is not closed."""
    depth = 0
    for sign in _BORDER.finditer(sql, start):
        depth += 1 if sign[0] == "/*" else -1
        if not depth:
            return sign.end()
    return None


def without_comments(sql: str) -> str:
    """Replace each character of a comment by a space, so that positions do not change.

    A comment that is not closed remains in the string.
    """
    if "--" not in sql and "/*" not in sql:
        return sql
    parts, place = [], 0
    while (found := _PART.search(sql, place)) is not None:
        end: int | None = found.end()
        if found.lastgroup == "opening":
            end = end_of_comment(sql, found.start())
            if end is None:
                break
        is_kept = found.lastgroup == "kept"
        parts.append(sql[place : end if is_kept else found.start()])
        parts.append("" if is_kept else " " * (end - found.start()))  # type: ignore[operator]
        place = end  # type: ignore[assignment]
    return "".join((*parts, sql[place:]))
