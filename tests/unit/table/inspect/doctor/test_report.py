"""What a doctor says, as a table and as text."""

from __future__ import annotations

from tests.support.examining import look, make


def test_findings_are_a_table_and_text() -> None:
    table = make()
    del table.kept.files[table.data_files()[0]]
    report = look(table)
    rows = report.to_table()
    assert rows.column_names == ["severity", "check", "message", "advice", "path", "version"]
    assert rows.column("severity")[0].as_py() == "error" == report.worst
    assert "2 errors, 2 info" in report.summary
    assert "file-missing" in repr(report)
    assert "file-missing" in report._repr_html_()
    assert ">advice</th>" in report._repr_html_()


def test_the_card_of_a_healthy_table_has_no_column_for_advice() -> None:
    report = look(make())
    assert all(one.advice is None for one in report.findings)
    assert ">message</th>" in report._repr_html_()
    assert ">advice</th>" not in report._repr_html_()
