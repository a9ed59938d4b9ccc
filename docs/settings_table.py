"""The tables of session settings, from the list that the code itself uses."""

from __future__ import annotations

from deltalog.spark.session.known_settings import FOLLOWED, REFUSED, WITHOUT_EFFECT, full_name


def settings_tables() -> str:
    """Three Markdown tables: settings that are followed, refused, and without effect."""
    followed = [f"| `{full_name(name)}` | {how} |\n" for name, how in FOLLOWED.items()]
    refused = []
    for name, refusal in REFUSED.items():
        accepted = " or ".join(f"`{value}`" for value in refusal.accepted)
        who = "reads" if refusal.reads else "writes"
        refused.append(f"| `{full_name(name)}` | {accepted} | {who} | {refusal.instead} |\n")
    without = [
        f"| {', '.join(f'`{name}`' for name in names)} | {reason} |\n"
        for reason, names in WITHOUT_EFFECT.items()
    ]
    return _page(
        _table("Supported", "| setting | effect |", followed),
        _table("Refused", "| setting | accepted values | affects | use instead |", refused),
        _table("Without effect", "| settings | reason |", without),
        "Names without `spark.` begin with `spark.databricks.delta.`.\n",
    )


def _table(title: str, header: str, rows: list[str]) -> str:
    rule = "|---" * (header.count("|") - 1)
    return f"## {title}\n\n{header}\n{rule}|\n{''.join(rows)}"


def _page(*parts: str) -> str:
    return "\n".join(parts)
