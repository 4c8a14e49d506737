"""Copy the results of a GPU day into the repository, and write docs/gpu.md again.

python3 benchmarks/gpu/keep.py FOLDER…

Each FOLDER has the JSON files and the archive of one call of `make gpu`. If two folders have the
same stage, the later folder is used. Results of a rehearsal are refused. Commit the files that this
program writes.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE)]

import page  # noqa: E402 - the path above leads to it
from result import RECORDINGS, read_result, write_result  # noqa: E402

ROOT = _HERE.parents[1]
FAULTS = ROOT / "benchmarks" / "faults" / "recordings"
_LARGEST_BYTES = 2**20
"""Of one recording that is committed."""


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        sys.exit((__doc__ or "").strip())
    for folder in map(Path, arguments):
        results = [read_result(path) for path in sorted(folder.glob("*.json"))]
        if not results:
            sys.exit(f"{folder}: this folder has no JSON file of a stage")
        for result in results:
            if result.is_rehearsal:
                sys.exit(f"{folder}: {result.stage} is a rehearsal, so the figures mean nothing")
        page.RESULTS.mkdir(exist_ok=True)
        for result in results:
            print(f"kept {write_result(result, page.RESULTS)}")
        if (folder / RECORDINGS).exists():
            _keep_archive(folder / RECORDINGS)
    page.PAGE.write_text(page.write_page(), encoding="utf-8")
    print(f"wrote {page.PAGE}")
    return 0


def _keep_archive(archive: Path) -> None:
    """Copy the results of `teho bench`, and the recordings of faults, from an archive.

    `make faults` and docs/generate.py read these files there.
    """
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(archive) as packed:
            members = [one for one in packed.getmembers() if one.isfile() or one.isdir()]
            safe = [one for one in members if not one.name.startswith("/")]
            packed.extractall(
                name, [one for one in safe if ".." not in Path(one.name).parts], filter="data"
            )
        for source in sorted(Path(name).glob("bench/*.json")):
            page.BENCHES.mkdir(parents=True, exist_ok=True)
            print(f"kept {shutil.copy(source, page.BENCHES / source.name)}")
        for source in sorted(Path(name).glob("faults/*")):
            size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
            if not (source / "expected.json").exists() or size > _LARGEST_BYTES:
                print(f"left out {source.name}: {size} bytes, or no file names its finding")
                continue
            shutil.rmtree(FAULTS / source.name, ignore_errors=True)
            shutil.copytree(source, FAULTS / source.name)
            print(f"kept {FAULTS / source.name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
