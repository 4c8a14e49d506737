"""Which worker of pytest-xdist runs which file: files that wait run beside files that compute.

A file that waits (for a scheduler's jobs, for a program that sleeps) leaves its core to others.
With two such files and two that compute, four workers keep two cores in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

__all__ = ["COMPUTING", "WAITING", "FilesOfWorkers", "next_file"]

WAITING = (
    "profile/test_profile_steps.py",
    "experiment/test_scale.py",
    "experiment/test_tune.py",
    "twins/test_whole_jobs.py",
    "twins/test_recorded_steps.py",
    "twins/test_submit_twins.py",
    "twins/test_always_twins.py",
    "experiment/test_compare.py",
    "test_run.py",
    "experiment/test_compare_gpus.py",
    "experiment/test_find_batch_size.py",
    "launch/test_check.py",
    "cli/test_energy_command.py",
    "twins/test_accounted_jobs.py",
    "twins/test_grid_engine_nodes.py",
    "observe/test_supervisor.py",
    "experiment/test_window.py",
    "launch/test_check_collective.py",
    "test_nodes.py",
    "observe/test_whole_job.py",
    "observe/test_steps.py",
    "sites/test_random_grid_engine_sites.py",
    "observe/test_stack_sampler.py",
    "observe/test_uninstrumented.py",
    "top/test_top_app.py",
    "twins/test_slurm_jobs.py",
    "sites/test_random_sites.py",
    "cli/test_devices.py",
    "test_kills.py",
    "software/test_env_conda.py",
    "twins/test_grid_engine_jobs.py",
    "observe/test_stdout_capture.py",
    "store/test_merge.py",
    "test_run_energy.py",
    "twins/test_doctor_twin.py",
)
"""Files that wait for half of their time or more, the longest first."""
COMPUTING = (
    "twins/test_launchers.py",
    "test_benchmarks.py",
    "test_gpu_day.py",
    "bench/test_bench_images.py",
    "stage/test_stage.py",
    "test_blind.py",
    "software/test_env_wheelhouse.py",
    "twins/test_launchers_grid_engine.py",
    "probe/test_probe.py",
    "cli/test_submit.py",
    "probe/test_probe_torch.py",
    "show/test_notebook.py",
    "probe/test_probe_grain.py",
    "probe/test_probe_torch_loaders.py",
    "twins/test_slurm_differential.py",
    "test_faults.py",
    "show/test_html_roofline.py",
    "cli/test_commands.py",
    "bench/test_bench_measure.py",
    "stage/test_stage_ssh.py",
    "show/test_html.py",
    "feed/test_feed_torch.py",
    "software/test_env_modules.py",
    "cli/test_diff.py",
    "test_imports.py",
    "probe/test_probe_transformers.py",
    "experiment/test_imposed.py",
    "show/test_html_heat.py",
    "bench/test_bench_regression.py",
    "portal/test_portal_pages.py",
    "portal/test_portal_attacks.py",
    "test_learn.py",
    "probe/test_probe_tensorflow.py",
    "cli/test_top.py",
    "profile/test_profile_steps_xla.py",
    "test_source_documents.py",
    "software/test_env_check.py",
    "test_interpreter_suite.py",
    "test_readme.py",
    "twins/test_discover_twins.py",
    "portal/test_portal_browser.py",
    "twins/test_launchers_here.py",
    "doctor/test_doctor_collect.py",
    "test_words.py",
    "unwind/test_code.py",
    "bench/test_bench_pseudo_code.py",
    "jobs/test_import_bad_input.py",
)
"""Other files of ten seconds or more, the longest first: begun last, they would leave cores unused
at the end."""


class FilesOfWorkers(LoadFileScheduling):
    """Hand out whole files: to every second worker those that wait, as long as there are some."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        prefers_waiting = self.nodes.index(node) % 2 == 0
        chosen = next_file(self.workqueue, prefers_waiting=prefers_waiting)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def next_file(files: Iterable[str], *, prefers_waiting: bool) -> str:
    """Return the file that a worker runs next, of those that are left.

    Args:
        files: their paths, as `tests/test_run.py`; at least one.
        prefers_waiting: whether this worker begins with files that wait; others end with them.
    """
    left = {path.removeprefix("tests/"): path for path in files}
    listed = {*WAITING, *COMPUTING}
    others = [name for name in left if name not in listed]
    order = [*WAITING, *COMPUTING, *others] if prefers_waiting else [*COMPUTING, *others, *WAITING]
    return next(left[name] for name in order if name in left)
