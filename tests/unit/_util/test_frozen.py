"""Lists and dicts that cannot be changed: equal to others, and copied to others."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson
import pytest

from deltalog import Field
from deltalog._util.cached import FrozenDict, FrozenList, frozen
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions import Metadata


def test_it_is_equal_to_a_list_and_to_a_tuple_of_the_same_items() -> None:
    found = FrozenList(["a", "b"])
    assert found == ["a", "b"]
    listed = ["a", "b"]
    assert listed == found
    assert found == ("a", "b")
    assert found != ["b", "a"]
    assert found != "ab"
    assert hash(found) == hash(("a", "b"))


def test_a_list_that_is_added_gives_a_list() -> None:
    found = FrozenList([1])
    more, two, none = [0], (2,), "x"
    assert (type(found + more), found + more) == (list, [1, 0])
    assert (type(more + found), more + found) == (list, [0, 1])
    assert found + two == (1, 2)
    with pytest.raises(TypeError):
        found + none


def test_it_is_pickled_and_copied_whole() -> None:
    found = FrozenList([1, [2]])
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == [1, [2]]
    assert repr(found) == "(1, [2])"


def test_nothing_stays_nothing() -> None:
    assert frozen(None) is None
    assert frozen(iter("ab")) == ["a", "b"]


CHANGES: list[Callable[[Any], object]] = [
    lambda d: d.update(a=2),
    lambda d: d.__setitem__("a", 2),
    lambda d: d.__delitem__("a"),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("b", 2),
    lambda d: d.clear(),
    lambda d: d.__ior__({"a": 2}),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_dict_cannot_be_changed(change: Callable[[Any], object]) -> None:
    frozen_dict = FrozenDict({"a": 1}, "use alter")
    with pytest.raises(InvalidInputError, match="describes one version of a table; use alter"):
        change(frozen_dict)
    assert frozen_dict == {"a": 1}


def test_copies_of_a_frozen_dict() -> None:
    frozen_dict = FrozenDict({"a": 1}, "use alter")
    assert {**frozen_dict, "b": 2} == frozen_dict | {"b": 2} == {"a": 1, "b": 2}
    for same in (pickle.loads(pickle.dumps(frozen_dict)), copy.copy(frozen_dict)):
        assert same == frozen_dict
        with pytest.raises(InvalidInputError, match="use alter"):
            same["a"] = 2
    changed = frozen_dict.copy()
    changed["a"] = 2
    assert json.loads(json.dumps(frozen_dict)) == orjson.loads(orjson.dumps(frozen_dict))


def test_metadata_as_a_dict() -> None:
    found = asdict(Metadata(id="x", schema_string="{}", configuration={"a": "b"}))
    assert found["configuration"] == {"a": "b"}
    field = Field("x", "long", metadata={"a": {"b": 1}})
    assert copy.deepcopy(field) == field == pickle.loads(pickle.dumps(field))
