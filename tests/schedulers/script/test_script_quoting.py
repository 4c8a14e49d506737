"""Any byte that a user can type reaches her program, through real shells and real parsers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedulers.script.script_parts import calls, put_stubs, script_of
from teho.errors import InputError
from teho.schedulers.grid_engine.quoting import grid_engine_name, grid_engine_value
from teho.schedulers.script.quoting import bash_command, bash_word
from teho.schedulers.script.write import ScriptOptions
from teho.schedulers.slurm.quoting import slurm_name, slurm_value

# Bytes, as Python hands on what was typed: not all of them are UTF-8.
typed = st.binary(max_size=40).map(lambda data: os.fsdecode(data.replace(b"\0", b"?")))
shellish = st.text(alphabet="a =~#$`\"'\\!*?[]{}()<>|&;%\n\r\t-é\udcff", max_size=20)
words = st.lists(typed | shellish, max_size=8)
EVERY_BYTE = [os.fsdecode(bytes([byte])) for byte in range(1, 256)]
TRICKY = [
    "", " ", "--", "-n", "$(touch x)", "`id`", "${HOME}", "~", "~root", "a'b", 'a"b', "\\", "\\n",
    "!", "!!", "*", "#SBATCH --nodes=9", "x\n#SBATCH --nodes=9", "x\n#$ -l h_rt=9", "{{ nodes }}",
    "{% raw %}", "a\r\nb", "\x1b[0m", "é", "\udcff", "'\n'", "EOF", "&", ";", "a=b", "%1", "$'a'",
]  # fmt: skip
CASES = {
    "slurm-plain": ("narval", {"gpus": 1}, ("tool",)),
    "slurm-plain-nodes": ("narval", {"gpus": 8}, ("tool",)),
    "slurm-srun": ("narval", {"gpus": 8, "launcher": "srun"}, ("tool",)),
    "slurm-launch": ("narval", {"gpus": 8, "launcher": "launch"}, ("tool",)),
    "slurm-torchrun": ("narval", {"gpus": 4, "launcher": "torchrun"}, ("x.py",)),
    "slurm-torchrun-nodes": ("narval", {"gpus": 8, "launcher": "torchrun"}, ("x.py",)),
    "slurm-accelerate": ("narval", {"gpus": 4, "launcher": "accelerate"}, ("x.py",)),
    "slurm-accelerate-nodes": ("narval", {"gpus": 8, "launcher": "accelerate"}, ("x.py",)),
    "slurm-deepspeed": ("narval", {"gpus": 2, "launcher": "deepspeed"}, ("x.py",)),
    "slurm-deepspeed-nodes": ("narval", {"gpus": 8, "launcher": "deepspeed"}, ("x.py",)),
    "slurm-horovod": ("mahti", {"gpus": 8, "launcher": "horovod"}, ("tool",)),
    "container-srun": ("lumi", {"gpus": 16, "launcher": "srun"}, ("tool",)),
    "container-launch": ("lumi", {"gpus": 16, "launcher": "launch"}, ("tool",)),
    "container-accelerate": ("lumi", {"gpus": 16, "launcher": "accelerate"}, ("x.py",)),
    "grid-engine-plain": ("arc4", {"gpus": 1}, ("tool",)),
    "grid-engine-launch": ("arc4", {"gpus": 1, "launcher": "launch"}, ("tool",)),
    "grid-engine-torchrun": ("arc4", {"gpus": 2, "launcher": "torchrun"}, ("x.py",)),
    "grid-engine-horovod": ("arc4", {"gpus": 2, "launcher": "horovod"}, ("tool",)),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("job")
    return put_stubs(folder / "stubs"), folder / "written"


def argument_words(case: str, arguments: list[str], place: tuple[Path, Path]) -> list[bytes]:
    """Return the words that the program of a case was called with, behind its own."""
    cluster, request, command = CASES[case]
    framework = "pytorch" if cluster == "lumi" else "none"
    options = ScriptOptions(framework=framework, record=True)
    script = script_of(cluster, options, command=(*command, *arguments), **request)
    # One line a command: no argument can look like a directive, or end a line its own way.
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\udc80-\udcff]", script.text)
    called = calls(script, *place)
    assert called.count(command[0].encode()) >= 1
    return called[len(called) - len(arguments) :]


@pytest.mark.parametrize("case", CASES)
def test_every_byte_reaches_the_program(case: str, place: tuple[Path, Path]) -> None:
    arguments = [*EVERY_BYTE, "".join(EVERY_BYTE), *TRICKY]
    assert argument_words(case, arguments, place) == [os.fsencode(word) for word in arguments]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=words)
def test_any_words_reach_the_program(
    case: str, arguments: list[str], place: tuple[Path, Path]
) -> None:
    assert argument_words(case, arguments, place) == [os.fsencode(word) for word in arguments]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.lists(typed | shellish | st.sampled_from(TRICKY), min_size=1, max_size=8))
def test_bash_reads_words_back(command: list[str]) -> None:
    text = "printf '%s\\0' " + " ".join(map(bash_word, command))
    output = subprocess.run(
        ["bash", "-c", os.fsencode(text)], capture_output=True, check=True, timeout=60
    ).stdout
    assert output.split(b"\0")[:-1] == [os.fsencode(word) for word in command]


@pytest.mark.parametrize("first", ["time", "if", "A=b", "a b", "{", "!", "[[", "x=1.py"])
def test_the_first_word_is_always_the_program(first: str, tmp_path: Path) -> None:
    (tmp_path / first).write_text('#!/bin/bash\necho called "$1"\n')
    (tmp_path / first).chmod(0o755)
    output = subprocess.run(
        ["bash", "-c", bash_command((first, "with this"))],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    assert output == "called with this\n"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stem=(typed | shellish), ending=st.sampled_from([".tar", ".tgz", ".tar.zst", ".zip", ".h5"]))
def test_any_path_is_staged(stem: str, ending: str, place: tuple[Path, Path]) -> None:
    path = stem + ending
    options = ScriptOptions(framework="none", stage=(path,))
    script = script_of("puhti", options, command=("tool",), local_disk_gib=10)
    called = calls(script, *place)
    want = os.fsencode(f"./{path}" if path.startswith("-") else path)
    assert want in called
    assert b"/scratch dir" in called
    assert called[0] == {".zip": b"unzip", ".h5": b"cp"}.get(ending, b"tar")
    assert (b"--force-local" in called) == (called[0] == b"tar" and ":" in path)


def read_by_sbatch(lines: list[str], folder: Path) -> list[bytes]:
    """Return the words that the real sbatch finds in a script's directives.

    It says so before it looks for a controller, which is not there.
    """
    (folder / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/none\n"
        "NodeName=n1 CPUs=1\nPartitionName=p Nodes=n1\n"
    )
    script = folder / "job.sh"
    text = "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in lines)
    script.write_text(text + "true\n", encoding="utf-8", errors="surrogateescape")
    process = subprocess.Popen(
        ["sbatch", "-vvv", "--test-only", script],
        env={"PATH": os.environ["PATH"], "SLURM_CONF": str(folder / "slurm.conf")},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    found = []
    with process:
        for line in process.stderr:
            match = re.fullmatch(rb'sbatch: debug2: Found in script, argument "(.*)"\n', line)
            found += [match.group(1)] if match else []
            if b"end of defined options" in line:
                process.kill()
                break
    return found


@pytest.mark.skipif(not shutil.which("sbatch"), reason="Slurm is not installed: no sbatch")
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(typed | shellish | st.text(max_size=20), min_size=1, max_size=40))
def test_sbatch_reads_names_back(names: list[str], tmp_path: Path) -> None:
    held = [slurm_name(name) for name in [*names, *TRICKY]]
    lines = [f"--job-name={slurm_value(name, 'name')}" for name in held]
    want = [b"--job-name=" + os.fsencode(name) for name in held]
    assert read_by_sbatch(lines, tmp_path) == want


@given(name=typed | shellish)
def test_a_valid_name_is_kept(name: str) -> None:
    held = slurm_name(name)
    assert len(held) == len(name)
    assert all(b in {a, "_"} for a, b in zip(name, held, strict=True))
    assert held == name or re.search(r"[\x01-\x1f\x7f\udc80-\udcff]", name)


@given(name=(typed | shellish).filter(bool))
def test_grid_engine_gets_a_name_of_plain_characters(name: str) -> None:
    held = grid_engine_name(name)
    assert re.fullmatch(r"[A-Za-z_][\w.+-]*", held, re.ASCII)
    assert grid_engine_value(held, "name") == held


def test_a_changed_name_is_reported() -> None:
    script = script_of("lumi", name="a\nb", account="p")
    assert "#SBATCH --job-name=a_b\n" in script.text
    assert script.remarks == ("the job's name is 'a_b': the scheduler does not accept 'a\\nb'",)
    assert script_of("lumi", name='a b"#', account="p").remarks == ()
    script = script_of("arc4", name="5/x")
    assert "#$ -N _5_x\n" in script.text
    assert len(script.remarks) == 1


@pytest.mark.parametrize("log", ["a\nb", "a\\b", "\udcff"])
def test_a_log_that_does_not_fit_a_line_is_refused(log: str) -> None:
    with pytest.raises(InputError, match="--log"):
        script_of("lumi", ScriptOptions(log=log))


@pytest.mark.parametrize("log", ["a'b", 'a"b', "a#b", "a,b", "a\nb"])
def test_a_log_that_grid_engine_cannot_write_is_refused(log: str) -> None:
    with pytest.raises(InputError, match="--log"):
        script_of("arc4", ScriptOptions(log=log))
