"""Lists that cannot be changed: equal to lists, and made into lists where one is added."""

from __future__ import annotations

import copy
import pickle

import pytest

from deltalog._util.cached import FrozenList, frozen


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
