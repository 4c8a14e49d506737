"""What was submitted: a directory a submission, with its script.

```
TEHO_HOME/jobs/UUID/submission.json    what is known of it; replaced atomically
TEHO_HOME/jobs/UUID/job.sh             the script as it was submitted
```
"""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import msgspec

from teho.errors import InputError
from teho.model.job import Submission
from teho.store.layout import replace_file

__all__ = ["find_submission", "forget", "keep", "new_directory", "submissions"]

_FILE = "submission.json"


def new_directory(home: Path, mark: str) -> Path:
    """Make the directory of a submission and return it; its script goes into it.

    Raises:
        OSError: it cannot be made.
    """
    directory = _directory(home, mark)
    directory.mkdir(mode=0o700, parents=True)
    return directory


def keep(home: Path, submission: Submission) -> None:
    """Write down what is known of a submission.

    Raises:
        OSError: it cannot be written; what was known before stays.
    """
    replace_file(_directory(home, submission.mark) / _FILE, msgspec.json.encode(submission))


def forget(home: Path, mark: str) -> None:
    """Delete what is known of a submission that has become no job."""
    rmtree(_directory(home, mark), ignore_errors=True)


def submissions(home: Path) -> tuple[list[Submission], list[str]]:
    """Return every submission, oldest first, and a sentence for each that does not read."""
    found: list[Submission] = []
    problems: list[str] = []
    for path in (home / "jobs").glob(f"*/{_FILE}"):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Submission))
        except (OSError, msgspec.DecodeError) as error:
            problems.append(f"{path} does not read: {error}")
    return sorted(found, key=lambda one: one.submitted_at), sorted(problems)


def find_submission(home: Path, reference: str) -> Submission:
    """Return the newest submission of that job number or name; `last`: the newest of all.

    A task of an array, such as `123_4` or `5.3`, leads to its array.

    Raises:
        InputError: there is none.
    """
    known, problems = submissions(home)
    number = reference.partition("_")[0].partition(".")[0].partition("+")[0]
    for one in reversed(known):
        numbers = {one.number, one.job} - {""}
        if reference == "last" or number in numbers or (one.name and one.name == reference):
            return one
    raise InputError(
        f"no job {reference!r} was submitted by `teho submit`"
        + (f"; {problems[0]}" if problems else ""),
        "a job's number, its name, or `last`",
        "`teho status` lists the jobs there are",
    )


def _directory(home: Path, mark: str) -> Path:
    return home / "jobs" / mark.partition("=")[2]
