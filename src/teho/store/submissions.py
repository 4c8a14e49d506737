"""The submitted jobs: each has a directory with its script.

```
TEHO_HOME/jobs/UUID/submission.json    its description; replaced atomically
TEHO_HOME/jobs/UUID/job.sh             the submitted script
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
    """Create the directory of a submission, for its script, and return it.

    Raises:
        OSError: it cannot be created.
    """
    directory = _directory(home, mark)
    directory.mkdir(mode=0o700, parents=True)
    return directory


def keep(home: Path, submission: Submission) -> None:
    """Save the description of a submission.

    Raises:
        OSError: it cannot be written; the older description is kept.
    """
    replace_file(_directory(home, submission.mark) / _FILE, msgspec.json.encode(submission))


def forget(home: Path, mark: str) -> None:
    """Delete the directory of a submission that did not become a job."""
    rmtree(_directory(home, mark), ignore_errors=True)


def submissions(home: Path) -> tuple[list[Submission], list[str]]:
    """Return all submissions, oldest first, and a sentence for each that cannot be read."""
    found: list[Submission] = []
    problems: list[str] = []
    for path in (home / "jobs").glob(f"*/{_FILE}"):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Submission))
        except (OSError, msgspec.DecodeError) as error:
            problems.append(f"{path} cannot be read: {error}")
    return sorted(found, key=lambda one: one.submitted_at), sorted(problems)


def find_submission(home: Path, reference: str) -> Submission:
    """Return the newest submission with a job number or name; `last`: the newest of all.

    For a task of an array, such as `123_4` or `5.3`, the array is returned.

    Raises:
        InputError: no submission matches.
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
        "`teho status` lists all jobs",
    )


def _directory(home: Path, mark: str) -> Path:
    return home / "jobs" / mark.partition("=")[2]
