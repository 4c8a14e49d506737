"""What is read of the command line without click, and what is left to it."""

from __future__ import annotations

import click
import pytest

from teho.cli.launch import command
from teho.launch.options import Options, parse

PLAIN = [
    ["--", "python", "train.py"],
    ["python", "train.py", "--bind", "x", "-q"],
    ["--bind", "none", "--", "true"],
    ["--bind=cores.txt", "true"],
    ["--gpus", "own", "--env", "A=1", "--env", "B=", "--env=C=x=y", "--", "true"],
    ["--generation", "none", "-q", "--", "true"],
    ["--quiet", "--", "--strange-program"],
    ["--check"],
    ["--check", "--", "singularity", "exec", "x", "python3"],
    ["--env", "A=--", "--", "a", "--", "b"],
    ["--bind", "--", "true"],
    ["-q", ""],
]


def fields(options: Options) -> dict[str, object]:
    found = {name: getattr(options, name) for name in Options.__slots__}
    return {**found, "env": tuple(options.env)}


def by_click(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Return what the command with its help understands of the same words."""
    taken: list[Options] = []
    monkeypatch.setattr("teho.cli.launch.launch", lambda options, _: taken.append(options) or 0)
    with pytest.raises(SystemExit):
        # As within the group: a command keeps its help option once it has made it.
        command.main(words, standalone_mode=False, help_option_names=["-h", "--help"])
    return fields(taken[0])


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_what_is_plain_is_read_as_click_does(words: list[str], monkeypatch: pytest.MonkeyPatch):
    options = parse(words)
    assert options is not None
    assert fields(options) == by_click(words, monkeypatch)


@pytest.mark.parametrize(
    "words",
    [
        [], ["--"], ["-q"], ["--help"], ["-h"], ["--gpus", "some", "true"], ["--bind"],
        ["--nosuch"], ["--env", "A", "true"], ["--env", "=1", "true"], ["--env="],
        ["--quiet=1", "true"], ["-qq", "true"], ["-", "true"], ["--bin", "x", "true"], ["--gpus="],
        ["--dry-run", "--", "true"], ["--check", "--json"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_rest_is_left_to_click(words: list[str]):
    assert parse(words) is None


def test_every_option_is_known_to_both():
    options = {
        name: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }
    for name, parameter in options.items():
        words = [name] if parameter.is_flag else [name, "A=all" if name == "--env" else "all"]
        rare = name in {"--dry-run", "--timeout", "--for", "--json"}
        assert (parse([*words, "true"]) is None) == rare
