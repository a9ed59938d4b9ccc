"""Names of a package that load what they are of when they are first used."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import pytest

from deltalog._util.lazy_names import names_on_demand

ORIGINS = {"math": ["sqrt", "floor"]}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("lazy")
    monkeypatch.setitem(sys.modules, "lazy", module)
    vars(module)["__getattr__"], vars(module)["__dir__"] = names_on_demand("lazy", ORIGINS, ["of"])
    return module


def test_a_name_is_loaded_once(package: ModuleType) -> None:
    assert "sqrt" not in vars(package)
    assert package.sqrt is math.sqrt
    assert vars(package)["sqrt"] is math.sqrt
    assert "floor" not in vars(package)


def test_a_module_is_imported(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = ModuleType("lazy.of")
    monkeypatch.setitem(sys.modules, "lazy.of", inner)
    assert package.of is inner


def test_dir_gives_the_public_names(package: ModuleType) -> None:
    assert dir(package) == ["floor", "sqrt"]


def test_other_names_are_refused_as_python_refuses_them(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=r"^module 'lazy' has no attribute 'cbrt': it has"):
        _ = package.cbrt
    assert not hasattr(package, "cbrt")
