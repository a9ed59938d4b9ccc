"""The small changes that a careless hand could make to a module, one at a time.

Left out is what decides nothing: annotations, docstrings, decorators, texts, log lines, the
arguments of an error, `strict=` of a zip.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
LOGGERS: Final = {"_log", "_LOG", "log", "logger", "_logger", "_LOGGER"}
NOT_ENTERED: Final = {"annotation", "returns", "decorator_list", "type_params", "bases"}
HAS_MUTANTS_OF_ITS_OWN: Final = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module. Positions are bytes of its source."""

    module: str  # path below src/deltalog
    function: str  # names joined by dots; "" at the module's level
    line: int
    was: str  # the line, without the space around it
    now: str
    start: int
    end: int
    text: str  # what comes in between

    def applied_to(self, source: bytes) -> bytes:
        """Return the module's source with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants_of(module: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a module, in the order of its text."""
    lines = source.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    found = {}
    for function, node in _nodes(ast.parse(source), ""):
        for target, changed in _changes(node):
            if changed == ast.unparse(target):
                continue
            text = f"({changed})" if isinstance(target, ast.expr) else changed
            first, last = target.lineno - 1, (target.end_lineno or 0) - 1
            start, end = (
                starts[first] + target.col_offset,
                starts[last] + (target.end_col_offset or 0),
            )
            before, after = source[starts[first] : start], source[end : starts[last + 1]]
            found[start, end, text] = Mutant(
                module=module,
                function=function,
                line=target.lineno,
                was=lines[first].decode().strip(),
                now=(before.decode() + text + after.decode()).strip(),
                start=start,
                end=end,
                text=text,
            )
    return [found[key] for key in sorted(found)]


def _nodes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield what may be changed, with the function that it is in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    yield function, node
    if isinstance(node, ast.Raise):
        return
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in NOT_ENTERED and _decides(child):
                yield from _nodes(child, function)


def _decides(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assert() | ast.JoinedStr():
            return False
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name not in LOGGERS
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name))):
            return name not in {"AssertionError", "NotImplementedError"}
        case ast.Call(func=ast.Name(id="cast" | "isinstance" | "issubclass" | "field")):
            return False
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.If(test=ast.Name("TYPE_CHECKING")):
            return False
        case ast.keyword(arg="strict"):
            return False
        case _:
            return True


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what to replace, and with what."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, HAS_MUTANTS_OF_ITS_OWN):
                yield test, f"not ({ast.unparse(test)})"
        case ast.comprehension(ifs=conditions):
            for condition in conditions:
                yield condition, "True"
    if isinstance(node, ast.stmt):
        for text in _statements(node):
            yield node, text
    elif isinstance(node, ast.expr):
        for expression in _expressions(node):
            yield node, ast.unparse(expression)


def _statements(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Return(value=None) | ast.Break():
            yield "pass"
        case ast.Return():
            yield "return None"
        case ast.Continue():
            yield "break"
            yield "pass"
        case ast.AugAssign(target=target, op=operator, value=value):
            if type(operator) in ARITHMETIC:
                yield ast.unparse(ast.AugAssign(target, ARITHMETIC[type(operator)](), value))


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare() | ast.BoolOp():
            yield from _conditions(node)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=binary, right=right) if type(binary) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(binary)](), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Call():
            yield from _calls(node)


def _conditions(node: ast.Compare | ast.BoolOp) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = [*node.ops[:at], COMPARISONS[type(operator)](), *node.ops[at + 1 :]]
            yield ast.Compare(node.left, changed, node.comparators)
        return
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for at in range(len(node.values)):
        rest = [*node.values[:at], *node.values[at + 1 :]]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    if isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield ast.Call(ast.Name(CALLS[node.func.id]), node.args, node.keywords)
    for at, keyword in enumerate(node.keywords):
        if keyword.arg not in {None, "strict"}:
            rest = [*node.keywords[:at], *node.keywords[at + 1 :]]
            yield ast.Call(node.func, node.args, rest)
