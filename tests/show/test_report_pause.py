"""The pause between two reports of a running run."""

from __future__ import annotations

import pytest

from teho.show.report_pause import report_pause_s


@pytest.mark.parametrize(
    ("cpu_s", "pause_s"), [(0.0, 10.0), (0.19, 10.0), (0.5, 25.0), (60.0, 3e3)]
)
def test_reports_use_two_percent_of_a_core(cpu_s: float, pause_s: float) -> None:
    assert report_pause_s(cpu_s) == pytest.approx(pause_s)
