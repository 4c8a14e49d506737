"""Sends a mail through the machine's sendmail command."""

from __future__ import annotations

import shutil
import subprocess
from email.message import EmailMessage

__all__ = ["find_sendmail", "send_mail"]

_FOLDERS = "/usr/sbin:/usr/lib"
"""Where sendmail is if it is not on the PATH of a user."""


def find_sendmail() -> str | None:
    """Return the path of the command; None if this machine has none."""
    return shutil.which("sendmail") or shutil.which("sendmail", path=_FOLDERS)


def send_mail(address: str, title: str, text: str, timeout_s: float) -> None:
    """Send a mail.

    Raises:
        OSError: the command cannot be started.
        ValueError: the address or the title has a line break.
        SubprocessError: the command refused the mail, or took longer than `timeout_s`.
    """
    message = EmailMessage()
    message["To"] = address
    message["Subject"] = title
    message.set_content(text)
    subprocess.run(
        [find_sendmail() or "sendmail", "-t", "-oi"],
        input=message.as_bytes(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=timeout_s,
        check=True,
    )
