"""The command `teho`: one file per command, which is imported when the command is called."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # True for type checkers; `typing` would slow down `teho launch`
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teho.launch.options import Options

__all__ = ["COMMANDS", "main", "say"]

COMMANDS = {
    # name, also of the module: (group, one line). `teho --help` imports no command for this list.
    "clusters": ("Choose", "List the known clusters, and the source of each limit."),
    "plan": ("Choose", "Find out what to request, on which cluster, at what cost."),
    "submit": ("Submit", "Plan a job, write the script, submit and follow the job."),
    "pack": ("Submit", "Pack many small files into a few archives that load fast."),
    "stage": ("Submit", "Copy data to another disk or cluster, and check the copy."),
    "status": ("Submit", "Show the states of submitted jobs, and their cost."),
    "cancel": ("Submit", "End jobs."),
    "launch": ("Record", "Set rank, binding and threads of a task, then run COMMAND."),
    "run": ("Record", "Run a program unchanged and record what it uses."),
    "always": ("Record", "Record all your jobs, without a change in their scripts."),
    "energy": ("Record", "Measure the energy of GPUs during a program or a period."),
    "report": ("Understand", "Report what a run used, what it wasted, and what to change."),
    "jobs": ("Understand", "List all jobs of a period, and what each job used."),
    "digest": ("Understand", "Add up what the jobs of a period used and wasted."),
    "top": ("Understand", "Show all nodes and GPUs of a run while it is running."),
    "profile": ("Understand", "Record steps with a profiler: why was the GPU idle?"),
    "diff": ("Understand", "Compare two runs: times, findings and other differences."),
    "compare": ("Understand", "Run a program on cores and on GPUs: which is faster?"),
    "scale": ("Understand", "Measure one program on more and more GPUs or cores."),
    "tune": ("Understand", "Find settings that make the unchanged program faster."),
    "bench": ("Understand", "Find with examples from which problem size a GPU is faster."),
    "list": ("Keep", "List the recorded runs."),
    "import": ("Keep", "Make a recording from a log, such as one of nvidia-smi."),
    "show": ("Keep", "Print the description of a run, or its directory."),
    "tag": ("Keep", "Add tags to a recording, or remove them."),
    "export": ("Keep", "Write recordings for other tools, or send them to a store."),
    "serve-metrics": ("Keep", "Serve the values of running recordings for Prometheus."),
    "log": ("Keep", "Log runs to TensorBoard, W&B, MLflow or Trackio."),
    "portal": ("Keep", "Show all runs in a browser, and the runs of your group."),
    "share": ("Keep", "Let the members of a group read runs."),
    "unshare": ("Keep", "Stop sharing runs."),
    "merge": ("Keep", "Join the parts of one recording from several nodes."),
    "rm": ("Keep", "Delete recordings."),
    "doctor": ("Set up", "Find problems before a job starts: builds, drivers, files."),
    "env": ("Set up", "Plan software that uses GPUs, and check installed software."),
    "devices": ("Set up", "Show what this machine can measure, and what it cannot."),
    "completion": ("Set up", "Print the tab completion for your shell."),
}
"""Every command, in the order of `teho --help`."""
_ASKS_FOR_HELP: tuple[list[str], ...] = ([], ["--help"], ["-h"])


def say(text: str) -> None:
    """Write one line with the name of Teho to stderr, if stderr is open."""
    if sys.stderr:
        try:
            sys.stderr.write(f"teho: {text}\n")
            sys.stderr.flush()
        except OSError:  # a closed or full terminal must not end the run of a program
            return


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    # `list` is a module of this package. The shell's completion also calls `teho` without words.
    if [*words] in _ASKS_FOR_HELP and "_TEHO_COMPLETE" not in os.environ:
        from teho.cli.overview import print_overview

        sys.exit(print_overview())
    if words[:1] == ["launch"]:
        from teho.launch.options import parse

        options = parse(words[1:])
        if options is not None:
            sys.exit(_launch(options))
    from teho.cli.group import run

    run(words)


def _launch(options: Options) -> int:
    """Become the program of `teho launch`, without the imports of other commands."""
    from teho.errors import TehoError
    from teho.launch.launch import launch

    try:
        return launch(options, os.environ)
    except TehoError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
