"""Write the reference pages that are made from the code: commands, metrics, settings."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import click

from teho import cli
from teho.cli import COMMANDS
from teho.config import settings as settings_module
from teho.config.settings import Settings
from teho.model.metric import METRICS

HERE = Path(__file__).parent
NOTE = "<!-- Made by docs/generate.py; a test holds it in step. -->\n\n"


def metrics() -> str:
    """Return the page of metrics: a row each."""
    lines = [
        "# Metrics\n",
        "Names are the columns of a [recording](../format.md). A counter's unit is its total's.\n",
        "| name | unit | kind | of | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{metric.name}` | {metric.unit} | {metric.kind} | {metric.scope} | {metric.meaning} |"
        for metric in METRICS
    ]
    return "\n".join(lines) + "\n"


def settings() -> str:
    """Return the page of settings, from the docstrings below the fields."""
    tree = ast.parse(inspect.getsource(settings_module))
    (noun,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    meanings: dict[str, str] = {}
    for field, text in zip(noun.body, noun.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            meanings[field.target.id] = " ".join(ast.literal_eval(text.value).split())
    default = Settings()
    lines = [
        "# Settings\n",
        "In `~/.config/teho/config.toml`, or in the environment, which wins.\n",
        "| key | default | meaning |",
        "|---|---|---|",
    ]
    lines += [
        f'| `{name}` | `"{getattr(default, name)}"` | {meanings[name]} |'
        for name in Settings.__struct_fields__
    ]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Return the page of commands: what `--help` prints."""
    parts = ["# Commands\n"]
    with click.Context(cli.teho, info_name="teho") as root:
        for name, (group, _, _) in COMMANDS.items():
            command = cli.teho.get_command(root, name)
            with click.Context(command, info_name=name, parent=root, max_content_width=90) as own:
                parts.append(f"## teho {name}\n\n*{group}*\n\n```text\n{own.get_help()}\n```\n")
    return "\n".join(parts)


PAGES = {"commands": commands, "metrics": metrics, "settings": settings}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (HERE / "reference" / f"{name}.md").write_text(NOTE + page(), encoding="utf-8")


if __name__ == "__main__":
    main()
