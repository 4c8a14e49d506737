"""A launcher is one file: one that this test writes is planned and written into scripts."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import click
import pytest

import teho.cli.request
import teho.launchers
from teho.clusters.catalogue import load_cluster
from teho.launchers.registry import launcher_of, launchers
from teho.model.plan import Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.registry import schedulers
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.write import write_script

FILE = """
    from teho.launchers.launcher import FOR_EACH_TASK, Launcher


    class Mpiexec(Launcher):
        help = "MPI's mpiexec, with one rank per GPU."
        task_per_gpu = True
        templates = {
            "node": "mpiexec -n {{ tasks_per_node }} {{ program }}",
            "slurm": "{{ step }}--mpi=pmix {{ program }}",
            "slurm_comment": FOR_EACH_TASK + ", as MPI ranks.",
        }

        def meets(self, nodes, processes):
            return processes > 1


    LAUNCHER = Mpiexec
    """


@pytest.fixture
def mpiexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write the file; nothing of Teho's own is touched."""
    (tmp_path / "mpiexec.py").write_text(dedent(FILE))
    monkeypatch.setattr(teho.launchers, "__path__", [*teho.launchers.__path__, str(tmp_path)])
    launchers.cache_clear()
    yield
    launchers.cache_clear()
    sys.modules.pop("teho.launchers.mpiexec", None)


def first_option(cluster: str, launcher: str, gpus: int) -> Option:
    request = Request(
        command=("./solve", "a b"), gpus=gpus, launcher=launcher, account="project_1"
    )  # fmt: skip
    found = answer(request, [load_cluster(cluster)], even_if_retired=True)
    assert found.options, found.unfit
    return found.options[0]


def script(cluster: str, launcher: str, gpus: int) -> str:
    option = first_option(cluster, launcher, gpus)
    return write_script(option, load_cluster(cluster), ScriptOptions(framework="none")).text


def test_a_file_is_a_launcher(mpiexec: None) -> None:
    assert list(launchers())[-1] == "mpiexec"
    option = first_option("mahti", "mpiexec", 8)
    assert (option.nodes, option.tasks_per_node) == (2, 4)
    text = script("mahti", "mpiexec", 8)
    assert "#SBATCH --ntasks-per-node=4\n" in text
    assert "export MASTER_ADDR MASTER_PORT\n" in text
    comment = "# The program runs once for each GPU, as MPI ranks."
    assert f"{comment}\nsrun --mpi=pmix ./solve 'a b'" in text


def test_it_works_on_every_scheduler_that_it_does_not_leave_out(mpiexec: None) -> None:
    assert all(launcher_of("mpiexec").works_on(name) for name in schedulers())
    assert "\nmpiexec -n 2 ./solve 'a b'\n" in script("arc4", "mpiexec", 2)


def test_the_commands_offer_it(mpiexec: None) -> None:
    # The options are made when the module is loaded, so it is loaded again under another name.
    spec = importlib.util.spec_from_file_location("request_again", teho.cli.request.__file__)
    assert spec is not None
    assert spec.loader is not None
    request = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(request)

    @request.request_options
    @click.command()
    def command() -> None: ...

    (launcher,) = (one for one in command.params if one.name == "launcher")
    assert "mpiexec" in launcher.type.choices


def test_every_launcher_says_what_it_does() -> None:
    for name, launcher in launchers().items():
        assert launcher.name == name
        assert launcher.help.endswith(".")
        assert len(launcher.help) < 90
        assert launcher.schedulers <= set(schedulers())
        assert bool(launcher.other_program) is launcher.own_processes
    assert launcher_of("srun").variables["RANK"] == "$SLURM_PROCID"
