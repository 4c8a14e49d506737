"""Notifies the user about a run: by a command, a mail, or a POST to a URL."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Sequence
from http.client import HTTPException
from itertools import accumulate
from typing import Literal, NamedTuple
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from teho.errors import InputError
from teho.process.sendmail import find_sendmail, send_mail

__all__ = ["Event", "Notice", "check_targets", "notify", "words_of"]

Event = Literal["ended", "stuck", "time_limit"]
_TIMEOUT_S = 20.0
_MAIL = "mailto:"
_LARGEST_ANSWER = 200
_TEAMS = ("powerplatform.com", "logic.azure.com", "webhook.office.com")
"""Hosts of the URLs that a workflow of Teams has, the newest first."""
_MOST_TEAMS_BYTES = 24_000
"""Of all lines of a message: Teams refuses a message of more than 28 kB."""


class Notice(NamedTuple):
    """One notification."""

    event: Event
    run: str
    """Id of the run."""
    title: str
    """One line."""
    text: str


def check_targets(targets: Sequence[str]) -> None:
    """Check the targets of `--notify` before the program starts.

    Raises:
        InputError: a target cannot be used.
    """
    for target in targets:
        if _is_url(target):
            if not urlsplit(target).hostname:
                raise InputError(
                    f"--notify {target}: the URL has no host",
                    "a URL with a host, such as the URL of a Slack webhook",
                )
        elif target.startswith(_MAIL):
            if "@" not in target:
                raise InputError(f"--notify {target}", "mailto:NAME@HOST")
            if find_sendmail() is None:
                raise InputError(
                    f"--notify {target}: this machine has no sendmail command",
                    "a URL or a command",
                    "use `teho submit --mail`: the scheduler then sends the mails",
                )
        else:
            words = _words(target)
            if shutil.which(words[0]) is None:
                raise InputError(
                    f"--notify {target}: {words[0]} is not a command that can be executed",
                    "a command, mailto:NAME@HOST, or a URL that begins with https://",
                )


def notify(targets: Sequence[str], notice: Notice) -> list[str]:
    """Notify each target, and return a sentence for each failure."""
    problems = []
    for target in targets:
        try:
            if _is_url(target):
                _post(target, notice)
            elif target.startswith(_MAIL):
                send_mail(target.removeprefix(_MAIL), notice.title, notice.text, _TIMEOUT_S)
            else:
                _command(target, notice)
        except (OSError, ValueError, HTTPException, subprocess.SubprocessError) as error:
            problems.append(f"--notify {_name_of(target)} did not work: {words_of(error)}")
    return problems


def _name_of(target: str) -> str:
    """Return a name of a target that may be stored: a URL may be a secret, an address private."""
    if _is_url(target):
        return urlsplit(target).hostname or "URL"
    return "mailto" if target.startswith(_MAIL) else target.partition(" ")[0]


def _is_url(target: str) -> bool:
    return target.startswith(("https://", "http://"))


def _words(target: str) -> list[str]:
    try:
        words = shlex.split(target)
    except ValueError as error:
        raise InputError(
            f"--notify {target}: {error}", "a command in which all quotes are closed"
        ) from error
    if not words:
        raise InputError(
            "--notify '': the command is empty", "a command, mailto:NAME@HOST or a URL"
        )
    return words


def words_of(error: Exception) -> str:
    """Return why a notice could not be sent."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {_TIMEOUT_S:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        errors = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        return f"exit code {error.returncode}{f': {errors[-1]}' if errors else ''}"
    if isinstance(error, URLError):
        return str(error.reason)[:_LARGEST_ANSWER]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)[:_LARGEST_ANSWER]


def _command(target: str, notice: Notice) -> None:
    """Run a command: the text is its input, the rest is in variables."""
    variables = {
        "TEHO_EVENT": notice.event,
        "TEHO_RUN": notice.run,
        "TEHO_TITLE": notice.title,
    }
    subprocess.run(
        _words(target),
        input=notice.text.encode(),
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_TIMEOUT_S,
        check=True,
        start_new_session=True,
    )


def _post(url: str, notice: Notice) -> None:
    host = urlsplit(url).hostname or ""
    headers = {"Content-Type": "application/json", "User-Agent": "teho"}
    if _is_host(host, "hooks.slack.com"):
        content = json.dumps({"text": f"{notice.title}\n\n{notice.text}"}).encode()
    elif _is_host(host, *_TEAMS):
        content = json.dumps(_teams_message(notice)).encode()
    elif host.startswith("ntfy"):
        # ntfy shows the body; HTTP headers have only ASCII.
        title = notice.title.encode("ascii", "replace").decode()
        headers |= {"Content-Type": "text/plain; charset=utf-8", "Title": title}
        content = notice.text.encode()
    else:
        content = json.dumps(notice._asdict()).encode()
    request = Request(url, data=content, headers=headers, method="POST")  # noqa: S310 - checked
    with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - only http and https
        answer.read(_LARGEST_ANSWER)


def _teams_message(notice: Notice) -> dict[str, object]:
    """Return a message with an Adaptive Card: workflows of Teams take no other form."""
    title = {"type": "TextBlock", "text": notice.title, "weight": "Bolder", "wrap": True}
    # Teams shows a single line break as a space, so each line is a block.
    lines = [
        {"type": "TextBlock", "text": line.strip(), "spacing": "None", "wrap": True}
        for line in notice.text.splitlines()
        if line.strip()
    ]
    sizes = list(accumulate(len(json.dumps(line)) for line in lines))
    if sizes and sizes[-1] > _MOST_TEAMS_BYTES:
        rest = f"Shortened. The whole report: `teho report {notice.run}`"
        kept = bisect_right(sizes, _MOST_TEAMS_BYTES)
        lines[kept:] = [{"type": "TextBlock", "text": rest, "wrap": True}]
    card = {"type": "AdaptiveCard", "version": "1.2", "body": [title, *lines]}
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _is_host(host: str, *known: str) -> bool:
    return any(host == one or host.endswith(f".{one}") for one in known)
