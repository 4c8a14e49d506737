"""One exception tree for everything that Teho says to its user.

TehoError                   any problem that the user can mend; exit code 2
├── InputError              an option, a value or a settings file is not as expected
│   └── UnitError           a quantity whose number or unit suffix is not one
├── RecordingError          something is wrong with one recording
│   ├── RunNotFoundError    no recording of that name, or more than one
│   ├── DamagedError        a file of the recording does not read
│   └── NewerFormatError    written by a newer Teho than this one
├── DeviceError             a device or its library cannot be asked
└── SchedulerError          a scheduler does not do, or does not answer, what it was asked
    ├── MissingCommandError   its command is not on this machine
    ├── NoAnswerError         it did not answer in time, cannot be reached, or cannot be understood
    ├── RefusedError          it answered no
    ├── NotSubmittedError     the answer was lost, and the job is certainly not there
    └── LostSubmissionError   the answer was lost, and nobody can tell whether the job is there

Every message names what was found, what was expected, and the next step.
"""

from __future__ import annotations

__all__ = [
    "DamagedError",
    "DeviceError",
    "InputError",
    "LostSubmissionError",
    "MissingCommandError",
    "NewerFormatError",
    "NoAnswerError",
    "NotSubmittedError",
    "RecordingError",
    "RefusedError",
    "RunNotFoundError",
    "SchedulerError",
    "TehoError",
    "UnitError",
]


class TehoError(Exception):
    """A problem that the user can mend, with the step that mends it.

    Args:
        found: what was found and where (names the file, option or command).
        expected: what would have been right; may be empty if it is plain.
        next_step: what to do now; a command where one exists.
    """

    exit_code = 2

    def __init__(self, found: str, expected: str = "", next_step: str = "") -> None:
        self.found = found
        self.expected = expected
        self.next_step = next_step
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        text = self.found
        if self.expected:
            text += f"; expected {self.expected}"
        if self.next_step:
            text += f"{'' if text.endswith('?') else '.'} Next: {self.next_step}"
        return text


class InputError(TehoError):
    """An option, a value or a settings file is not as expected."""


class UnitError(InputError):
    """A quantity whose number or unit suffix is not one."""


class RecordingError(TehoError):
    """Something is wrong with one recording."""


class RunNotFoundError(RecordingError):
    """No recording of that name exists, or more than one does."""


class DamagedError(RecordingError):
    """A file of the recording does not read."""


class NewerFormatError(RecordingError):
    """The recording was written by a newer Teho than this one."""


class DeviceError(TehoError):
    """A device or its library cannot be asked."""


class SchedulerError(TehoError):
    """A scheduler does not do, or does not answer, what it was asked."""


class MissingCommandError(SchedulerError):
    """The scheduler's command is not on this machine."""


class NoAnswerError(SchedulerError):
    """The scheduler did not answer in time, cannot be reached, or cannot be understood."""


class RefusedError(SchedulerError):
    """The scheduler answered no; its own words are in `found`."""


class NotSubmittedError(SchedulerError):
    """The answer to a submission was lost, and the job is certainly not there: submit again."""


class LostSubmissionError(SchedulerError):
    """The answer to a submission was lost, and nobody can tell whether the job is there."""
