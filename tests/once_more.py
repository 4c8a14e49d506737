"""Run the few tests that failed beside others once more, alone. `make test` does so.

docs/decisions/tests-once-more.md gives the reasons. A test that fails again fails `make test`. A
test that now passes is printed, because it may show a real fault.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 3
"""If more tests failed than this, it was no accident of a busy machine."""
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    tests = sorted(json.loads(FAILED.read_bytes())) if FAILED.exists() else []
    # The cases of one test have one cause.
    if not 0 < len({test.partition("[")[0] for test in tests}) <= MOST:
        return 1
    print(f"\n{len(tests)} failed. Each runs once more, without other tests beside it.", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], check=False).returncode
    if again == 0:
        print("These tests failed beside others, and passed alone. Find out why:")
        print("\n".join(f"  {test}" for test in tests), flush=True)
    return again


if __name__ == "__main__":
    sys.exit(main())
