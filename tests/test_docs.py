"""Pages made from the code are in step with it; documented commands exist."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import click
import jsonschema
import msgspec
import pytest

from teho.cli import COMMANDS
from teho.cli.group import _HIDDEN as HIDDEN
from teho.cli.group import teho
from teho.clusters.catalogue import cluster_files, load_cluster
from teho.config.toml import read_toml

ROOT = Path(__file__).parents[1]


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cluster-file", "commands", "metrics", "peaks", "settings"])
def test_reference_pages_are_in_step(name: str) -> None:
    module = generator()
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    assert page == module.NOTE + module.PAGES[name](), "run docs/generate.py"


def packages_in_rows(page: str) -> list[set[str]]:
    """Return the packages in the first column of each row of a page's first table."""
    table = page.partition("|---|---|\n")[2].partition("\n\n")[0]
    return [
        {name.rstrip("/") for name in re.findall(r"`([a-z]+/?)`", row.split("|")[1])}
        for row in table.splitlines()
    ]


def test_the_map_of_the_packages_has_the_layers_of_the_code() -> None:
    contract = read_toml(ROOT / "pyproject.toml")["tool"]["importlinter"]["contracts"][0]
    layers = [set(re.findall(r"[a-z]+", layer)) for layer in contract["layers"]]
    assert packages_in_rows((ROOT / "docs" / "architecture.md").read_text()) == layers
    listed = packages_in_rows((ROOT / "CONTRIBUTING.md").read_text())
    assert set().union(*listed) == set().union(*layers)


def test_shipped_files_are_in_step() -> None:
    for path, text in generator().SHIPPED.items():
        assert path.read_text() == text(), "run docs/generate.py"


def test_the_schema_of_a_cluster_takes_every_cluster() -> None:
    schema = json.loads((ROOT / "src" / "teho" / "clusters" / "cluster.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for path in cluster_files({}).values():
        # JSON has no dates: they stand there as text.
        validator.validate(json.loads(msgspec.json.encode(read_toml(path))))
        spoilt = read_toml(path) | {"nmae": "x"}
        assert not validator.is_valid(json.loads(msgspec.json.encode(spoilt)))


def test_every_documented_command_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    called = set()
    for page in pages:
        called |= set(re.findall(r"(?:`|\$ |srun )teho ([a-z]+(?:-[a-z]+)*)", page.read_text()))
    assert called <= set(COMMANDS) | HIDDEN, called - set(COMMANDS)


def test_the_table_of_ranks_is_as_documented() -> None:
    page = (ROOT / "docs" / "launch.md").read_text()
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert (ROOT / "tests/data/launch/table-lumi.txt").read_text().startswith(shown)


def test_every_page_is_in_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in site


# Pages whose long lines a program writes: the figures of a machine, and lists of programs.
WRITTEN_BY_PROGRAMS = {"benchmarks.md", "blind.md", "faults.md", "gpu.md"}


def linked_from(index: Path) -> set[Path]:
    links = re.findall(r"\]\(([^)#:]+\.md)", index.read_text(encoding="utf-8"))
    return {(index.parent / link).resolve() for link in links}


def test_the_index_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    linked = linked_from(docs / "index.md")
    decisions = docs / "decisions" / "index.md"
    assert decisions in linked
    missing = {
        str(page.relative_to(docs))
        for page in docs.rglob("*.md")
        if page not in linked | linked_from(decisions) | {docs / "index.md"}
    }
    assert missing == set()


def long_lines(text: str) -> list[str]:
    """Return the lines of prose with more than 100 letters: no tables, pictures, code or links."""
    found = []
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        is_prose = not is_code and not line.startswith(("|", "![", "[![", "<!--"))
        if is_prose and len(line) > 100 and " " in line.strip():
            found.append(line)
    return found


def test_prose_has_lines_of_at_most_100_letters() -> None:
    docs = ROOT / "docs"
    pages = [page for page in docs.rglob("*.md") if page.name not in WRITTEN_BY_PROGRAMS]
    pages += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    found = {str(page.relative_to(ROOT)): long_lines(page.read_text("utf-8")) for page in pages}
    assert {page: lines for page, lines in found.items() if lines} == {}


def test_which_lines_are_long() -> None:
    words = "word " * 25
    assert long_lines(f"{words}\n- {words}\n") == [words, f"- {words}"]
    assert long_lines(f"| {words} |\n![{words}](a.svg)\n```\n{words}\n```\n{'x' * 200}\n") == []


def links_of(cluster: str) -> set[str]:
    """Return the pages in the file of a cluster."""
    links = load_cluster(cluster, {"XDG_CONFIG_HOME": "/nonexistent"}).links
    texts = msgspec.structs.astuple(links) if links else ()
    return {text for text in texts if text.startswith("https://")}


def test_nothing_shipped_names_an_outside_place() -> None:
    # Facts carry sources in words; nothing that is installed fetches or links anything but uPlot's
    # own home inside its licence, the TOML help, the name of the schema's dialect, and the pages of
    # the sites in the clusters' files, which are only printed.
    allowed = {
        "https://toml.io",
        "https://github.com/leeoniya/uPlot",
        "https://json-schema.org/draft/2020-12/schema",
        "https://metrics.example.org",  # a reserved name, in examples
        "http://localhost/metrics",
    }
    for path in (ROOT / "src").rglob("*"):
        if path.is_file() and path.suffix in {".py", ".toml", ".js", ".css", ".json"}:
            found = set(re.findall(r"https?://[\w./-]+", path.read_text(errors="replace")))
            if path.parent.name == "files":
                found -= links_of(path.stem)
            assert found <= allowed, (path, found - allowed)


def leaf_commands(command: click.Command, name: str, parent: click.Context):
    """Yield the context of each command that does something itself."""
    context = click.Context(command, info_name=name, parent=parent)
    inner = getattr(command, "commands", {})
    if not inner or getattr(command, "invoke_without_command", False):
        yield context
    for one in inner.values():
        yield from leaf_commands(one, one.name, context)


GROUP = click.Context(teho, info_name="teho", **teho.context_settings)
ALL_COMMANDS = [
    context
    for name in COMMANDS
    for context in leaf_commands(teho.get_command(GROUP, name), name, GROUP)
]


@pytest.mark.parametrize("context", ALL_COMMANDS, ids=lambda context: context.command_path)
def test_every_command_says_what_it_reads_writes_and_asks_of_the_network(context) -> None:
    with context:
        printed = context.command.get_help(context)
    says = re.findall(r"^  (Reads|Writes|Network): \S", printed, re.MULTILINE)
    assert says == ["Reads", "Writes", "Network"]
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    (section,) = re.findall(
        rf"^## {re.escape(context.command_path)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL
    )
    assert re.findall(r"^  (Reads|Writes|Network): \S", section, re.MULTILINE) == says
