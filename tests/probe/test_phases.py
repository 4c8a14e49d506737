"""`teho.phase` and `teho.step`, with nobody there and with the probe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import teho
from probe.probed import Probed
from teho.errors import InputError

PACKAGE = str(Path(teho.__file__).parents[1])


def test_without_a_recording_they_do_nothing_and_load_nothing() -> None:
    code = """
import sys
before = set(sys.modules)
import teho
with teho.phase("a"), teho.phase("b"): teho.step()
print(sorted(name for name in set(sys.modules) - before))
"""
    # Isolated, and with nothing on its path that Teho needs.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({PACKAGE!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['__future__', 'teho', 'teho.version']\n"


def test_a_phase_is_a_decorator_too() -> None:
    @teho.phase("f")
    def divide(a: int, *, by: int = 2) -> float:
        """Divide."""
        return a / by

    assert divide(3, by=4) == 0.75
    assert (divide.__name__, divide.__doc__) == ("divide", "Divide.")
    with pytest.raises(ZeroDivisionError):
        divide(1, by=0)


def test_a_phase_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match=r'write @teho.phase\("NAME"\)'):
        teho.phase(len)  # type: ignore[arg-type]


def test_the_time_counts_for_the_innermost_phase(probed: Probed) -> None:
    probed.path = PACKAGE
    probed.both(
        """
        import teho, threading
        @teho.phase("load")
        def load(): spin(0.5)
        def other():
            with teho.phase("elsewhere"): spin(0.3)
        spin(0.4)
        with teho.phase("epoch"):
            times = [time.monotonic()]
            load()
            times.append(time.monotonic())
            try:
                with teho.phase("augment"):
                    spin(0.5)
                    raise KeyError
            except KeyError: pass
            times.append(time.monotonic())
            with open(__file__ + ".times", "w") as file: print(*times, file=file)
            thread = threading.Thread(target=other); thread.start(); thread.join()
            teho.step()
        """
    )
    (process,) = probed.watched()
    phases = process.phases
    assert set(phases) == {"epoch", "epoch/load", "epoch/augment"}
    # Against the program's own clock: on a loaded machine, both take longer.
    began_s, loaded_s, augmented_s = map(float, Path(f"{probed.script}.times").read_text().split())
    assert phases["epoch/load"] == pytest.approx(loaded_s - began_s, abs=0.2)
    assert phases["epoch/augment"] == pytest.approx(augmented_s - loaded_s, abs=0.2)
    assert 0.1 < process.wall_s - sum(phases.values()) < process.wall_s - 1
    assert process.progress[-1].steps == 1


def test_phases_that_end_out_of_order_leave_none_open(probed: Probed) -> None:
    probed.path = PACKAGE
    probed.run(
        """
        import teho
        def left_open():
            with teho.phase("inner"): yield
        with teho.phase("outer"):
            held = left_open()
            next(held)
            time.sleep(0.3)
        time.sleep(1.5)
        held.close()
        if os.fork() == 0:
            with teho.phase("of the child"): time.sleep(1.5)
            os._exit(0)
        os.wait()
        """
    )
    parent, child = probed.watched()
    assert set(parent.phases) == {"outer/inner"}
    assert set(child.phases) == {"of the child"}
    # 0.3 s, or more on a loaded machine. If it were left open, it would be 1.8 s or more.
    assert parent.phases["outer/inner"] < 1.5
