"""Answers about tables of which a share shows a part, and their files.

Protocol: Query Table Metadata, Read Data from a Table
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltalog.sharing.server.answers import Answer, finished
from deltalog.sharing.server.downloads import Download, download_open
from deltalog.sharing.server.faults import not_found, unavailable
from deltalog.sharing.server.formats import (
    choose_format_of_plain,
    metadata_line,
    protocol_line,
)
from deltalog.sharing.server.pages import Page, ends_with_action, next_tokens
from deltalog.sharing.server.urls import ShownOf
from deltalog.sharing.server.view_changes import find_change, shown_line
from deltalog.sharing.server.views import View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.sharing.server.answers import Asked, Tools
    from deltalog.sharing.server.formats import Format
    from deltalog.sharing.server.pages import Start
    from deltalog.sharing.server.tables import SharedTable
    from deltalog.sharing.server.urls import SignedFile
    from deltalog.sharing.wire.lines import EndStreamAction, Line
    from deltalog.sharing.wire.requests import TableQuery
    from deltalog.snapshot import Snapshot

_ATTEMPTS: Final = 3


def answer_view_metadata(asked: Asked, snapshot: Snapshot, tools: Tools) -> Answer:
    """Protocol and metadata of what is shown."""
    table = asked.table
    view = View(snapshot, table.config, tools, table.known_latest())
    form = replace(choose_format_of_plain(asked.capabilities, view.configuration), ends=False)
    heads = _heads(form, view, history_shared=table.config.history_shared)
    return Answer(snapshot.version, form, finished(form, heads, iter(())))


def answer_view(
    asked: Asked, query: TableQuery, snapshot: Snapshot, tools: Tools, start: Start | None
) -> Answer:
    """The files of what is shown, written while they are told."""
    table = asked.table
    view = View(snapshot, table.config, tools, table.known_latest())
    form = choose_format_of_plain(asked.capabilities, view.configuration)
    found = view.files(query)
    offset = 0 if start is None else start.offset
    num_rows = len(found) - offset
    if query.max_files is not None:
        num_rows = min(query.max_files, tools.config.limits.page_files, num_rows)
    page = Page(None, offset, num_rows, len(found))
    expires_ms = tools.urls.expiry_ms(asked.now_ms)
    sign = tools.urls.own_signer(
        table.name, asked.recipient, asked.base, expires_ms, view=ShownOf(snapshot.version)
    )
    facts: dict[str, object] = {"version": snapshot.version, "files": 0}
    told = query.predicate_hints or query.json_predicate_hints
    enough = None if told else query.limit_hint

    def body() -> Iterator[bytes]:
        rows = files = 0
        for name, task in found.tasks(offset, num_rows):
            if enough is not None and rows >= enough:
                break
            shown = view.show(name, task)
            if shown.made.num_rows:
                rows += shown.made.num_rows
                files += 1
                yield shown_line(form, "file", shown, sign(name), expires_ms)
        facts["files"] = files

    def end() -> EndStreamAction:
        return next_tokens(asked, query, tools, snapshot.version, page, expires_ms)

    heads = _heads(form, view, history_shared=table.config.history_shared)
    chunks = finished(form, heads, body(), end if ends_with_action(query, form) else None)
    return Answer(snapshot.version, form, chunks, None, facts)


def download_view(
    table: SharedTable,
    signed: SignedFile,
    tools: Tools,
    headers: Mapping[str, str],
    *,
    with_body: bool,
) -> Download:
    """What is shown of one file; written again if it left the cache.

    Raises:
        Fault: 404: the version has no such file, or the share shows all of the table by now.
    """
    if not table.config.is_view or signed.view is None:
        raise not_found("file")
    snapshot = table.at(signed.view.version)
    view = View(snapshot, table.config, tools, table.known_latest())
    for _ in range(_ATTEMPTS):
        if signed.view.commit is None:
            view.find(signed.path)
        else:
            find_change(view, table, signed.view, signed.path)
        file = tools.cache.opened(signed.path)
        if file is not None:
            return download_open(file, headers, with_body=with_body)
    raise unavailable()  # it leaves the cache as soon as it is there: too many want too much


def _heads(form: Format, view: View, *, history_shared: bool) -> tuple[Line, ...]:
    metadata = metadata_line(form, view.configuration, history_shared=history_shared)
    return protocol_line(form), metadata
