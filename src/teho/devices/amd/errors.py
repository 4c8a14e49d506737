"""Memory errors of an AMD GPU, counted by the driver's RAS."""

from __future__ import annotations

import re

from teho.devices.amd.files import FOR_GOOD, why_missing
from teho.devices.procfile import slurp
from teho.model.device import Reading
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["MemoryErrors"]

_METRICS = ("gpu_ecc_corrected", "gpu_ecc_uncorrected")
_EVERY = 60
"""Samples between two readings, because the driver asks all memory channels each time."""
_COUNT = lazy_pattern(rb"^(ue|ce): (\d{1,18})$", re.MULTILINE)


class MemoryErrors:
    """Memory errors that ECC corrected or could not correct, since the driver was loaded.

    Args:
        name: the GPU's name in alerts.
        directory: folder of its PCI device.

    Attributes:
        alerts: sentences for the report; the caller removes them.
    """

    def __init__(self, name: str, directory: str) -> None:
        self.alerts: list[str] = []
        self._name = name
        self._path = f"{directory}/ras/umc_err_count"  # UMC: memory controllers
        self._uncorrected: int | None = None
        self._is_settled = False
        self._calls = 0
        self._values = self._ask()

    def read(self) -> dict[str, Reading]:
        """Return both counts; every 60th call reads them again."""
        self._calls += 1
        if self._calls % _EVERY == 0 and not self._is_settled:
            self._values = self._ask()
        return self._values

    def _ask(self) -> dict[str, Reading]:
        try:
            # The driver creates the content at each read, so an open file would not be faster.
            answer = slurp(self._path)
        except OSError as error:
            missing = why_missing(error, "ras/umc_err_count")
            self._is_settled = missing.reason in FOR_GOOD
            return dict.fromkeys(_METRICS, missing)
        counts = {name: int(count) for name, count in _COUNT.findall(answer)}
        if counts.keys() != {b"ue", b"ce"}:
            words = answer.strip().decode("ascii", "backslashreplace")[:60]
            return dict.fromkeys(
                _METRICS, Missing(Reason.FAILED, f"ras/umc_err_count says '{words}'")
            )
        self._compare(counts[b"ue"])
        return dict(zip(_METRICS, (counts[b"ce"], counts[b"ue"]), strict=True))

    def _compare(self, uncorrected: int) -> None:
        before, self._uncorrected = self._uncorrected, uncorrected
        if before is not None and uncorrected > before:
            more = uncorrected - before
            self.alerts.append(
                f"{self._name}: ECC could not correct {more} memory error{'s' * (more > 1)}"
            )
