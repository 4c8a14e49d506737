"""Notices about a run: commands, mails, and POSTs to a URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from email import message_from_bytes
from email.policy import default
from http.client import BadStatusLine
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from pathlib import Path
from urllib.request import Request

import pytest

from teho.errors import InputError
from teho.observe import notify as notify_module
from teho.observe.notify import Notice, check_targets, notify

NOTICE = Notice(
    "stuck", "20261126-080000-train-abcd", "train: no step for 10 min.", "Rank 3 waits."
)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def test_a_command_gets_the_event_and_the_text(tmp_path: Path) -> None:
    out = tmp_path / "out"
    variables = '"$TEHO_EVENT" "$TEHO_RUN" "$TEHO_TITLE"'
    text = f'printf "%s|%s|%s|" {variables} > {out}; cat >> {out}; echo "$1" >> {out}'
    command = script(tmp_path / "tell", text)
    target = f"{command} 'an argument'"
    check_targets([target])
    assert notify([target], NOTICE) == []
    assert out.read_text() == (
        "stuck|20261126-080000-train-abcd|train: no step for 10 min.|Rank 3 waits.an argument\n"
    )


def test_a_command_that_fails_is_a_sentence(tmp_path: Path) -> None:
    command = script(tmp_path / "tell", "echo no network >&2; exit 3")
    assert notify([command, "/nonexistent/tell"], NOTICE) == [
        f"--notify {command} did not work: exit code 3: no network",
        "--notify /nonexistent/tell did not work: No such file or directory",
    ]


def test_a_command_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_module, "_TIMEOUT_S", 0.2)
    command = script(tmp_path / "tell", "exec sleep 60")
    assert notify([command], NOTICE) == [f"--notify {command} did not work: no answer within 0.2 s"]


def test_a_mail_goes_through_sendmail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "mail"
    script(tmp_path / "sendmail", f'echo "$@" > {tmp_path}/arguments; cat > {out}')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    target = "mailto:ann@example.org"
    check_targets([target])
    assert notify([target], NOTICE) == []
    mail = message_from_bytes(out.read_bytes(), policy=default)
    assert (mail["To"], mail["Subject"]) == ("ann@example.org", NOTICE.title)
    assert mail.get_content() == "Rank 3 waits.\n"
    assert (tmp_path / "arguments").read_text() == "-t -oi\n"


def test_a_mail_that_cannot_be_sent_is_a_sentence_without_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "sendmail", "echo no queue >&2; exit 75")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (problem,) = notify(["mailto:ann@example.org"], NOTICE)
    assert problem == "--notify mailto did not work: exit code 75: no queue"


class _Server(HTTPServer):
    seen: list[tuple[str, dict[str, str], bytes]]
    status = 200


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.seen.append((self.path, dict(self.headers), body))
        self.send_response(server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as found:
        found.seen = []
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_a_url_gets_a_json_document(server: _Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/hook?secret=1"
    check_targets([url])
    assert notify([url], NOTICE) == []
    ((path, headers, body),) = server.seen
    assert path == "/hook?secret=1"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {
        "event": "stuck",
        "run": NOTICE.run,
        "title": NOTICE.title,
        "text": NOTICE.text,
    }


def test_a_server_that_refuses_is_a_sentence_without_the_secret(server: _Server) -> None:
    server.status = 403
    url = f"http://127.0.0.1:{server.server_port}/hook?secret=1"
    (problem,) = notify([url], NOTICE)
    assert problem == "--notify 127.0.0.1 did not work: Forbidden"


def test_an_answer_that_is_not_http_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def urlopen(request: object, timeout: float) -> None:
        raise BadStatusLine("SSH-2.0")

    monkeypatch.setattr(notify_module, "urlopen", urlopen)
    (problem,) = notify(["https://example.org/"], NOTICE)
    assert problem == "--notify example.org did not work: SSH-2.0"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Return a list with each request that is sent; each gets an empty answer."""
    requests: list[Request] = []

    def urlopen(request: Request, timeout: float) -> BytesIO:
        requests.append(request)
        return BytesIO()

    monkeypatch.setattr(notify_module, "urlopen", urlopen)
    return requests


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "https://hooks.slack.com/services/T/B/x",
            b'{"text": "train: no step for 10 min.\\n\\nRank 3 waits."}',
        ),
        ("https://ntfy.sh/ann", b"Rank 3 waits."),
    ],
)
def test_known_services_get_their_form(url: str, expected: bytes, sent: list[Request]) -> None:
    assert notify([url], NOTICE) == []
    assert sent[0].data == expected
    if "ntfy" in url:
        assert sent[0].get_header("Title") == NOTICE.title


@pytest.mark.parametrize(
    "url",
    [
        "https://x.environment.api.powerplatform.com:443/powerautomate/automations/direct/y",
        "https://prod-1.westeurope.logic.azure.com:443/workflows/y",
        "https://x.webhook.office.com/y",
    ],
)
def test_teams_gets_a_card_because_its_workflows_take_no_text(
    url: str, sent: list[Request]
) -> None:
    assert notify([url], NOTICE._replace(text="Rank 3 waits.\n\n  in train.py:51\n")) == []
    assert isinstance(sent[0].data, bytes)
    message = json.loads(sent[0].data)
    (attachment,) = message["attachments"]
    card = attachment["content"]
    assert (message["type"], attachment["contentType"], card["type"]) == (
        "message", "application/vnd.microsoft.card.adaptive", "AdaptiveCard",
    )  # fmt: skip
    assert all(block["type"] == "TextBlock" and block["wrap"] for block in card["body"])
    texts = [block["text"] for block in card["body"]]
    assert texts == [NOTICE.title, "Rank 3 waits.", "in train.py:51"]


def test_a_message_that_is_too_large_for_teams_is_shortened(sent: list[Request]) -> None:
    long = NOTICE._replace(text="".join(f"{number} → a line\n" for number in range(10_000)))
    assert notify(["https://x.api.powerplatform.com/y"], long) == []
    assert isinstance(sent[0].data, bytes)
    assert 20_000 < len(sent[0].data) < 28_000
    *_, before, last = json.loads(sent[0].data)["attachments"][0]["content"]["body"]
    assert before["text"].endswith(" → a line")
    assert last["text"] == f"Shortened. The whole report: `teho report {NOTICE.run}`"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("https://", "the URL has no host"),
        ("mailto:ann", "mailto:NAME@HOST"),
        ("nonexistent-command --x", "nonexistent-command is not a command that can be executed"),
        ("'open", "No closing quotation"),
        ("", "the command is empty"),
    ],
)
def test_a_target_that_cannot_work_is_refused_before_the_run(target: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_targets([target])


def test_without_sendmail_a_mail_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_module, "find_sendmail", lambda: None)
    with pytest.raises(InputError, match="has no sendmail command"):
        check_targets(["mailto:ann@example.org"])
