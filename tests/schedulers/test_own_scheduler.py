"""A scheduler is one folder: one that this test writes plans, writes scripts and runs jobs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

import teho.schedulers
from teho.clusters.catalogue import cluster_files, read_cluster
from teho.errors import RefusedError
from teho.model.job import JobState, Submission
from teho.model.request import Request
from teho.planner.answer import answer
from teho.planner.place import in_words
from teho.schedulers import jobs
from teho.schedulers.allocation import read_allocation
from teho.schedulers.registry import backend_for, scheduler_of, schedulers
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.write import write_script

FILES = {
    "__init__.py": 'SCHEDULER = "teho.schedulers.pocket.scheduler:PocketScheduler"\n',
    "scheduler.py": """
        from teho.schedulers.advice import Advice
        from teho.schedulers.scheduler import Scheduler


        class PocketAdvice(Advice):
            time = "`--minutes=N`"


        class PocketScheduler(Scheduler):
            title = "Pocket"
            partition_word = "lane"
            job_variables = "POCKET_"
            advice = PocketAdvice()

            def backend(self, home):
                from teho.schedulers.pocket.backend import Pocket

                return Pocket()

            def directives(self, option, cluster, options):
                return (f"--gpus {option.gpus_per_node}", f"--minutes {option.time_s / 60:g}")

            def threads(self, option, processes):
                return "$POCKET_CORES"

            def allocation(self, variables):
                job = variables.text("POCKET_JOB")
                facts = {"scheduler": self.name, "job_id": job}
                facts["cores_asked"] = variables.count("POCKET_CORES")
                return (facts, None) if job else None
        """,
    "backend.py": """
        from pathlib import Path

        from teho.errors import RefusedError
        from teho.model.job import Job, JobState
        from teho.schedulers.backend import Query
        from teho.schedulers.command import accepted

        STATES = {"busy": JobState.RUNNING, "done": JobState.COMPLETED}


        def read(answer):
            rows = (line.split() for line in accepted(answer).stdout.splitlines())
            return tuple(
                Job(id=number, number=number, state=STATES.get(word, JobState.UNKNOWN),
                    state_as_written=word)
                for number, word in rows
            )


        class Pocket:
            name = "pocket"

            def submit(self, submission):
                return ("pocket-submit", submission.script)

            def wanted_variables(self, script, account=""):
                return ()

            def job_name(self, submission):
                return submission.name

            def read_submitted(self, answer):
                if answer.exit_code:
                    raise RefusedError(answer.stderr)
                return answer.stdout.strip()

            def queue(self, numbers):
                return (Query(("pocket-state", *numbers), tuple(numbers), read),)

            def accounting(self, numbers):
                return self.queue(numbers)

            def recent(self, back_s):
                return (Query(("pocket-state",), (), read),)

            def cancel(self, jobs):
                return (("pocket-cancel", *jobs),)

            def read_cancelled(self, answer):
                accepted(answer)

            def estimate(self, script):
                return None

            def read_estimate(self, answer):
                return None

            def log_path(self, submission, job):
                return Path(submission.directory, f"pocket-{job.number}.out")
        """,
    "pocket.sh.j2": """\
        {% import "launchers.j2" as shared with context %}
        #!/bin/bash
        {% for directive in directives %}
        #POCKET {{ directive }}
        {% endfor %}
        {{ shared.preparation() -}}
        {{ teho }}{{ container }}{{ shared.one_node() | trim }}
        """,
}
COMMANDS = {
    # The job runs at once, and is busy as long as the file says so.
    "pocket-submit": 'grep -q "^#POCKET --gpus 1$" "$1" || { echo "one GPU" >&2; exit 1; }\n'
    'POCKET_JOB=41 POCKET_CORES=3 bash "$1" > "$POCKET/out" && echo 41\n',
    "pocket-state": 'for job in "${@:-41}"; do echo "$job $(cat "$POCKET/state")"; done\n',
}


@pytest.fixture
def pocket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the folder and its commands; nothing of Teho's own is touched."""
    folder = tmp_path / "schedulers" / "pocket"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(dedent(text))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in COMMANDS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("POCKET", str(tmp_path))
    monkeypatch.setattr(
        teho.schedulers, "__path__", [*teho.schedulers.__path__, str(folder.parent)]
    )
    schedulers.cache_clear()
    yield tmp_path
    schedulers.cache_clear()
    for name in [name for name in sys.modules if name.startswith("teho.schedulers.pocket")]:
        del sys.modules[name]


def test_a_folder_is_a_scheduler(pocket: Path) -> None:
    text = cluster_files({})["mahti"].read_text(encoding="utf-8")
    assert 'scheduler = "slurm"' in text
    path = pocket / "mahti.toml"
    path.write_text(text.replace('scheduler = "slurm"', 'scheduler = "pocket"'), encoding="utf-8")
    cluster = read_cluster(path)
    request = Request(command=("echo", "$HOME is text"), account="project_1")
    found = answer(request, [cluster], even_if_retired=True)
    assert found.options, found.unfit

    # It has no srun, no QOS, and another word for a partition.
    refused = answer(
        msgspec.structs.replace(request, launcher="srun", qos="high", nodes=2),
        [cluster],
        even_if_retired=True,
    )
    sentences = [one.sentence for unfit in refused.unfit for one in unfit.refusals]
    assert "srun works only with Slurm, but Mahti uses Pocket" in sentences
    assert "only Slurm has --qos, but Mahti uses Pocket" in sentences
    assert in_words(cluster, cluster.partitions[0]) == f"lane {cluster.partitions[0].name}"

    option = found.options[0]
    options = ScriptOptions(framework="none")
    text = write_script(option, cluster, options).text
    assert "#POCKET --gpus 1\n#POCKET --minutes 60\n" in text
    assert "export OMP_NUM_THREADS=$POCKET_CORES\n" in text

    backend = backend_for("pocket", pocket)
    script = pocket / "job.sh"
    script.write_text(text)
    kept: list[Submission] = []
    submission = Submission(
        mark=jobs.new_mark(),
        scheduler="pocket",
        cluster="mahti",
        submitted_at=datetime.now(timezone.utc),
        directory=str(pocket),
        script=str(script),
        option=option,
    )
    submitted = jobs.submit(backend, submission, kept.append)
    assert submitted.number == "41"
    assert [one.job for one in kept] == [None, "41"]
    assert (pocket / "out").read_text() == "$HOME is text\n"

    for word, state in (("busy", JobState.RUNNING), ("done", JobState.COMPLETED)):
        (pocket / "state").write_text(word)
        assert [job.state for job in jobs.states(backend, ["41"])["41"]] == [state]

    script.write_text("#!/bin/bash\n")
    with pytest.raises(RefusedError, match="one GPU"):
        jobs.submit(backend, submission, kept.append)


def test_its_jobs_are_known_by_their_variables(pocket: Path) -> None:
    found = read_allocation(
        {"POCKET_JOB": "41", "POCKET_CORES": "3"}, frozenset(range(3)), None, None
    )
    assert (found.scheduler, found.job_id, found.cores_asked) == ("pocket", "41", 3)
    assert scheduler_of("pocket").advice.time == "`--minutes=N`"


def test_every_folder_says_what_it_is() -> None:
    assert list(schedulers()) == ["slurm", "grid_engine", "local"]
    for name, scheduler in schedulers().items():
        assert scheduler.title
        assert scheduler.backend(Path("/nowhere")).name == scheduler.name == name


def test_importing_a_scheduler_runs_and_loads_little() -> None:
    """The rules and the recorder ask a scheduler: that costs them no template and no command."""
    code = (
        "import sys; from teho.schedulers.registry import schedulers; schedulers();"
        " print(*(name for name in ('jinja2', 'subprocess', 'msgspec', 'teho.model.cluster')"
        " if name in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout == "\n"
