"""Reading of /proc/PID/stat."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stubs.proc_tree import stat_line
from teho.devices.host.procstat import parse_stat


@given(st.text(min_size=0, max_size=64), st.integers(0, 2**40), st.integers(0, 2**40))
def test_any_process_name_is_survived(name, ticks, children):
    line = stat_line(42, 7, name=name, ticks=(ticks, 3), children_ticks=(children, 4), threads=5)
    stat = parse_stat(line.encode("utf-8", "surrogatepass"))
    assert stat == (b"S", "7", ticks + 3, children + 4, 5, b"100")


@given(st.binary(max_size=200))
def test_what_is_no_stat_is_refused_cleanly(data):
    try:
        parse_stat(data)
    except (ValueError, UnicodeDecodeError):
        return
    assert data.count(b" ") > 10


def test_own_stat_reads():
    stat = parse_stat(Path("/proc/self/stat").read_bytes())
    assert stat.parent == str(os.getppid())
    assert not stat.is_dead
