"""`teho --help` and `teho`: the page with all commands, printed without click."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

import click
import pytest
from click.formatting import HelpFormatter

from support import TEHO
from teho.cli import COMMANDS
from teho.cli.group import teho
from teho.cli.overview import ABOUT, overview

GROUP = click.Context(teho, info_name="teho", **teho.context_settings)
WITHOUT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, *words], capture_output=True, text=True, timeout=60, check=False, **options
    )


def page_of_click(width: int) -> str:
    """Return the page as click lays it out."""
    formatter = HelpFormatter(width=width)
    formatter.write_usage("teho", "[OPTIONS] COMMAND [ARGS]...")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(ABOUT)
    options = [one.get_help_record(GROUP) for one in teho.get_params(GROUP)]
    with formatter.section("Options"):
        formatter.write_dl([one for one in options if one])
    longest = max(map(len, COMMANDS))
    for group in dict.fromkeys(group for group, _ in COMMANDS.values()):
        rows = [(name.ljust(longest), line) for name, (of, line) in COMMANDS.items() if of == group]
        with formatter.section(group):
            formatter.write_dl(rows, col_spacing=4)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("Begin with:  teho run -- python train.py")
    return formatter.getvalue()


@pytest.mark.parametrize("width", [50, 58, 78, 98])
def test_the_page_is_laid_out_like_those_of_the_commands(width: int) -> None:
    assert overview(width) + "\n" == page_of_click(width)


@pytest.mark.parametrize(("width", "same"), [(20, 50), (300, 98)])
def test_the_page_is_neither_narrow_nor_very_wide(width: int, same: int) -> None:
    assert overview(width) == overview(same)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_click_is_not_loaded_for_the_page(words: tuple[str, ...]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {words!r}; before = {{*sys.modules}}\n"
        "from teho.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n"
        "    print(end.code, *{*sys.modules} - before, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**WITHOUT, "COLUMNS": "90"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == overview(88) + "\n"
    ended, *loaded = done.stderr.split()
    assert ended == "0"
    assert {name for name in loaded if name.startswith("teho")} == {
        "teho", "teho.version", "teho.cli", "teho.cli.overview", "teho.cli.streams"
    }  # fmt: skip
    assert not {"click", "typing", "shutil", "inspect", "datetime", "logging"} & {*loaded}


def test_click_prints_the_same_page() -> None:
    with click.Context(teho, info_name="teho", terminal_width=70) as context:
        assert teho.get_help(context) == overview(70)


def test_the_page_has_the_width_of_the_terminal() -> None:
    parent, child = pty.openpty()
    subprocess.run(["stty", "cols", "64"], stdin=child, check=True)
    process = subprocess.Popen([*TEHO], stdout=child, env=WITHOUT)
    os.close(child)
    said = b""
    with contextlib.suppress(OSError):  # the terminal has no other end any more
        while part := os.read(parent, 4096):
            said += part
    os.close(parent)
    assert process.wait(60) == 0
    assert said.decode().replace("\r\n", "\n") == overview(62) + "\n"


@pytest.mark.parametrize("columns", ["", "0", "-3", "wide", "80"])
def test_a_width_that_is_none_is_80(columns: str) -> None:
    assert run(env={**WITHOUT, "COLUMNS": columns}).stdout == overview(78) + "\n"


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        ("> /dev/full", 2, "teho: [Errno 28] No space left on device\n"),
        ("> >(exec true)", None, ""),
    ],
)
def test_output_that_cannot_be_written(redirection: str, code: int | None, said: str) -> None:
    command = " ".join(TEHO)
    done = subprocess.run(
        ["bash", "-c", f"{command} --help {redirection}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == said
    # The reader of the last one may end before Teho writes, or later.
    assert done.returncode in ({0, 141} if code is None else {code})


def test_the_completion_of_a_shell_gets_no_page() -> None:
    asked = {"_TEHO_COMPLETE": "bash_complete", "COMP_WORDS": "teho rep", "COMP_CWORD": "1"}
    assert run(env={**WITHOUT, **asked}).stdout.split() == ["plain,report"]
