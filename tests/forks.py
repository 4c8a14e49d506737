"""Programs that run in forks of one process, because their framework takes seconds to import."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["Done", "Program", "forked"]

_SERVER = """\
import gc, json, os, sys, warnings
PRELUDE
gc.freeze()  # at their end, forks would look through all that is imported: a second of a core
for name, path, words, environment, *files in json.loads(sys.argv[1]):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries have threads, which only wait for work
        pid = os.fork()
    if pid == 0:
        for number, file in enumerate(files):
            os.dup2(os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY if number else 0), number)
        os.environ.update(environment)
        __file__ = path
        sys.argv[:] = path, *words
        sys.path[0] = os.path.dirname(path)
        with open(path) as file:
            code = compile(file.read(), path, "exec")
        exec(code)
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([name, pid, code]), flush=True)
"""


class Program(NamedTuple):
    """A file of Python, its arguments, and what it reads."""

    path: Path
    words: Sequence[str] = ()
    stdin: str = ""
    environment: Mapping[str, str] = MappingProxyType({})
    """More variables: for what is read after the imports."""


class Done(NamedTuple):
    """A program that has ended."""

    pid: int
    stdout: bytes
    stderr: bytes
    returncode: int


def forked(
    prelude: str,
    programs: Mapping[str, Program],
    folder: Path,
    python: Sequence[str],
    environment: Mapping[str, str],
    *,
    is_silent: bool = True,
) -> dict[str, Done]:
    """Run programs one after the other, each in a fork as if it were `__main__`.

    Args:
        prelude: the imports before the forks.
        programs: by a name.
        folder: for files.
        python: a command with options.
        environment: of the programs.
        is_silent: whether nothing is to be printed by the imports.
    """
    server = folder / "server" / "forks.py"  # without the programs beside it, it imports none
    server.parent.mkdir(exist_ok=True)
    server.write_text(_SERVER.replace("PRELUDE", prelude))
    asked = []
    for name, one in programs.items():
        (folder / f"{name}.stdin").write_text(one.stdin)
        files = [str(folder / f"{name}.{kind}") for kind in ("stdin", "stdout", "stderr")]
        asked.append([name, str(one.path), list(one.words), dict(one.environment), *files])
    done = subprocess.run(
        [*python, str(server), json.dumps(asked)],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == b"" or not is_silent
    found = {}
    for line in done.stdout.splitlines():
        name, pid, code = json.loads(line)
        output, errors = ((folder / f"{name}.{kind}").read_bytes() for kind in ("stdout", "stderr"))
        found[name] = Done(pid, output, errors, code)
    assert found.keys() == programs.keys()
    return found
