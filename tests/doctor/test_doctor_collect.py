"""What the checks judge, as it is looked at: real files, commands, Pythons; sound and hanging."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from small_pythons import conda_prefix, fake_core, fake_torch, small_python

import teho.doctor.collect
import teho.doctor.files
import teho.doctor.python
from stubs.proc_tree import plant
from support import is_gone, wait_for
from teho.doctor.checks._processes import cores_of_process
from teho.doctor.collect import collect_snapshot
from teho.doctor.files import folder_facts, read_quotas, sample
from teho.doctor.machine import cores_of_numa, gpu_files, read_clock, read_limits, threads_per_core
from teho.doctor.python import or_missing, read_python, see
from teho.doctor.snapshot import ClockState, DataSample, Folder, FrameworkReport, Proxy, Python
from teho.launch.binding import physical_cores
from teho.model.missing import Missing, Reason


def here(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


def processes_with(words: str) -> list[str]:
    """Return the processes that have these words in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


def test_ctrl_c_ends_all_asking_processes(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    program = (
        "import os, pathlib, signal, time\n"
        "import teho.doctor.collect as take\n"
        "def hang(path, *, is_home=False):\n"
        f"    is_home and pathlib.Path({str(told)!r}).write_text(f'{{os.getpid()}} ')\n"
        "    time.sleep(1000)\n"
        "take.folder_facts, take._FILES_S = hang, 900.0\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from teho.cli.group import run\n"
        "run(['doctor'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=here(HOME=str(tmp_path)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as doctor:
        wait_for(lambda: told.exists() and told.read_text().endswith(" "))
        asking = int(told.read_text())
        assert not is_gone(asking)
        doctor.send_signal(signal.SIGINT)
        assert doctor.wait(60) == 130
    # All that were asked for it are copies of it, with its command line.
    wait_for(lambda: not processes_with(str(told)))


# Folders.


def test_a_folder_has_its_file_system(tmp_path: Path) -> None:
    shared = folder_facts("/dev/shm")
    assert shared.is_memory
    assert shared.mounted_on == "/dev/shm"
    (tmp_path / ".bashrc").write_text("# >>> conda initialize >>>\n")
    home = folder_facts(str(tmp_path), is_home=True)
    assert home.has_conda_init
    assert not home.is_network
    witness = subprocess.run(
        ["stat", "-f", "-c", "%a %S", tmp_path], capture_output=True, text=True, check=True
    ).stdout.split()
    assert home.free_bytes == pytest.approx(int(witness[0]) * int(witness[1]), rel=0.05)
    mount = subprocess.run(["df", "--output=target,fstype", tmp_path], capture_output=True,
                           text=True, check=True).stdout.splitlines()[1].split()  # fmt: skip
    assert [home.mounted_on, home.file_system] == mount


def test_data_are_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(60):
        folder = tmp_path / str(number % 3)
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.png").write_bytes(b"x" * 100)
    whole = sample(str(tmp_path))
    assert (whole.listed, whole.is_whole, set(whole.sizes_bytes)) == (60, True, {100})
    monkeypatch.setattr(teho.doctor.files, "_LISTED_MOST", 25)
    monkeypatch.setattr(teho.doctor.files, "_SIZED", 5)
    part = sample(str(tmp_path))
    assert (part.listed, part.is_whole, len(part.sizes_bytes)) == (25, False, 5)
    with pytest.raises(FileNotFoundError):
        sample(str(tmp_path / "nowhere"))


def test_a_file_system_that_hangs_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(path: str, *, is_home: bool = False) -> Folder:
        if is_home:
            time.sleep(1000)
        return folder_facts(path)

    monkeypatch.setattr(teho.doctor.collect, "folder_facts", hang)
    monkeypatch.setattr(teho.doctor.collect, "_FILES_S", 1.0)
    snapshot = collect_snapshot(here(HOME=str(tmp_path)), data=str(tmp_path))
    home = snapshot.folders["home"]
    assert isinstance(home, Missing)
    assert home.detail == f"the file system of {tmp_path} did not answer within 1 s"
    assert isinstance(snapshot.folders["here"], Folder)
    assert isinstance(snapshot.data, DataSample)


# Quotas, as quota(1) and lfs-quota(1) print them.

QUOTA = """\
Disk quotas for user ada (uid 1000):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
server:/export/home/with/a/long/name
 52428800* 52428800 55574528  604800  99999  100000  110000       0
      /dev/sda1   1024       0       0       0      12       0       0       0
"""
LFS = "        /scratch  2097152       0 10485760       -     400       0    1000       -\n"


def test_quotas_are_read_in_both_forms() -> None:
    home, disk = read_quotas(QUOTA)
    assert home.file_system == "server:/export/home/with/a/long/name"
    assert (home.used_bytes, home.limit_bytes) == (52428800 * 1024, 52428800 * 1024)
    assert (home.used_files, home.limit_files) == (99999, 100000)
    assert (disk.limit_bytes, disk.limit_files) == (0, 0)
    (scratch,) = read_quotas(LFS)
    assert (scratch.limit_bytes, scratch.limit_files) == (10485760 * 1024, 1000)
    assert read_quotas("Disk quotas for user ada (uid 1000): none\n") == ()


def test_the_command_is_asked_and_may_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "quota"
    # Over a limit, quota(1) ends with exit code 1.
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{QUOTA}END\nexit 1\n")
    command.chmod(0o755)
    snapshot = collect_snapshot(here(PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert not isinstance(snapshot.quotas, Missing)
    assert len(snapshot.quotas) == 2
    command.write_text("#!/bin/sh\nsleep 1000\n")
    monkeypatch.setattr(teho.doctor.collect, "_QUOTA_S", 0.5)
    late = collect_snapshot(here(PATH=f"{tmp_path}:{os.environ['PATH']}")).quotas
    assert late == Missing(Reason.FAILED, "quota did not answer within 0.5 s")


def test_a_projects_quota_is_asked_on_lustre(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quota").write_text("#!/bin/sh\n")
    (tmp_path / "lfs").write_text(
        "#!/bin/sh\n"
        'case "$1 $4" in\n'
        '"project ") echo " 1234 P $3" ;;\n'
        f"\"quota 1234\") cat <<'END'\n{LFS}END\n;;\n"
        "esac\n"
    )
    for name in ("quota", "lfs"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(teho.doctor.collect, "read_text", lambda _: "1 0 0:1 / / rw - lustre s o")
    snapshot = collect_snapshot(
        here(PATH=f"{tmp_path}:{os.environ['PATH']}", HOME="/home/ada", USER="ada")
    )
    assert not isinstance(snapshot.quotas, Missing)
    assert [one.limit_files for one in snapshot.quotas] == [1000]


# What the kernel tells.


def test_facts_from_the_kernel(tmp_path: Path) -> None:
    mine = frozenset(os.sched_getaffinity(0))
    numa = cores_of_numa(Path("/"))
    assert not numa or mine <= frozenset().union(*numa.values())
    assert threads_per_core(Path("/")) == max(map(len, physical_cores(mine)))
    clock = read_clock()
    assert isinstance(clock, ClockState)
    assert clock.error_s >= 0
    told = subprocess.run(["sh", "-c", "ulimit -n"], capture_output=True, text=True, check=True)
    shown = read_limits().open_files
    assert told.stdout.strip() == ("unlimited" if shown is None else str(shown))
    for name in ("nvidia0", "nvidia1", "nvidiactl", "kfd"):
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / name).touch()
    assert gpu_files(tmp_path) == ("/dev/nvidia0", "/dev/nvidia1", "/dev/kfd")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has only one core")
def test_in_a_container_the_cores_of_its_quota_count(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/box\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "sys/fs/cgroup/box/cpu.max": "100000 100000\n",
        },
    )
    snapshot = collect_snapshot(here(), root=tmp_path)
    assert cores_of_process(snapshot) == 1


def test_a_proxy_is_tried_and_its_password_kept() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        open_ = collect_snapshot(here(https_proxy=f"http://ada:s3cret@127.0.0.1:{port}")).proxy
    closed = collect_snapshot(here(https_proxy=f"127.0.0.1:{port}")).proxy
    assert open_ == Proxy(variable="https_proxy", place=f"127.0.0.1:{port}")
    assert isinstance(closed, Proxy)
    assert closed.why == "Connection refused"
    strange = collect_snapshot(here(https_proxy="http://:99999999")).proxy
    assert isinstance(strange, Proxy)
    assert strange.why == "the proxy's host or port is not valid"


# Pythons.


def asked(path: Path | str, **more: str) -> Python | Missing:
    return or_missing(read_python(str(path), here(**more)).answer(Python))


def test_a_build_for_cpus_in_a_virtual_environment(tmp_path: Path) -> None:
    python = asked(small_python(tmp_path / "env", "torch-2.5.1+cpu", "numpy-2.1.0"))
    assert isinstance(python, Python)
    (torch,) = python.frameworks
    assert (torch.framework, torch.kind, torch.version) == ("pytorch", "cpu", "2.5.1+cpu")
    assert Path(python.path).is_relative_to(tmp_path / "env")


def test_the_two_lines_of_the_arc4_tutorial(tmp_path: Path) -> None:
    builds = {
        name: asked(conda_prefix(tmp_path / name, f"pytorch-2.4.1-{build}"))
        for name, build in (
            ("gpu", "cuda120_py313h6ccb88c_302"),
            ("cpu", "cpu_mkl_py313hbc6f0e9_102"),
        )
    }
    kinds = {
        name: python.frameworks[0].kind
        for name, python in builds.items()
        if isinstance(python, Python)
    }
    assert kinds == {"gpu": "cuda", "cpu": "cpu"}


def test_the_first_python_on_the_path_is_asked(tmp_path: Path) -> None:
    python = small_python(tmp_path / "env", "jaxlib-0.4.35")
    found = asked("", PATH=f"{python.parent}:{os.environ['PATH']}")
    assert isinstance(found, Python)
    assert found.path == str(python)
    assert [one.framework for one in found.frameworks] == ["jax"]
    none = asked("", PATH=str(tmp_path))
    assert none == Missing(Reason.FAILED, "no command python or python3")


def test_a_python_that_hangs_or_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(teho.doctor.python, "_START_S", 1.0)
    assert asked(program) == Missing(Reason.FAILED, f"{program} did not answer within 1 s")
    program.write_text("#!/bin/sh\necho what >&2\nexit 3\n")
    strange = asked(program)
    assert isinstance(strange, Missing)
    assert strange.detail.endswith("does not list the installed packages: what")


def test_frameworks_are_asked_each_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = small_python(tmp_path / "env", "torch-2.5.1+cu124", "cupy_cuda12x-13.3.0")
    fake_torch(tmp_path / "env", gpus=2)
    cupy = next((tmp_path / "env").glob("lib/python*/site-packages")) / "cupy"
    cupy.mkdir()
    (cupy / "__init__.py").write_text("import time; print('a banner'); time.sleep(1000)\n")
    monkeypatch.setattr(teho.doctor.python, "_SEE_S", 3.0)
    found = asked(python)
    assert isinstance(found, Python)
    framework_reports = see(found, here()).framework_reports
    torch = framework_reports["pytorch"]
    assert isinstance(torch, FrameworkReport)
    assert (torch.kind, torch.toolkit, torch.gpus, torch.collectives) == ("cuda", "12.4", 2, True)
    assert torch.architectures == ("sm_80", "sm_90", "compute_90")
    assert framework_reports["cupy"] == Missing(
        Reason.FAILED, f"cupy-cuda12x in {python} did not answer within 3 s"
    )
    (cupy / "__init__.py").write_text("raise ImportError('libcuda.so.1: cannot open')\n")
    broken = see(found, here()).framework_reports["cupy"]
    assert isinstance(broken, FrameworkReport)
    assert broken.broken == "ImportError: libcuda.so.1: cannot open"


def seen_by_torch(python: Path) -> FrameworkReport:
    found = asked(python)
    assert isinstance(found, Python)
    torch = see(found, here()).framework_reports["pytorch"]
    assert isinstance(torch, FrameworkReport)
    return torch


def test_why_a_framework_sees_no_gpu(tmp_path: Path) -> None:
    python = small_python(tmp_path / "env", "torch-2.5.1+cu124")
    fake_torch(tmp_path / "env", gpus=0, warning="The NVIDIA driver on your system is too old")
    report = seen_by_torch(python)
    assert (report.gpus, report.why) == (0, "The NVIDIA driver on your system is too old")


def test_the_library_of_pytorch_is_asked_without_the_rest(tmp_path: Path) -> None:
    python = small_python(tmp_path / "env", "torch-2.5.1+cu124")
    fake_torch(tmp_path / "env", gpus=0, warning="the driver is too old")
    fake_core(tmp_path / "env", gpus=3)
    torch = seen_by_torch(python)
    assert (torch.version, torch.kind, torch.toolkit) == ("2.5.1+cu124", "cuda", "12.4")
    assert (torch.gpus, torch.collectives) == (3, True)
    assert torch.architectures == ("sm_80", "sm_90")


def test_all_of_pytorch_reports_why_its_library_sees_no_gpu(tmp_path: Path) -> None:
    python = small_python(tmp_path / "env", "torch-2.5.1+cu124")
    fake_torch(tmp_path / "env", gpus=0, warning="the driver is too old")
    fake_core(tmp_path / "env", gpus=0)
    torch = seen_by_torch(python)
    assert (torch.gpus, torch.why) == (0, "the driver is too old")


def test_a_build_for_intels_gpus_says_so(tmp_path: Path) -> None:
    python = small_python(tmp_path / "env", "torch-2.9.1+xpu")
    fake_torch(tmp_path / "env", gpus=0)
    (module,) = (tmp_path / "env").glob("lib/python*/site-packages/torch/__init__.py")
    intel = module.read_text().replace('cuda="12.4"', 'cuda=None, xpu="20250302"')
    module.write_text(intel)
    report = seen_by_torch(python)
    assert (report.kind, report.gpus) == ("xpu", 0)


def test_real_frameworks_say_what_they_are(torch_python: Path) -> None:
    python = asked(torch_python)
    assert isinstance(python, Python)
    torch = next(one for one in python.frameworks if one.framework == "pytorch")
    unsure = msgspec.structs.replace(torch, kind="unknown")
    report = see(msgspec.structs.replace(python, frameworks=(unsure,)), here()).framework_reports[
        "pytorch"
    ]
    assert isinstance(report, FrameworkReport)
    witness = subprocess.run(
        [torch_python, "-c", "import torch; print(torch.__version__, torch.version.cuda)"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert report.version == witness[0]
    assert report.kind == ("cpu" if witness[1] == "None" else "cuda") == torch.kind


def test_the_library_of_a_real_pytorch_answers_without_its_modules(torch_python: Path) -> None:
    program = Path(teho.doctor.python.__file__).with_name("programs")
    seen = (
        "import sys; from sees import core_of_pytorch; "
        "print(core_of_pytorch()['gpus'], 'torch.nn' in sys.modules)"
    )
    done = subprocess.run(
        [torch_python, "-c", seen], env=here(PYTHONPATH=str(program)),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "False"]


def test_no_framework_is_imported_if_there_cannot_be_a_gpu(tmp_path: Path) -> None:
    python = small_python(tmp_path / "env", "torch-2.5.1+cu124")
    fake_torch(tmp_path / "env", gpus=0)
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    environment = here(LD_LIBRARY_PATH=str(tmp_path))
    # The dynamic linker reads its path when a process starts.
    program = (
        "import os; from teho.doctor.collect import collect_snapshot\n"
        f"python = collect_snapshot(os.environ, python={str(python)!r}).python\n"
        "print(len(python.frameworks), len(python.framework_reports))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "0"]
