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
    "experiment/test_scale.py",
    "experiment/test_tune.py",
    "twins/test_whole_jobs.py",
    "twins/test_submit_twins.py",
    "experiment/test_compare.py",
    "twins/test_recorded_steps.py",
    "profile/test_profile_steps.py",
    "probe/test_probe_totals.py",
    "test_run.py",
    "cli/test_submit.py",
    "cli/test_run_watch.py",
    "launch/test_check.py",
    "cli/test_top_faults.py",
    "twins/test_grid_engine_nodes.py",
    "observe/test_supervisor.py",
    "experiment/test_compare_gpus.py",
    "cli/test_diff.py",
    "cli/test_energy_command.py",
    "experiment/test_window.py",
    "observe/test_steps.py",
    "twins/test_always_twins.py",
    "test_nodes.py",
    "portal/test_portal_attacks.py",
    "twins/test_discover_twins.py",
    "top/test_top_app.py",
    "cli/test_devices.py",
    "sites/test_random_sites.py",
    "profile/test_profile_steps_xla.py",
    "observe/test_uninstrumented.py",
    "test_drawn.py",
    "software/test_env_conda.py",
    "twins/test_grid_engine_differential.py",
    "portal/test_portal_live.py",
    "observe/test_node.py",
    "devices/dcgm/test_dcgm_monitor.py",
    "test_run_energy.py",
    "twins/test_grid_engine_jobs.py",
    "twins/test_doctor_twin.py",
    "observe/test_stdout_capture.py",
    "test_preloaded.py",
    "store/test_merge.py",
    "unwind/test_stack_of_processes.py",
    "devices/test_sources.py",
    "observe/test_energy_api.py",
)
"""Files that wait for most of their time, the longest first."""
COMPUTING = (
    "twins/test_launchers.py",
    "test_gpu_day.py",
    "portal/test_portal_browser.py",
    "test_benchmarks.py",
    "probe/test_probe.py",
    "bench/test_bench_images.py",
    "twins/test_accounted_jobs.py",
    "show/test_html.py",
    "observe/test_native_functions.py",
    "observe/test_stack_sampler.py",
    "experiment/test_find_batch_size.py",
    "software/test_env_wheelhouse.py",
    "software/test_env_modules.py",
    "probe/test_probe_tensorflow.py",
    "test_faults.py",
    "show/test_html_words.py",
    "show/test_notebook.py",
    "stage/test_stage.py",
    "twins/test_slurm_differential.py",
    "observe/test_whole_job.py",
    "bench/test_bench_measure.py",
    "probe/test_probe_torch_loaders.py",
    "cli/test_commands.py",
    "launch/test_check_collective.py",
    "probe/test_probe_grain.py",
    "cli/test_top.py",
    "twins/test_slurm_jobs.py",
    "feed/test_feed_torch.py",
    "probe/test_probe_torch.py",
    "show/test_trackers.py",
    "test_blind.py",
    "stage/test_stage_ssh.py",
    "experiment/test_imposed.py",
    "test_idle_runs.py",
    "twins/test_launchers_grid_engine.py",
    "test_hangs.py",
    "profile/test_xprof.py",
    "test_learn.py",
    "twins/test_launchers_here.py",
    "unwind/test_stack_of_busy.py",
    "probe/test_probe_transformers.py",
    "test_kills.py",
    "show/test_html_heat.py",
    "portal/test_portal_pages.py",
    "schedulers/local/test_local.py",
    "show/test_html_roofline.py",
    "bench/test_bench_regression.py",
    "test_imports.py",
    "test_readme.py",
    "jobs/test_export.py",
    "jobs/test_push.py",
    "doctor/test_doctor_collect.py",
    "observe/test_long_run.py",
    "bench/test_bench_command.py",
    "doctor/test_doctor_command.py",
    "test_source_documents.py",
    "launch/test_launch_setup.py",
    "profile/test_trace_ranks.py",
    "portal/test_portal_nginx.py",
    "unwind/test_tasks.py",
    "software/test_env_check.py",
    "test_words.py",
    "unwind/test_stack.py",
    "explain/test_summary_many.py",
    "unwind/test_code.py",
    "cli/test_plan.py",
    "cli/test_attach.py",
)
"""Other files that need a core for five seconds or more, the longest first: begun last, they would
leave cores unused at the end."""


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
