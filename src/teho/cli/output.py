"""Options of all commands that print a result: format, file, and level of detail."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from teho.cli import say
from teho.cli.declare import flag, option, together
from teho.errors import InputError

if TYPE_CHECKING:
    from typing import IO

    import msgspec

    from teho.model.document import Document
    from teho.show.text.document import Detail

__all__ = ["Output", "output_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    **dict.fromkeys(("", ".txt", ".log", ".sh", ".sbatch", ".slurm", ".job"), "text"),
}
"""Format of a file by its name, without `--format`; a script is text."""


class Output:
    """File, format and level of detail of a result."""

    def __init__(self, form: str, path: Path | None, detail: Detail) -> None:
        self.form = form
        """`text`, `html`, `json`, or another format of the command."""
        self.path = path
        """The file; None: standard output."""
        self.detail: Detail = detail

    def show(
        self,
        document: Document,
        noun: msgspec.Struct | None = None,
        *,
        script: str = "",
        below: str = "",
        pictures: Callable[[], Iterable[bytes]] = tuple,
        stream: IO[str] | None = None,
        columns: int | None = None,
    ) -> None:
        """Write a result.

        Args:
            document: the result for text and HTML.
            noun: the result for JSON; None: the document.
            below: lines of text below the document's text.
            script: text that replaces the document's at the default level, such as a script.
            pictures: draws SVG for the HTML page; called only for HTML. Without matplotlib, the
                page has no pictures.
            stream: for a result that is not written to a file; None: standard output.
            columns: width of text; None: the width of the terminal, at most 120.
        """
        stream = stream or sys.stdout
        if self.form == "json":
            self.write(_json(document, noun), stream=stream)
        elif self.form == "html":
            from teho.show.html.page import render_html

            page = render_html(document, _inlined(pictures))
            self.write(page, document.title, stream=stream)
        elif script and self.detail == "default":
            self.write(script, stream=stream)
        else:
            from teho.cli.terminal import wants_color, width
            from teho.show.text.document import render_text

            color = self.path is None and wants_color(stream)
            text = render_text(document, width=columns or width(), color=color, detail=self.detail)
            self.write(text + below, stream=stream)

    def write(self, text: str, name: str = "", *, stream: IO[str] | None = None) -> None:
        """Write a text to the file, or to standard output.

        Args:
            text: the whole result.
            name: name of the HTML file if standard output is a terminal, which cannot show HTML.
            stream: used instead of standard output.

        Raises:
            InputError: the file cannot be written.
        """
        path = self.path
        if self.form == "html" and path is None and (stream or sys.stdout).isatty():
            path = Path(f"{name.replace(' ', '-').replace('/', '-') or 'teho'}.html")
        if path is None:
            click.echo(text, nl=False, file=stream)
            return
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", "a file that can be written") from error
        say(f"wrote {path}")

    def write_bytes(self, data: bytes) -> None:
        """Write a result that is not text to the file, or to standard output.

        Raises:
            InputError: the file cannot be written, or standard output is a terminal.
        """
        if self.path is None:
            if sys.stdout.isatty():
                raise InputError(
                    f"--format {self.form}: a terminal cannot show this format",
                    "a file",
                    f"add `-o jobs.{self.form}`",
                )
            sys.stdout.buffer.write(data)
            return
        try:
            self.path.write_bytes(data)
        except OSError as error:
            raise InputError(
                f"{self.path}: {error.strerror}", "a file that can be written"
            ) from error
        say(f"wrote {self.path}")


def output_options(*others: str, file: bool = True) -> Callable[[_Command], _Command]:
    """Give a command the options `--format`, `-o`, `--short` and `--why`.

    The command gets an `Output` as the argument `output`.

    Args:
        others: more formats than text, html and json.
        file: whether the command has `-o`.
    """

    def decorate(function: _Command) -> _Command:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            read = [given.pop(name, None) for name in ("form", "path", "short", "why")]
            return function(*args, **given, output=_read(others, *read))

        declared: _Command = _options(others, file=file)(call)
        return declared

    return decorate


def _options(others: tuple[str, ...], *, file: bool) -> Callable[[Any], Any]:
    to_file = option("-o --output FILE", "Write to this file, such as a.html or a.json.",
                     into="path", type=click.Path(dir_okay=False, path_type=Path))  # fmt: skip
    return together(
        option("--format", "Format of the result.", into="form",
               unset="from the ending of the -o file, else text" if file else "text",
               type=click.Choice(["text", "html", "json", *others])),
        *([to_file] if file else []),
        flag("--short", "In text output, print only the verdict."),
        flag("--why", "In text output, print everything, also thresholds, sources, and what could "
                      "not be judged."),
    )  # fmt: skip


def _read(
    others: tuple[str, ...], form: str | None, path: Path | None, short: bool, why: bool
) -> Output:
    if short and why:
        raise InputError("--short cannot be used together with --why", "one of them")
    ending = path.suffix.lower() if path else ""
    endings = _ENDINGS | {f".{other}": other for other in others}
    if form is None and ending not in endings:
        raise InputError(
            f"-o {path}: the ending {ending} is not a known ending",
            ", ".join(filter(None, endings)),
            "give the format of any other file with `--format`",
        )
    return Output(form or endings[ending], path, "short" if short else "why" if why else "default")


def _inlined(pictures: Callable[[], Iterable[bytes]]) -> list[str]:
    from teho.show.plot.drawn import inlined

    try:
        return [inlined(svg) for svg in pictures()]
    except InputError:  # matplotlib is not installed; the tables have the same figures
        return []


def _json(document: Document, noun: msgspec.Struct | None) -> str:
    if noun is None:
        from teho.show.json.report import render_json

        return render_json(document)
    from teho.show.json.noun import render_noun

    return render_noun(noun)
