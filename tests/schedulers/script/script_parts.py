"""What the tests of scripts share: scripts of planned options, and programs that write down
how they were called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from teho.clusters.catalogue import load_cluster
from teho.model.plan import Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import Script, ScriptOptions, write_script

# What srun does, for one task: its own options go, the command is run.
_SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
export SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=1
exec "$@"
"""
_SINGULARITY = '#!/bin/bash\nshift 2\nexec "$@"\n'
_RECORDER = '#!/bin/bash\nshift 2\nexec "$@"\n'
_WRITES_DOWN = '#!/bin/bash\nprintf "%s\\0" "${0##*/}" "$@" >> "$WRITTEN"\n'
_SILENT = "#!/bin/bash\n"
STUBS = {
    "srun": _SRUN,
    "singularity": _SINGULARITY,
    "teho": _RECORDER,
    "scontrol": "#!/bin/bash\necho n1\n",
    "module": _SILENT,
    **dict.fromkeys(
        ["tool", "torchrun", "accelerate", "deepspeed", "horovodrun", "tar", "cp", "unzip"],
        _WRITES_DOWN,
    ),
}


def option_of(cluster: str, **request: object) -> Option:
    """Return the first option of a cluster for a request."""
    wanted = Request(**{"command": ("python", "train.py"), **request})  # type: ignore[arg-type]
    found = answer(wanted, [load_cluster(cluster)], even_if_retired=True)
    assert found.options, found.unfit
    return found.options[0]


def script_of(cluster: str, options: ScriptOptions | None = None, **request: object) -> Script:
    """Return the script of that option."""
    return write_script(
        option_of(cluster, **request), load_cluster(cluster), options or ScriptOptions()
    )


def put_stubs(folder: Path) -> Path:
    """Write the programs that a script calls, none of which is what it seems."""
    folder.mkdir()
    for name, text in STUBS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def environment(stubs: Path, written: Path) -> dict[str, str]:
    """Return what a job would find: the programs above, and the schedulers' variables."""
    return {
        "PATH": f"{stubs}:{os.environ['PATH']}",
        "WRITTEN": str(written),
        "HOME": str(stubs),
        "USER": "user",
        "LC_ALL": "C.UTF-8",
        "SLURM_JOB_ID": "7",
        "SLURM_NNODES": "1",
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_CPUS_PER_TASK": "2",
        "LOCAL_SCRATCH": "/scratch dir",
        "TMPDIR": "/scratch dir",
        "NSLOTS": "2",
        "JOB_ID": "7",
    }


def calls(script: Script, stubs: Path, written: Path) -> list[bytes]:
    """Run a script in bash and return every word that was written down."""
    written.write_bytes(b"")
    subprocess.run(
        ["bash", "--noprofile"],
        input=script.text.encode("utf-8", "surrogateescape"),
        env=environment(stubs, written),
        stdout=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    return written.read_bytes().split(b"\0")[:-1]
