from __future__ import annotations

import signal
import subprocess
import sys

from memory_group import EAT, memory_group
from support import TEHO


def test_a_program_that_the_kernel_kills_for_memory_is_reported() -> None:
    program = [sys.executable, "-c", EAT]
    with memory_group(300 * 1024**2) as members:
        enter = ["sh", "-c", f'echo $$ > {members}; exec "$@"', "sh"]
        done = subprocess.run(
            [*enter, *TEHO, "run", "--every", "200ms", "--", *program],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == -signal.SIGKILL
    report = " ".join(done.stderr.split())
    assert "The operating system killed 1 process on" in report
    assert "300 MiB" in report
