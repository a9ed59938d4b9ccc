"""Which changes are made, and where none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.equivalents import equivalents, identity
from tests.mutation.operators import mutants_of

SOURCE = Path(__file__).resolve().parents[2] / "src" / "deltalog"


def changed(source: str) -> list[str]:
    """The source after each change of it."""
    data = source.encode()
    return [mutant.applied_to(data).decode() for mutant in mutants_of("m.py", data)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["(a <= b)"]),
        ("a == b != c", ["(a != b != c)", "(a == b == c)"]),
        ("a is not None", ["(a is None)"]),
        ("a in b", ["(a not in b)"]),
        ("a and b", ["(a or b)", "(a)", "(b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = -a", ["x = (a)"]),
        ("a // b", ["(a * b)"]),
        ("é + 1", ["(é - 1)", "é + (0)", "é + (2)"]),
        ("x = 7", ["x = (6)", "x = (8)"]),
        ("x = True", ["x = (False)"]),
        ("x = min(a)", ["x = (max(a))"]),
        ("x = any(a)", ["x = (all(a))"]),
        ("x = f(a, b=c)", ["x = (f(a))"]),
        ("x = zip(a, b, strict=True)", []),
        ("f(a)", ["pass"]),
        ("_log.info(a)", []),
        ("a += b", ["a -= b"]),
        ("x = a if b else c", ["x = a if (not (b)) else c"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if (True)]"]),
        ("if a:\n    raise E(1)", ["if (not (a)):\n    raise E(1)", "if a:\n    pass"]),
        ("def f():\n    return a", ["def f():\n    return None"]),
        ("def f():\n    return", ["def f():\n    pass"]),
        ("for a in b:\n    continue", ["for a in b:\n    break", "for a in b:\n    pass"]),
        ('"""Says 1."""\nx: Literal[1]\nassert 1\ny = f"{1}"', []),
        ("@cache(1)\ndef f(a: g(1)) -> h(1): ...", []),
    ],
)
def test_what_is_changed(source: str, expected: list[str]) -> None:
    assert sorted(changed(source)) == sorted(expected)


def test_a_mutant_knows_its_place() -> None:
    source = (
        b"class A:\n    def f(self):\n        return (\n            a\n            < b\n        )"
    )
    compared, returned = sorted(mutants_of("log/m.py", source), key=lambda mutant: -mutant.line)
    assert (compared.module, compared.function, compared.line) == ("log/m.py", "A.f", 4)
    assert (compared.was, compared.now) == ("a", "(a <= b)")
    assert (returned.line, returned.was, returned.now) == (3, "return (", "return None")


def test_the_mutants_that_change_nothing_still_exist_and_have_reasons() -> None:
    listed = equivalents()
    modules = {known.module for known in listed}
    found = {
        identity(mutant)
        for module in modules
        for mutant in mutants_of(module, (SOURCE / module).read_bytes())
    }
    assert listed.keys() - found == set()
    assert all(reason.strip() for reason in listed.values())
