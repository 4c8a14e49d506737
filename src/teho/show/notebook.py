"""`%%teho` for IPython and Jupyter: records the kernel while a cell runs, and shows the report."""

from __future__ import annotations

import argparse
import ast
import html
import shlex
from typing import TYPE_CHECKING, NoReturn

from teho.config.privacy import masked_text
from teho.config.settings import load_settings
from teho.errors import TehoError
from teho.observe.from_inside import RecordedProcess
from teho.observe.wanted import Wanted
from teho.show.loaded import LoadedRun
from teho.show.text.document import Detail, render_text

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["add_magic"]

_WIDTH = 80
_LINE = 60
"""Characters of the cell's first line in the name of the recording."""


class _Options(argparse.ArgumentParser):
    """The options of `%%teho`; a mistake is an exception and does not end the kernel."""

    def error(self, message: str) -> NoReturn:
        raise TehoError(f"%%teho: {message}", "[--name NAME] [--short]")


def _options() -> _Options:
    options = _Options(prog="%%teho", add_help=False, allow_abbrev=False)
    options.add_argument("--name", default="")
    options.add_argument("--short", action="store_true")
    return options


def add_magic(shell: InteractiveShell) -> None:
    """Add `%%teho` to a shell."""

    def teho(line: str, cell: str) -> None:
        """Record this process while the cell runs, and show the report below the cell.

        %%teho [--name NAME] [--short]
        """
        __tracebackhide__ = True
        _run(shell, line, cell)

    shell.register_magic_function(teho, magic_kind="cell", magic_name="teho")


def _run(shell: InteractiveShell, line: str, cell: str) -> None:
    __tracebackhide__ = True
    from IPython.core.error import UsageError

    try:
        given = _options().parse_args(shlex.split(line))
        settings = load_settings()
    except (TehoError, ValueError) as error:
        raise UsageError(str(error)) from None
    if given.name == "last":
        raise UsageError(
            "%%teho: --name last: `last` always means the newest run, so use another name"
        )
    first = next((text for text in cell.splitlines() if text.strip()), "").strip()
    title = masked_text(first)[:_LINE]
    # Not `execution_count`: some versions of IPython have already counted the next cell.
    number = max(0, len(shell.user_ns.get("In", ())) - 1)
    wanted = Wanted(settings, (f"cell-{number}", title), given.name, {}, settings.period_s)
    recorded = None
    try:
        recorded = RecordedProcess(wanted)
    except (TehoError, OSError) as error:
        _say(f"the cell is not recorded: {error}")
    failure: BaseException | None = None
    try:
        _execute(shell, cell)
    except BaseException as error:
        failure = error
        raise
    finally:
        if recorded:
            _report(recorded, wanted, failure, is_short=given.short)


def _execute(shell: InteractiveShell, cell: str) -> None:
    """Run the cell as IPython does: the value of its last expression is shown."""
    __tracebackhide__ = True
    source = shell.transform_cell(cell)
    name = shell.compile.cache(source, shell.execution_count, raw_code=cell)
    tree = shell.transform_ast(ast.parse(source, name))
    last: list[ast.stmt] = []
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = [tree.body.pop()]
    if tree.body:
        exec(shell.compile(tree, name, "exec"), shell.user_ns)  # noqa: S102 - it is the user's cell
    if last:
        shown = shell.compile(ast.Interactive(last), name, "single")
        exec(shown, shell.user_ns)  # noqa: S102 - it is the user's cell


def _report(
    recorded: RecordedProcess, wanted: Wanted, failure: BaseException | None, *, is_short: bool
) -> None:
    """End the recording and show its report. An error must not hide that of the cell."""
    from IPython.display import display

    try:
        run = recorded.finish(failure)
        loaded = LoadedRun(recorded.directory, wanted.settings, run)
        detail: Detail = "short" if is_short else "default"
        text = render_text(loaded.view_with(plots=False), width=_WIDTH, color=False, detail=detail)
        page = f"<pre>{html.escape(text)}</pre>" if is_short else loaded._repr_html_()
        display({"text/plain": text.rstrip("\n"), "text/html": page}, raw=True)
    except Exception as error:  # noqa: BLE001 - the cell comes first
        _say(f"the report failed: {error}")


def _say(text: str) -> None:
    print(f"teho: {text}")  # noqa: T201 - below the cell
