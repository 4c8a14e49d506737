"""The page of the source documents is true: each command is run or parsed, each test exists."""

from __future__ import annotations

import ast
import shlex
import shutil
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pages import ROOT
from teho.cli.group import teho
from test_docs import generator

MODULE = generator()
SOURCES = MODULE.sources_page.read_sources()
lines_of = MODULE.sources_page.lines_of
NOTEBOOK = "needs a notebook"
LONG = "the test does not run this command, because it takes more than 3 s"
REASONS = {"needs a job", "needs a GPU", LONG, NOTEBOOK}
DOCUMENTS = {document.name: document for document in SOURCES.document}


def names(rows: list) -> list[str]:
    return [f"{row.document}-{row.lines}" for row in rows]


RUN = [row for row in SOURCES.row if not row.not_run]
PARSED = [row for row in SOURCES.row if row.not_run and row.not_run != NOTEBOOK]


def test_the_page_is_in_step() -> None:
    page = ROOT / "docs" / "sources.md"
    assert page.read_text() == MODULE.SHIPPED[page](), "run docs/generate.py"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_line_of_a_document_is_accounted_for(name: str) -> None:
    document = DOCUMENTS[name]
    of_rows = {line for row in SOURCES.row if row.document == name for line in lines_of(row.lines)}
    other, missing = lines_of(document.other_lines), lines_of(document.missing_lines)
    assert of_rows.isdisjoint(other)
    assert of_rows.isdisjoint(missing), "a row has these lines: take them out of missing_lines"
    assert sorted([*of_rows, *other, *missing]) == list(range(1, document.lines + 1))


def test_rows_are_different_and_complete() -> None:
    assert len({(row.document, row.what) for row in SOURCES.row}) == len(SOURCES.row)
    for row in SOURCES.row:
        assert row.document in DOCUMENTS
        lines = lines_of(row.lines)
        assert lines == sorted(set(lines)), row
        assert row.not_run in {"", *REASONS}
        assert row.command.startswith("%" if row.not_run == NOTEBOOK else "teho ")
        assert bool(row.not_run) != bool(row.prints or row.writes), row


@cache
def functions_in(path: str) -> set[str]:
    """Return the tests of a file, as pytest names them: `test_x`, `TestY::test_z`."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{one.name}" for one in node.body if hasattr(one, "name")}
    return found


@pytest.mark.parametrize("row", SOURCES.row, ids=names(SOURCES.row))
def test_the_named_test_exists(row) -> None:
    path, _, name = row.test.partition("::")
    assert path.startswith("tests/")
    assert name.rpartition("::")[2].startswith("test_")
    assert name in functions_in(path)


def words_of(command: str) -> list[str]:
    first, *words = shlex.split(command)
    assert first == "teho"
    return words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder that looks like the top folder of the source code, and may be written."""
    folder = tmp_path_factory.mktemp("source code")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("docs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to this folder, and follow the page: `export TEHO_HOME=examples/learn`."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TEHO_HOME", "examples/learn")
    return folder


@pytest.mark.parametrize("row", RUN, ids=names(RUN))
def test_the_command_prints_what_it_should(row, there: Path) -> None:
    done = CliRunner().invoke(
        teho, words_of(row.command), prog_name="teho", standalone_mode=False, catch_exceptions=False
    )
    assert (done.return_value or 0) == row.exit_code, done.output
    assert " ".join(row.prints.split()) in " ".join(done.output.split())
    assert not row.writes or (there / row.writes).stat().st_size > 1000


def parse(words: list[str]) -> None:
    """Parse a command line as click does, without executing the command."""
    with click.Context(teho, info_name="teho", **teho.context_settings) as root:
        command = teho.get_command(root, words[0])
        assert command is not None
        assert not isinstance(command, click.Group)
        command.make_context(words[0], words[1:], parent=root).close()


@pytest.mark.parametrize("row", PARSED, ids=names(PARSED))
def test_the_options_of_the_command_exist(row) -> None:
    parse(words_of(row.command))


@pytest.mark.parametrize("words", ["bench solve --no-such-option", "compare --repeats 0 -- true"])
def test_a_wrong_option_is_found(words: str) -> None:
    with pytest.raises(click.UsageError):
        parse(words.split())
