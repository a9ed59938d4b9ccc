"""The files of a view: pages, limits, and their downloads."""

from __future__ import annotations

from pathlib import Path

from tests.support.sharing import actions, sharing, view_of


def test_files_that_left_the_cache_are_made_again(salaries: Path) -> None:
    config = {"location": str(salaries), "columns": ["id"]}
    caller = sharing({"s.d.t": config}, limits={"cacheBytes": 1})
    files = actions(caller.query("s.d.t"), "file")
    assert len(files) == 3
    bodies = [caller.download(file["url"]).body for file in files]
    assert [len(body) for body in bodies] == [file["size"] for file in files]


def test_pages_and_limits(salaries: Path) -> None:
    caller = view_of(salaries, columns=["id"])
    found, token = [], None
    for _ in range(3):
        body = {"maxFiles": 1} | ({"pageToken": token} if token else {})
        reply = caller.query("s.d.t", body)
        found += [file["id"] for file in actions(reply, "file")]
        (end,) = actions(reply, "endStreamAction")
        token = end.get("nextPageToken")
    assert token is None
    assert len(set(found)) == 3
    assert len(actions(caller.query("s.d.t", {"limitHint": 1}), "file")) == 1


def test_a_url_of_the_whole_table_dies_when_a_part_is_shared(salaries: Path) -> None:
    whole = sharing({"s.d.t": salaries})
    url = actions(whole.query("s.d.t"), "file")[0]["url"]
    assert whole.download(url).status == 200
    part = view_of(salaries, columns=["id"])
    assert part.download(url).status == 404
    shown = actions(part.query("s.d.t"), "file")[0]["url"]
    assert whole.download(shown).status == 404
    other = view_of(salaries, columns=["id", "p"])
    assert other.download(shown).status == 404
