"""Answers about the files of a view, and downloads of these files.

Protocol: Read Data from a Table
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.sharing.server.answers import Answer, Services, TableRequest, encode_lines
from deltalog.sharing.server.changes import changed_tasks, encode_view_line
from deltalog.sharing.server.downloads import Download, download_open
from deltalog.sharing.server.faults import not_found, unavailable
from deltalog.sharing.server.formats import choose_view_format, head_lines
from deltalog.sharing.server.pages import FilePage, PageStart, end_of_page
from deltalog.sharing.server.urls import SignedFile, ViewFileSource
from deltalog.sharing.server.views import View

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalog.log.snapshot import Snapshot
    from deltalog.sharing.server.tables import ServedTable
    from deltalog.sharing.wire.requests import TableQuery

_ATTEMPTS: Final = 3


def answer_view(
    request: TableRequest, query: TableQuery, snapshot: Snapshot, start: PageStart
) -> Answer:
    """Return the files of a view; they are written while their lines are sent.

    Args:
        request: a recipient's request.
        query: query of the request.
        snapshot: the version.
        start: the start of the page.
    """
    table, config = request.table, request.services.config
    view = View(snapshot, table, request.services)
    response_format = choose_view_format(request.capabilities, view.configuration)
    found = view.source_files(query, start.num_read_hints)
    hints, most = found.hints, query.max_files
    most = None if most is None else min(most, config.limits.page_files)
    sign = request.signer(ViewFileSource(snapshot.version))
    facts: dict[str, object] = {"version": snapshot.version, "files": 0, "hints": hints.num_used}
    has_hints = query.predicate_hints or query.json_predicate_hints
    # If there are hints, ignore the limit, because the sent files may contain rows that do not
    # match the hints.
    limit = None if has_hints else query.limit_hint
    page = FilePage(None, 0, 0, 0)

    def body() -> Iterator[bytes]:
        nonlocal page
        rows = files = 0
        last = None
        # Count only files with rows of the view, because the number of other files would reveal
        # hidden rows.
        for key, task in found.tasks(start.after):
            if limit is not None and rows >= limit:
                break
            file = view.make_file(task)
            if not file.num_rows:
                continue
            if files == most:
                page = FilePage(None, 0, files, files, after=last)
                return
            rows += file.num_rows
            files += 1
            last = key
            facts["files"] = files
            page = FilePage(None, 0, files, files)
            yield encode_view_line(
                response_format,
                "file",
                file,
                url=sign(file.name),
                expires_ms=request.url_expiry_ms,
            )

    shared = table.config.history_shared
    heads = head_lines(response_format, view.configuration, history_shared=shared)
    end = end_of_page(
        request,
        query,
        response_format,
        snapshot.version,
        lambda: page,
        num_read_hints=hints.num_read,
        start=start,
    )
    chunks = encode_lines(response_format, heads, body(), end)
    return Answer(snapshot.version, response_format, chunks, None, facts)


def download_view(
    table: ServedTable,
    signed: SignedFile,
    services: Services,
    headers: Mapping[str, str],
    *,
    with_body: bool,
) -> Download:
    """Return a file of a view; write it again if it is no longer in the file cache.

    Raises:
        Fault: 404 if the version has no such file, or the table is no longer shared as a view; 503
            if the cache is too small for the requested files.
    """
    if not table.config.is_view or signed.source is None:
        raise not_found("file")
    source, config = signed.source, table.config
    is_change = source.commit is not None
    least = source.version if source.commit is None else min(source.version, source.commit)
    # The configuration may have changed since the URL was signed.
    if least < config.start_version or (is_change and not config.history_shared):
        raise not_found("file")
    services = services.with_key(signed.key)
    view = View(table.at(source.version), table, services)
    # Try several times, because other requests may evict the file from a small cache before it is
    # opened.
    for _ in range(_ATTEMPTS):
        tasks = changed_tasks(view, table, source) if is_change else view.tasks()
        file = view.open(signed.path, tasks)
        if file is not None:
            return download_open(file, headers, with_body=with_body)
    raise unavailable("the file cannot be sent now")
