"""All exceptions that Teho reports to its user.

TehoError                   any problem that the user can solve; exit code 2
├── InputError              an option, a value or a settings file is not as expected
│   └── UnitError           a quantity has no valid number or unit
├── RecordingError          one recording has a problem
│   ├── RunNotFoundError    no recording or several recordings have this name
│   ├── DamagedError        a file of the recording cannot be decoded
│   ├── UnreadableError     this user has no permission to read the recording
│   └── NewerFormatError    a newer Teho wrote the recording
├── DeviceError             a device or its library gives no answer
├── StoreError              a store of monitoring data does not answer, or refuses the request
│   └── StoreBusyError      the store may accept the same request later
└── SchedulerError          a scheduler does not do what Teho asked, or does not answer
    ├── MissingCommandError   the scheduler's command is not on this machine
    ├── NoAnswerError         no answer in time, or an answer that Teho does not understand
    ├── RefusedError          the scheduler refused the request
    │   └── UnconfiguredError   its commands exist, but this machine is not part of a cluster
    ├── NotSubmittedError     the answer was lost, and the job does not exist
    └── LostSubmissionError   the answer was lost, and it is not known whether the job exists

Every message says what Teho found, what it expected, and the next step.
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
    "StoreBusyError",
    "StoreError",
    "TehoError",
    "UnconfiguredError",
    "UnitError",
    "UnreadableError",
]


class TehoError(Exception):
    """A problem that the user can solve, with the next step.

    Args:
        found: what is wrong; names the file, option or command.
        expected: what is allowed; empty if it is obvious.
        next_step: what to do now, if possible a command.
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
    """A quantity has no valid number or unit."""


class RecordingError(TehoError):
    """One recording has a problem."""


class RunNotFoundError(RecordingError):
    """No recording or several recordings have this name."""


class DamagedError(RecordingError):
    """A file of the recording cannot be decoded."""


class UnreadableError(RecordingError):
    """This user has no permission to read the recording."""


class NewerFormatError(RecordingError):
    """A newer Teho wrote the recording."""


class DeviceError(TehoError):
    """A device or its library gives no answer."""


class StoreError(TehoError):
    """A store of monitoring data does not answer, or refuses the request."""


class StoreBusyError(StoreError):
    """The store does not answer now, or asks to repeat the request later."""


class SchedulerError(TehoError):
    """A scheduler does not do what Teho asked, or does not answer."""


class MissingCommandError(SchedulerError):
    """The scheduler's command is not on this machine."""


class NoAnswerError(SchedulerError):
    """The scheduler did not answer in time, or Teho does not understand the answer."""


class RefusedError(SchedulerError):
    """The scheduler refused the request; `found` has the scheduler's message."""


class UnconfiguredError(RefusedError):
    """The scheduler's commands exist here, but this machine is not part of a cluster."""


class NotSubmittedError(SchedulerError):
    """The answer to a submission was lost, and the job does not exist: submit again."""


class LostSubmissionError(SchedulerError):
    """The answer to a submission was lost, and it is not known whether the job exists."""
