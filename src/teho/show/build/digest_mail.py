"""The mails of `teho digest --mail-to` as a document."""

from __future__ import annotations

from collections import Counter

from teho.model.digest import Mail, Mailing
from teho.model.document import Document, Item, VerdictSeverity
from teho.show.build.layout import column, document, listing, table
from teho.show.cells import plain
from teho.units import counted

__all__ = ["mailing_document"]


def mailing_document(found: Mailing) -> Document:
    """Lay out who gets a mail, who does not and why, and the text of the first mail."""
    severity, verdict = _verdict(found)
    example = Item(text=found.example_title, code=tuple(found.example.splitlines()))
    return document(
        title="teho digest --mail-to",
        verdict=verdict,
        verdict_severity=severity,
        tables=(
            table(
                "mails", "Mails", found.mails,
                column("user", "User", lambda one: plain(one.user) or "not known"),
                column("gpu_hours", "GPU-hours wasted", lambda one: one.wasted.gpu_hours or None,
                       decimals=1),
                column("core_hours", "Core-hours wasted", lambda one: one.wasted.core_hours or None,
                       decimals=1),
                column("mail", "Mail", _state),
                column("address", "Address", lambda one: plain(one.address), aside=True),
                only_known=True,
            ),
        ) if found.mails else (),
        lists=(listing("example", "The first mail", [example] if found.example else []),),
        notes=found.notes,
    )  # fmt: skip


def _state(mail: Mail) -> str:
    return f"{mail.state}: {mail.reason}" if mail.reason else mail.state


def _verdict(found: Mailing) -> tuple[VerdictSeverity, str]:
    number = Counter(mail.state for mail in found.mails)
    if not found.is_sent:
        planned = number["planned"]
        if not planned:
            return "remark", "No user would get a mail."
        return "remark", (
            f"{counted(planned, 'user')} would get a mail. No mail was sent: add `--send`."
        )
    failed = f" {counted(number['failed'], 'mail')} could not be sent." if number["failed"] else ""
    severity: VerdictSeverity = "warning" if failed else "good"
    return severity, f"{counted(number['sent'], 'mail')} sent.{failed}"
