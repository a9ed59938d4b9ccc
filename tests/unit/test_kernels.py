from __future__ import annotations

import ast
import inspect
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltalog import kernels
from deltalog.kernels import arrow, compute


def test_the_kernels_are_pyarrows_own() -> None:
    owners: list[Any] = [compute, arrow]
    assert owners == [pc, pa]


def test_every_kernel_that_is_typed_exists_in_pyarrow() -> None:
    """The protocol is only read by type checkers, so nothing else would notice a misspelt name."""
    tree = ast.parse(inspect.getsource(kernels))
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for name, module in (("_Compute", pc), ("_Arrow", pa)):
        body = classes[name].body
        typed = [node.target for node in body if isinstance(node, ast.AnnAssign)]
        stated = {target.id for target in typed if isinstance(target, ast.Name)}
        stated |= {node.name for node in body if isinstance(node, ast.FunctionDef)}
        assert stated
        assert {kernel for kernel in stated if not hasattr(module, kernel)} == set()
