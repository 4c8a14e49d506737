"""Read the options of `teho launch` without a command-line library.

Ten thousand tasks start at the same time, and click would take as long as the whole launch. The
command in `teho.cli.launch` has the same options. It handles help and mistakes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Options", "parse"]


class Options:
    """The options of `teho launch`; see `teho launch --help`."""

    __slots__ = (
        "bind", "check", "check_words", "command", "dry_run", "env", "generation", "gpus", "quiet",
    )  # fmt: skip

    def __init__(self) -> None:
        self.bind = "auto"
        """`auto`, `none`, or a file with the cores of each local rank."""
        self.gpus = "auto"
        """GPUs that a rank sees: `auto`, `all` or `own`."""
        self.env: list[str] = []
        """Variables, each as `NAME=VALUE`."""
        self.generation = ""
        """Set of the site's variables; empty: the current one; `none`: no variables."""
        self.dry_run = False
        self.check = False
        self.check_words: tuple[str, ...] = ()
        """Options of the check itself."""
        self.quiet = False
        self.command: tuple[str, ...] = ()


_FLAGS = {"--check": "check", "--quiet": "quiet", "-q": "quiet"}
_VALUES = {"--bind": "bind", "--gpus": "gpus", "--generation": "generation"}


def parse(words: Sequence[str]) -> Options | None:
    """Read the words after `teho launch`. None: `teho.cli.launch` must handle them."""
    options = Options()
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, sign, value = word.partition("=")
        if word in _FLAGS:
            setattr(options, _FLAGS[word], True)
            continue
        if name not in {*_VALUES, "--env"} or not (sign or rest):
            return None
        value = value if sign else rest.pop(0)
        if name == "--env":
            options.env.append(value)
        else:
            setattr(options, _VALUES[name], value)
    options.command = tuple(rest)
    sound = (
        options.gpus in {"auto", "all", "own"}
        and all("=" in pair and not pair.startswith("=") for pair in options.env)
        and (options.check or options.command)
    )
    return options if sound else None
