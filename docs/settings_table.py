"""The tables of session settings, from the list that the code itself uses."""

from __future__ import annotations

from deltalog.spark.session.known_settings import FOLLOWED, REFUSED, WITHOUT_EFFECT, full_name

_PREFIX = "Names without `spark.` have the prefix `spark.databricks.delta`."


def settings_tables() -> str:
    """The settings that are followed and refused as tables, those without effect as lists."""
    followed = [f"| `{full_name(name)}` | {how} |\n" for name, how in FOLLOWED.items()]
    refused = []
    for name, refusal in REFUSED.items():
        accepted = " or ".join(f"`{value}`" for value in refusal.accepted)
        who = "reads" if refusal.reads else "writes"
        instead = f"; {refusal.instead}" if refusal.instead else ""
        refused.append(f"| `{name}` | {accepted}{instead} | {who} |\n")
    without = [
        f"**Reason: {reason}**\n\n{', '.join(f'`{name}`' for name in names)}\n"
        for reason, names in WITHOUT_EFFECT.items()
    ]
    return "\n".join(
        [
            "## Supported\n",
            _table("| setting | effect |", followed),
            f"## Refused\n\nThe accepted value is Delta's default. {_PREFIX}\n",
            _table("| setting | accepted value | affects |", refused),
            f"## Without effect\n\nThese settings change nothing. {_PREFIX}\n",
            *without,
        ]
    )


def _table(header: str, rows: list[str]) -> str:
    rule = "|---" * (header.count("|") - 1)
    return f"{header}\n{rule}|\n{''.join(rows)}"
