"""Bars for long work: whichever library is there shows them, and none is needed."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import pytest

from deltalog._util.cards import ProgressCount, progress_bar, shown


def test_rich_shows_it_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with progress_bar("copying") as progress:
        progress(1, 2)
        progress(2, 2)
    assert capsys.readouterr().out == ""


def test_rich_shows_nothing_before_the_first_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ValueError, match="refused"), progress_bar("deleting"):
        raise ValueError("refused")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["ZMQInteractiveShell", "TerminalInteractiveShell"])
def test_a_notebook_without_widgets_has_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(builtins, "get_ipython", type(shell, (), {}), raising=False)
    with progress_bar("copying") as progress:
        progress(1, 2)
    found = capsys.readouterr()
    assert found.out == ""
    assert ("copying" in found.err) == (shell == "TerminalInteractiveShell")


def test_nothing_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress_bar("copying") as progress:
        progress(1, 2)


class _Bar(SimpleNamespace):
    """What of tqdm's bar is used."""

    seen: list[tuple[int, int]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def refresh(self) -> None:
        self.seen.append((self.n, self.total))


def test_tqdm_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[_Bar] = []

    def tqdm(desc: str, total: int) -> _Bar:
        made.append(_Bar(desc=desc, seen=[], n=0, total=total))
        return made[0]

    module: Any = ModuleType("tqdm.auto")
    module.tqdm = tqdm
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    with progress_bar("nothing to copy"):
        pass
    assert not made
    with progress_bar("copying") as progress:
        progress(1, 2)
    assert (made[0].desc, made[0].seen, made[0].closed) == ("copying", [(1, 2)], True)


def test_steps_are_counted_and_more_may_be_expected() -> None:
    told: list[tuple[int, int]] = []
    steps = ProgressCount(lambda done, total: told.append((done, total)))
    steps.expect(1)
    assert list(steps.each("a")) == ["a"]
    steps.expect(2)
    steps.done()
    steps.done()
    steps.done()
    assert told == [(1, 1), (2, 3), (3, 3), (4, 4)]
    ProgressCount(None).done()


def test_what_a_callback_raises_ends_the_steps() -> None:
    def end(*_: int) -> None:
        raise InterruptedError

    items = ProgressCount(end).each("ab")
    assert next(items) == "a"
    with pytest.raises(InterruptedError):
        next(items)


def test_callers_hand_in_a_callback_or_nothing() -> None:
    def tell(*_: int) -> None: ...

    for given, expected in ((tell, tell), (None, None), (False, None)):
        with shown(given, "copying") as progress:
            assert progress is expected
