"""The table of all sampled quantities, one row per metric.

The columns of a recording, the labels of reports and the reference page come from `METRICS`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["METRICS", "METRICS_BY_NAME", "Metric", "Scope", "metrics_of"]

Scope = Literal["node", "gpu"]


class Metric(NamedTuple):
    """One sampled quantity.

    A `gauge` row has the mean over the row's span. A `counter` row has the total since the start of
    the recording, so the difference of two rows is exact. A `job_` counter begins with the
    program.
    """

    name: str
    unit: str
    kind: Literal["gauge", "counter"]
    scope: Scope
    label: str
    meaning: str
    per_core: bool = False

    @property
    def integer(self) -> bool:
        """Whether the values are whole numbers: bytes and counted events."""
        return self.unit == "bytes" or (self.unit == "" and self.kind == "counter")

    @property
    def shown_unit(self) -> str:
        """Unit on screens and in plots. They show a counter as its increase per second."""
        if self.kind == "gauge":
            return self.unit
        return {"J": "W", "s": "cores", "": "per s"}.get(self.unit, f"{self.unit}/s")


METRICS: tuple[Metric, ...] = (
    Metric("cpu_busy_percent", "%", "gauge", "node", "CPU busy",
        "share of the job's cores that were busy with any process; time that a hypervisor takes "
        "counts as busy, but idle time and I/O wait do not count as busy"),
    Metric("core_busy_percent", "%", "gauge", "node", "CPU busy, per core",
        "share of time in which each of the job's cores was busy, in the order of the node's list "
        "`cores`",
        per_core=True),
    Metric("cpu_iowait_percent", "%", "gauge", "node", "I/O wait",
        "share of the job's cores that were idle while a program waited for storage"),
    Metric("load_1min", "tasks", "gauge", "node", "load", "the whole node's 1-minute load average"),
    Metric("runnable_tasks", "tasks", "gauge", "node", "run queue",
        "number of threads on the node that run or wait for a core, of all programs except Teho's "
        "recorder"),
    Metric("context_switches", "", "counter", "node", "context switches",
        "context switches of the whole node"),
    Metric("tasks_started", "tasks", "counter", "node", "started tasks",
        "number of processes and threads that programs started on the whole node"),
    Metric("job_cpu_s", "s", "counter", "node", "job CPU time",
        "CPU time of the program and of all processes that it started, including processes that "
        "have ended"),
    Metric("job_ended_cpu_s", "s", "counter", "node", "CPU time of ended child processes",
        "the part of the job's CPU time that was used by child processes that ended before their "
        "parent"),
    Metric("job_processes", "", "gauge", "node", "processes",
        "number of the program's processes that have not ended"),
    Metric("job_threads", "", "gauge", "node", "threads",
        "number of the program's threads that have not ended"),
    Metric("job_runnable_threads", "", "gauge", "node", "runnable threads",
        "number of the program's threads that run or wait for a core; sampled less often if the "
        "program has many threads"),
    Metric("job_busiest_thread_percent", "%", "gauge", "node", "busiest OpenMP thread",
        "CPU time of the busiest thread of an OpenMP process, as a share of one core; if the "
        "program has several OpenMP processes, Teho takes the process with the most CPU time"),
    Metric("job_mean_thread_percent", "%", "gauge", "node", "mean OpenMP thread",
        "mean CPU time of all threads of the OpenMP process with the most CPU time, as a share of "
        "one core"),
    Metric("job_open_files", "", "gauge", "node", "open files",
        "open file descriptors of the program, read at every tenth sample"),
    Metric("job_memory_bytes", "bytes", "gauge", "node", "memory used",
        "memory of the job without page cache: read from the cgroup if the cgroup has only this "
        "job; otherwise, the private memory of all processes of the job, plus the largest shared "
        "memory of one process"),
    Metric("job_resident_bytes", "bytes", "gauge", "node", "resident memory",
        "sum of the resident sets of the program's processes; shared pages count once per process"),
    Metric("job_shared_bytes", "bytes", "gauge", "node", "shared memory",
        "the part of the resident sets that is mapped from files or shared with other processes"),
    Metric("job_cache_bytes", "bytes", "gauge", "node", "page cache of the job",
        "page cache that counts for the job's cgroup; the kernel frees the page cache if programs "
        "need memory"),
    Metric("node_memory_used_bytes", "bytes", "gauge", "node", "node memory used",
        "memory of the whole node that is neither free nor reclaimable"),
    Metric("node_cache_bytes", "bytes", "gauge", "node", "node page cache",
        "page cache of the whole node"),
    Metric("job_read_bytes", "bytes", "counter", "node", "job read from storage",
        "bytes that the program read from storage; reads from the page cache do not count"),
    Metric("job_write_bytes", "bytes", "counter", "node", "job wrote to storage",
        "bytes that the program sent to storage"),
    Metric("job_read_calls_bytes", "bytes", "counter", "node", "job read calls",
        "bytes that the program's read calls returned, from storage, the page cache, pipes and "
        "sockets"),
    Metric("job_write_calls_bytes", "bytes", "counter", "node", "job write calls",
        "bytes that the program passed to write calls"),
    Metric("disk_read_bytes", "bytes", "counter", "node", "disk read",
        "bytes that all programs read from the node's own disks"),
    Metric("disk_write_bytes", "bytes", "counter", "node", "disk write",
        "bytes that all programs wrote to the node's own disks"),
    Metric("netfs_read_bytes", "bytes", "counter", "node", "network file system read",
        "bytes that this node read from NFS and Lustre"),
    Metric("netfs_write_bytes", "bytes", "counter", "node", "network file system write",
        "bytes that this node wrote to NFS and Lustre"),
    Metric("tmp_used_bytes", "bytes", "gauge", "node", "temporary space used",
        "space that all programs use on the file system of `TMPDIR` (or of /tmp); measured only if "
        "the file system is on a disk or in the memory of the node"),
    Metric("tmp_free_bytes", "bytes", "gauge", "node", "temporary space free",
        "free space on the file system of `TMPDIR` (or of /tmp) that programs can still use"),
    Metric("net_receive_bytes", "bytes", "counter", "node", "network in",
        "bytes received on all network interfaces except loopback, including InfiniBand"),
    Metric("net_send_bytes", "bytes", "counter", "node", "network out",
        "bytes sent on all network interfaces except loopback, including InfiniBand"),
    Metric("oom_kills", "", "counter", "node", "out-of-memory kills",
        "processes that the kernel killed in the job's cgroup because memory ran out"),
    Metric("cpu_energy_j", "J", "counter", "node", "CPU energy",
        "energy of the node's CPU packages, from their counters; the work of all users on the node "
        "is included"),
    Metric("memory_energy_j", "J", "counter", "node", "memory energy",
        "energy of the node's memory, from its counters; the work of all users on the node is "
        "included"),
    Metric("node_energy_j", "J", "counter", "node", "node energy",
        "energy of the whole node, from its counter; the work of all users on the node is "
        "included"),
    Metric("node_power_w", "W", "gauge", "node", "node power",
        "power of the whole node; the work of all users on the node is included"),
    Metric("gpu_busy_percent", "%", "gauge", "gpu", "GPU busy",
        "share of time in which at least one kernel ran, even if the kernel used only a small part "
        "of the GPU"),
    Metric("gpu_memory_busy_percent", "%", "gauge", "gpu", "GPU memory busy",
        "share of time in which the GPU's memory was read or written"),
    Metric("gpu_sm_active_percent", "%", "gauge", "gpu", "SM activity",
        "share of the multiprocessors (NVIDIA's SMs, AMD's compute units) that had work, averaged "
        "over time: 80 % means that all of them had work for 80 % of the time, or that 80 % of "
        "them had work all the time. A multiprocessor that waits for memory also has work"),
    Metric("gpu_sm_occupancy_percent", "%", "gauge", "gpu", "SM occupancy",
        "number of warps on the multiprocessors, in % of the largest possible number. A high value "
        "alone does not mean that the GPU is used well"),
    Metric("gpu_tensor_percent", "%", "gauge", "gpu", "tensor cores",
        "share of time in which the tensor cores' pipe was active, averaged over the "
        "multiprocessors"),
    Metric("gpu_fp64_percent", "%", "gauge", "gpu", "FP64 pipe",
        "share of time in which the pipe (the part of a multiprocessor) for 64-bit floating point "
        "was active"),
    Metric("gpu_fp32_percent", "%", "gauge", "gpu", "FP32 pipe",
        "share of time in which the pipe (the part of a multiprocessor) for 32-bit floating point "
        "was active"),
    Metric("gpu_fp16_percent", "%", "gauge", "gpu", "FP16 pipe",
        "share of time in which the pipe (the part of a multiprocessor) for 16-bit floating point "
        "was active (without tensor cores)"),
    Metric("gpu_integer_percent", "%", "gauge", "gpu", "integer pipe",
        "share of time in which the pipe (the part of a multiprocessor) for integers was active"),
    Metric("gpu_dram_percent", "%", "gauge", "gpu", "memory bandwidth",
        "traffic of the GPU's memory, in % of the largest possible traffic"),
    Metric("gpu_memory_used_bytes", "bytes", "gauge", "gpu", "GPU memory used",
        "device memory in use by all programs"),
    Metric("gpu_power_w", "W", "gauge", "gpu", "GPU power", "power drawn by the board"),
    Metric("gpu_energy_j", "J", "counter", "gpu", "GPU energy",
        "energy from the device's own counter"),
    Metric("gpu_sm_clock_mhz", "MHz", "gauge", "gpu", "GPU core clock",
        "clock frequency of the GPU's cores"),
    Metric("gpu_memory_clock_mhz", "MHz", "gauge", "gpu", "GPU memory clock",
        "clock frequency of the GPU's memory"),
    Metric("gpu_temperature_c", "°C", "gauge", "gpu", "GPU temperature", "temperature of the chip"),
    Metric("gpu_thermal_throttle_percent", "%", "gauge", "gpu", "slowing by heat",
        "share of samples in which the clocks were reduced because of heat"),
    Metric("gpu_power_throttle_percent", "%", "gauge", "gpu", "slowing by the power cap",
        "share of samples in which the clocks were reduced by a power limit"),
    Metric("gpu_pcie_receive_bytes_per_s", "bytes/s", "gauge", "gpu", "PCIe to the GPU",
        "traffic from the host to the GPU"),
    Metric("gpu_pcie_send_bytes_per_s", "bytes/s", "gauge", "gpu", "PCIe from the GPU",
        "traffic from the GPU to the host"),
    Metric("gpu_nvlink_receive_bytes_per_s", "bytes/s", "gauge", "gpu", "NVLink to the GPU",
        "traffic from other GPUs to this GPU over NVLink"),
    Metric("gpu_nvlink_send_bytes_per_s", "bytes/s", "gauge", "gpu", "NVLink from the GPU",
        "traffic from this GPU to other GPUs over NVLink"),
    Metric("gpu_ecc_corrected", "", "counter", "gpu", "corrected memory errors",
        "errors of the GPU's memory that ECC corrected"),
    Metric("gpu_ecc_uncorrected", "", "counter", "gpu", "uncorrected memory errors",
        "errors of the GPU's memory that ECC could not correct"),
    Metric("gpu_nvlink_errors", "", "counter", "gpu", "NVLink errors",
        "replays, recoveries and checksum errors on all NVLinks of the GPU"),
    Metric("gpu_xid_errors", "", "counter", "gpu", "Xid errors",
        "errors of this GPU that the driver reported, caused by any process"),
    Metric("gpu_job_busy_percent", "%", "gauge", "gpu", "busy with the job",
        "share of time in which a kernel of this program's processes ran"),
    Metric("gpu_job_processes", "", "gauge", "gpu", "job's processes on the GPU",
        "processes of this program that have a context on the GPU"),
    Metric("gpu_job_memory_bytes", "bytes", "gauge", "gpu", "job's GPU memory",
        "device memory used by this program's processes"),
)  # fmt: skip

METRICS_BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}


def metrics_of(scope: Scope) -> tuple[Metric, ...]:
    """Return the metrics of one scope, in table order."""
    return tuple(metric for metric in METRICS if metric.scope == scope)
