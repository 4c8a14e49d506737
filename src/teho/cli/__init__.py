"""The command `teho`: one thin file a command, loaded when it is called."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; `teho launch` has no time for `typing`
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teho.launch.options import Options

__all__ = ["COMMANDS", "main", "say"]

COMMANDS: dict[str, tuple[str, str, str]] = {
    # name: (group, module, one line). Here, so that `teho --help` loads no command.
    "clusters": ("Choose", "clusters", "The clusters that Teho knows, with every limit's source."),
    "plan": ("Choose", "plan", "What to ask for, where, at what cost; and why the rest fails."),
    "submit": ("Submit", "submit", "Plan a job, write its script, submit it, follow it."),
    "status": ("Submit", "status", "What the submitted jobs are doing, and what they cost."),
    "cancel": ("Submit", "cancel", "End jobs."),
    "launch": ("Record", "launch", "Once per task of a job: rank, binding, threads; then COMMAND."),
    "run": ("Record", "run", "Run a program unchanged and record what it uses."),
    "energy": ("Record", "energy", "What the GPUs drew, beside a program or between two calls."),
    "report": ("Understand", "report", "What a run used, what it wasted, and what to change."),
    "diff": ("Understand", "diff", "Two runs side by side: figures, findings, what differed."),
    "compare": (
        "Understand",
        "compare",
        "Run a program on cores and on GPUs: is the GPU worth it?",
    ),
    "scale": ("Understand", "scale", "Measure one program on more and more GPUs or cores."),
    "tune": ("Understand", "tune", "Try settings on the unchanged program, and prove the gain."),
    "bench": ("Understand", "bench", "Worked examples: from what size on is a GPU faster?"),
    "list": ("Keep", "list", "The runs that are recorded."),
    "show": ("Keep", "show", "What is known of one run, and where its files lie."),
    "tag": ("Keep", "tag", "Add tags to a recording, or remove them."),
    "merge": ("Keep", "merge", "One recording out of parts, where nodes share no files."),
    "rm": ("Keep", "rm", "Delete recordings."),
    "doctor": ("Set up", "doctor", "What can make a job fail or slow: builds, drivers, files."),
    "env": ("Set up", "env", "GPU builds: planned for a cluster, and checked before the job."),
    "devices": ("Set up", "devices", "What this machine can measure, and what it cannot."),
    "completion": ("Set up", "completion", "Tab completion for your shell."),
}
"""Every command, in the order of the journey."""


def say(text: str) -> None:
    """Write one line of Teho's own to stderr, where there is one."""
    if sys.stderr:
        try:
            sys.stderr.write(f"teho: {text}\n")
            sys.stderr.flush()
        except OSError:  # a terminal that is gone or full is nothing to end a program's run for
            return


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["launch"]:
        from teho.launch.options import parse

        options = parse(words[1:])
        if options is not None:
            sys.exit(_launch(options))
    from teho.cli.group import run

    run(words)


def _launch(options: Options) -> int:
    """Become the program of `teho launch`, without loading any of what other commands need."""
    from teho.errors import TehoError
    from teho.launch.launch import launch

    try:
        return launch(options, os.environ)
    except TehoError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
