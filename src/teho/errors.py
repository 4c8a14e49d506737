"""One exception tree for everything that Teho says to its user.

TehoError                   any problem that the user can mend; exit code 2
├── InputError              an option, a value or a settings file is not as expected
│   └── UnitError           a quantity whose number or unit suffix is not one
├── RecordingError          something is wrong with one recording
│   ├── RunNotFoundError    no recording of that name, or more than one
│   ├── DamagedError        a file of the recording does not read
│   └── NewerFormatError    written by a newer Teho than this one
└── DeviceError             a device or its library cannot be asked

Every message names what was found, what was expected, and the next step.
"""

from __future__ import annotations

__all__ = [
    "DamagedError",
    "DeviceError",
    "InputError",
    "NewerFormatError",
    "RecordingError",
    "RunNotFoundError",
    "TehoError",
    "UnitError",
]


class TehoError(Exception):
    """A problem that the user can mend, with the step that mends it.

    Args:
        found: what was found and where (names the file, option or command).
        expected: what would have been right; may be empty where it is plain.
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
