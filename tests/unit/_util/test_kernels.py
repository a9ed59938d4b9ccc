from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog._util import kernels
from deltalog._util.kernels import arrow, compute, exact_sum


def test_the_kernels_are_pyarrows_own() -> None:
    found: list[Any] = [compute.add, compute.InversePermutationOptions, arrow]
    options: Any = pc  # whose stubs lack some
    assert found == [pc.add, options.InversePermutationOptions, pa]
    with pytest.raises(AttributeError, match="no_such_kernel"):
        getattr(compute, "no_such_kernel")  # noqa: B009  # as a misspelt name does


def test_a_table_of_kernels_imports_none_of_them() -> None:
    code = """if True:
        import sys
        from deltalog._util.kernels import compute
        kernels = {"+": compute.add, "~": compute.invert}
        assert "pyarrow.compute" not in sys.modules
        assert kernels["+"](1, 2).as_py() == 3
        assert compute.invert is sys.modules["pyarrow.compute"].invert
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_constants_do_not_import_pandas() -> None:
    code = """if True:
        import sys
        import pyarrow as pa
        from deltalog._util.kernels import FALSE, TRUE, compute
        numbers = pa.chunked_array([pa.repeat(TRUE, 3).cast(pa.int32()), pa.nulls(1, pa.int32())])
        results = [
            compute.add(numbers, 1),
            compute.fill_null(numbers, 7),
            compute.equal(numbers, 2**40),
            compute.if_else(compute.is_valid(numbers), "yes", "no"),
            compute.fill_null(compute.equal(numbers, 1), False),
        ]
        assert "pandas" not in sys.modules
        import pandas
        assert results == [
            compute.add(numbers, 1),
            compute.fill_null(numbers, 7),
            compute.equal(numbers, 2**40),
            compute.if_else(compute.is_valid(numbers), "yes", "no"),
            compute.fill_null(compute.equal(numbers, 1), False),
        ]
        assert [one.type for one in results][:2] == [pa.int64(), pa.int32()]
        assert compute.add is sys.modules["pyarrow.compute"].add
    """
    subprocess.run([sys.executable, "-c", code], check=True)


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


@pytest.mark.parametrize(
    "numbers",
    [[], [None], [1, None, -3], [2**63 - 1] * 3, [-(2**63)] * 2, [2**62, -(2**62), 5], [7] * 1000],
)
def test_a_sum_does_not_wrap_around(numbers: list[int | None]) -> None:
    expected = sum(number or 0 for number in numbers)
    assert exact_sum(pa.array(numbers, pa.int64())) == expected
    assert exact_sum(pa.chunked_array([numbers, []], pa.int64())) == expected
