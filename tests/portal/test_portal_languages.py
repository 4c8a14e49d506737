"""Every message of the pages is in the catalogue, and a page shows only messages and data."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from made_runs import make_run

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

from starlette.requests import Request

from teho.config.settings import load_settings
from teho.config.toml import read_toml
from teho.show.portal import filters, languages, pages, planning, render, rows, words
from teho.show.portal.app import Portal
from teho.show.portal.recordings import Recordings

FOLDER = Path(render.__file__).parent
CATALOGUE = FOLDER / "languages/en.toml"
HEAD = """\
# All messages of the portal's pages. For another language, copy this file to NAME.toml, and
# translate the right sides. Words in braces, and words such as %(count)s, must stay as they are.

"""
LABELS = (
    *words.OUTCOMES.values(),
    *(label for _, label in rows.COLUMNS),
    *pages.USAGE_BY.values(),
    *pages._NO_KEY.values(),
    *pages._SUMS,
    *filters._LABELS.values(),
    *filters.ORDERS.values(),
    *(label for _, label, _ in filters.MORE_FILTERS),
    *(label for _, label, _ in (*planning.FIELDS, *planning.MORE_FIELDS)),
    *(label for _, label in planning.FLAGS),
)
"""Messages that a template shows by the name of a variable."""


def messages() -> Iterator[str]:
    """Yield the messages of the templates and of the code."""
    environment = render._environment()
    for path in sorted(FOLDER.glob("templates/*.html")):
        for _, _, found in environment.extract_translations(path.read_text()):
            yield from (found,) if isinstance(found, str) else filter(None, found or ())
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"say", "say_count"}:
                for given in node.args[:2]:
                    if isinstance(given, ast.Constant) and isinstance(given.value, str):
                        yield given.value
    yield from LABELS


def test_the_catalogue_has_every_message() -> None:
    wanted = sorted(set(messages()))
    if os.environ.get("TEHO_UPDATE_GOLDEN") == "1":
        lines = [f"{json.dumps(one, ensure_ascii=False)}" for one in wanted]
        CATALOGUE.write_text(HEAD + "".join(f"{line} = {line}\n" for line in lines))
    assert read_toml(CATALOGUE) == {one: one for one in wanted}


EXAMPLES = {
    "python train.py",
    *(one for _, _, one in (*filters.MORE_FILTERS, *planning.FIELDS, *planning.MORE_FIELDS)),
}
"""What a field without a text shows."""


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    """A portal with a language in which every message is in brackets."""
    for number in range(60):
        make_run(tmp_path / "home", number, command=("X", str(number % 2)), gpus=number % 2,
                 elapsed_s=100.0 - number, exit_code=number % 7 == 3, cluster="LUMI",
                 partition=f"P{number % 2}", gpu="A100")  # fmt: skip
    for name, folder in (("TEHO_HOME", "home"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    english = read_toml(CATALOGUE)
    marked = languages._Language("xx", {one: f"⟦{one}⟧" for one in english})
    monkeypatch.setattr(languages, "_languages", lambda _: {"en": marked, "xx": marked})
    recordings = Recordings(load_settings())
    yield Portal(recordings, ["false"])
    recordings.close()
    languages._present.set(languages._ENGLISH)


@pytest.mark.parametrize(
    ("view", "query"),
    [
        ("_home", ""),
        ("_runs", ""),
        ("_runs", "text=nothing"),
        ("_runs", "by=program"),
        ("_usage", "by=cluster"),
        ("_plan", ""),
        ("_run", "id=unknown"),
    ],
)
def test_all_that_is_not_data_is_a_message(shown: Portal, view: str, query: str) -> None:
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": query.encode(),
                       "headers": [(b"accept-language", b"fi, xx-YY;q=0.5")]})  # fmt: skip
    page = bytes(shown._answering(getattr(shown, view))(request).body).decode()
    assert '<html lang="xx">' in page
    assert "⟦" in page
    page = re.sub(r"⟦.*?⟧", "", page, flags=re.DOTALL)
    page = re.sub(r"<code.*?</code>|<script.*?</script>", " ", page, flags=re.DOTALL)
    page = re.sub(r'<option value="([^"]*)"[^>]*>\1</option>', "", page)  # names of clusters
    texts = re.findall(r">([^<>]+)<", page)
    texts += re.findall(r'(?:aria-label|placeholder)="([^"]*)"', page)
    left = [unescape(text).strip() for text in texts if re.search(r"[a-z]{3}", text)]
    assert [text for text in left if not _is_data(text)] == []


def _is_data(text: str) -> bool:
    """Return whether a text is a figure, an example, the name of a run, or an error."""
    return bool(
        re.fullmatch(r"[\d .,–hms:·-]*(min)?[\d .hms-]*", text)
        or text in EXAMPLES
        or text in {"Teho", "· Teho", "made", "there is no run 'unknown'.", "the list has all runs"}
        or re.match(r"made-\d|Teho \d", text)
    )
