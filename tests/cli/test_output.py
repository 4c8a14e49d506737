"""The options that all commands with a result share: format, file, level."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from teho.cli.output import Output, output_options
from teho.errors import InputError
from teho.model.document import Column, Document, Item, Listing, Table

DOCUMENT = Document(
    title="trees",
    verdict="The trees are <tall>.",
    verdict_severity="good",
    tables=(
        Table(
            key="trees",
            title="Trees",
            columns=(Column(key="name", label="name"), Column(key="m", label="height", unit="m")),
            rows=({"name": "birch", "m": 20.0},),
        ),
    ),
    lists=(Listing(key="why", title="Seen", items=(Item(text="from below"),), level="why"),),
)


@click.command()
@output_options("seff")
def command(output: Output) -> None:
    """Show the trees."""
    output.show(DOCUMENT)


def run(*words: str | Path) -> str:
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False).stdout


def test_three_levels() -> None:
    short, default, why = run("--short"), run(), run("--why")
    assert short == "✓ The trees are <tall>.\n"
    assert "birch" in default
    assert default.endswith("Add --why to see: “Seen” (1 item).\n")
    assert "from below" in why
    assert "Add --why" not in why


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.html", "<!DOCTYPE html>"),
        ("a.HTM", "<!DOCTYPE html>"),
        ("a.json", "{"),
        ("a.txt", "✓ The"),
        ("a.log", "✓ The"),
        ("a.sh", "✓ The"),
        ("a", "✓ The"),
    ],
)
def test_the_ending_of_the_file_decides(tmp_path: Path, name: str, start: str) -> None:
    assert run("-o", tmp_path / name) == ""
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_an_unknown_ending_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    words = r"a\.xyz: the ending \.xyz is not a known ending.*\.html.*\.json"
    with pytest.raises(InputError, match=words):
        run("-o", tmp_path / "a.xyz")
    assert not (tmp_path / "a.xyz").exists()
    run("-o", tmp_path / "a.xyz", "--format", "text")
    assert (tmp_path / "a.xyz").read_text(encoding="utf-8").startswith("✓ The")


def test_a_format_that_is_given_decides(tmp_path: Path) -> None:
    run("-o", tmp_path / "a.html", "--format", "json")
    content = json.loads((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert content["schema"] == "teho.document/1"
    assert content["tables"][0]["rows"] == [{"name": "birch", "m": 20.0}]


def test_a_page_is_escaped_and_has_everything() -> None:
    page = run("--format", "html")
    assert "The trees are &lt;tall&gt;." in page
    assert "from below" in page
    assert "://" not in page


def test_one_level_at_a_time() -> None:
    with pytest.raises(InputError, match="--short cannot be used together with --why"):
        run("--short", "--why")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        run("-o", tmp_path / "absent" / "a.txt")
