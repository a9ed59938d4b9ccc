"""No module needs itself: imports in functions count, and so do modules that a string names.

Imports for type checkers do not count here; `lint-imports` counts those too, and no strings. Nor
does the table of `_util/moved.py`: only old names are looked up in it, and our own code has none
(one would count as an import of the root).
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "deltalog"
ROOT = "deltalog"
# `deltalog.storage.stores.s3`, or with the name of a class behind a dot or a colon.
MODULE_NAME = re.compile(r"deltalog(\.\w+)+(:\w+)?")

# Files that import modules of names that they get, and why.
IMPORT_BY_NAME = {
    "_util/cards.py": "an optional library",
    "_util/kernels.py": "pyarrow's kernels, by a constant",
    "_util/lazy_names.py": "names that packages list, and those that the root states",
    "_util/moved.py": "modules under their old names",
    "data/scan/rows.py": "an optional library",
    "spark/session/workers.py": "code that is sent to workers, which may have no deltalog",
    "storage/stores/filesystems.py": "the classes of store kinds",
}
# Files that call what the root states for them (`_util/lazy_names.higher`), and what that is.
CALL_HIGHER = {
    "catalogs/protocol.py": "transactions of a catalog, which `table` makes",
    "data/scan/plan.py": "scans that Polars reads, with plans of scans",
    "data/write/source.py": "tables of deltalake, which `table` opens at their version",
    "expressions/nodes.py": "the SQL of an expression in an error, which `render` writes",
    "schema/types.py": "the types of SQL and Arrow in an error, which other folders parse",
    "sharing/client/follow.py": "frames of Spark, which `spark` makes",
    "sharing/client/snapshots.py": "frames of Spark, which `spark` makes",
}
# Files that write into the `__dict__` of other objects, and why.
WRITE_ATTRIBUTES = {
    "_util/cached.py": "a cached property keeps its value there",
    "spark/session/workers.py": "code that unpickles on workers, which may have no deltalog",
}
CHANGES_OF_DICTS = {"clear", "pop", "popitem", "setdefault", "update"}


def _module(path: Path) -> str:
    parts = [ROOT, *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(path): path for path in sorted(SOURCE.rglob("*.py"))}


def _existing(name: str) -> str:
    """The module of a name, which may go on with names in the module."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def _for_the_program(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those for type checkers, and names of loggers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for other in node.orelse:
            yield from _for_the_program(other)
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _for_the_program(child)


def _named(node: ast.AST) -> Iterator[str]:
    """The modules of deltalog that one node imports, or names in a string."""
    match node:
        case ast.Import(names=names):
            yield from (_existing(one.name) for one in names if _is_ours(one.name))
        case ast.ImportFrom(module=str(module), names=names) if _is_ours(module):
            yield from (_existing(f"{module}.{one.name}") for one in names)
        case ast.Constant(value=str(text)) if MODULE_NAME.fullmatch(text):
            found = _existing(text.partition(":")[0])
            if found != ROOT:  # else it is the name of something else, such as a setting
                yield found


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == ROOT


def _cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other."""
    ranks: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found = []

    def visit(node: str) -> None:
        ranks[node] = lowest[node] = len(ranks)
        waiting.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in ranks:
                visit(other)
            if other in waiting:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == ranks[node]:
            place = waiting.index(node)
            group, waiting[place:] = waiting[place:], []
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in ranks:
            visit(node)
    return found


def _imported_by_name(tree: ast.AST) -> Iterator[int]:
    """The lines that import a module of deltalog, or of a computed name, by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {
            "import_module",
            "__import__",
        }:
            match node.args:
                case [ast.Constant(value=str(name)), *_] if not _is_ours(name):
                    pass
                case _:
                    yield node.lineno


def _root_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _patches(tree: ast.AST) -> Iterator[int]:
    """The lines that set attributes of what is imported from deltalog."""
    imported = {
        one.asname or one.name.partition(".")[0]
        for node in ast.walk(tree)
        for one in getattr(node, "names", ())
        if (isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""))
        or (isinstance(node, ast.Import) and _is_ours(one.name))
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                if _root_name(node) in imported:
                    yield node.lineno
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[target, *_]):
                if _root_name(target) in imported:
                    yield node.lineno


def _dicts_of_others(tree: ast.AST) -> Iterator[int]:
    """The lines that write into the `__dict__` of another object than `self`."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Subscript(value=target, ctx=ast.Store() | ast.Del())
                | ast.Call(func=ast.Attribute(value=target, attr=_))
            ):
                changes = isinstance(node, ast.Subscript) or (
                    isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES_OF_DICTS
                )
                if changes and _is_dict_of_another(target):
                    yield node.lineno


def _is_dict_of_another(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=owner, attr="__dict__"):
            return ast.unparse(owner) != "self"
        case ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return ast.unparse(owner) != "self"
        case _:
            return False


class Facts(NamedTuple):
    """What one module does; trees of all modules would take much memory."""

    imports: frozenset[str]
    imports_by_name: bool
    calls_higher: bool
    patches: list[int]
    dicts: list[int]


@cache
def _facts() -> dict[str, Facts]:
    found = {}
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text("utf-8"))
        imports = {one for node in _for_the_program(tree) for one in _named(node)}
        found[name] = Facts(
            frozenset(imports - {name}),
            any(_imported_by_name(tree)),
            any(isinstance(node, ast.alias) and node.name == "higher" for node in ast.walk(tree)),
            list(_patches(tree)),
            list(_dicts_of_others(tree)),
        )
    return found


def _files(names: Iterable[str]) -> set[str]:
    return {MODULES[name].relative_to(SOURCE).as_posix() for name in names}


def test_the_search_finds_cycles() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"f"}, "f": {"e"}}
    assert _cycles(graph) == [["e", "f"], ["a", "b", "c"]]
    assert _cycles({"a": {"b", "c"}, "b": {"c"}}) == []


def test_imports_in_functions_and_in_strings_count() -> None:
    tree = ast.parse(
        "if TYPE_CHECKING:\n    import deltalog.cli\n"
        "def load():\n    from deltalog.data.scan import plan\n    from deltalog import sql\n"
        "names = {'A': 'deltalog.storage.stores.s3:S3Files', 'b': 'deltalog.fsync'}\n"
        "log = logging.getLogger('deltalog.spark')\n"
    )
    found = {name for node in _for_the_program(tree) for name in _named(node)}
    assert found == {"deltalog.data.scan.plan", ROOT, "deltalog.storage.stores.s3"}


def test_no_folder_needs_itself() -> None:
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for name, facts in _facts().items():
        needed = {".".join(one.split(".")[:2]) for one in facts.imports}
        folders[".".join(name.split(".")[:2])] |= needed
    assert _cycles({name: needed - {name} for name, needed in folders.items()}) == []


def test_no_module_needs_itself() -> None:
    assert _cycles({name: facts.imports for name, facts in _facts().items()}) == []


def test_imports_by_name_are_those_of_other_libraries() -> None:
    found = _files(name for name, facts in _facts().items() if facts.imports_by_name)
    assert found == set(IMPORT_BY_NAME)


def test_few_files_call_what_is_above_them() -> None:
    found = _files(name for name, facts in _facts().items() if facts.calls_higher)
    assert found == set(CALL_HIGHER)


@pytest.mark.parametrize(
    ("code", "patches", "dicts"),
    [
        ("from deltalog.a import B\nB.c = d", [2], []),
        ("from deltalog import a\na.B.c = d", [2], []),
        ("import deltalog.a as b\nsetattr(b, name, c)", [2], []),
        ("from other import B\nB.c = d\nclass C: pass\nC.d = e", [], []),
        ("self.__dict__['a'] = b\nprint(vars(c)['d'])", [], []),
        ("a.__dict__['b'] = c\nvars(a)['b'] = c\nvars(a).update(b)", [], [1, 2, 3]),
    ],
)
def test_the_rules_find_what_they_forbid(code: str, patches: list[int], dicts: list[int]) -> None:
    tree = ast.parse(code)
    assert list(_patches(tree)) == patches
    assert list(_dicts_of_others(tree)) == dicts


def test_no_class_or_module_is_changed_by_another_module() -> None:
    found = [f"{name}:{line}" for name, facts in _facts().items() for line in facts.patches]
    assert found == []


def test_no_object_is_changed_behind_its_back() -> None:
    found = _files(name for name, facts in _facts().items() if facts.dicts)
    assert found == set(WRITE_ATTRIBUTES)
