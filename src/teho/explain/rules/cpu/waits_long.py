"""The program spends much of its time waiting, and no other rule says why."""

from __future__ import annotations

from teho.explain.activities import activity_of, early_stacks
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.where import doing_in
from teho.model.program import Doing, MainProcess

RANK = 298
SEVERITY = "critical, warning"
THRESHOLDS = {
    "waiting_percent": chosen(
        30.0,
        "%",
        "shorter waits are usual at the start and at the end of a run",
    ),
    "busy_cores_percent": chosen(
        75.0,
        "%",
        "if three quarters of the cores are busy, the program waits for its own processes, which "
        "use the cores well",
    ),
}
MUTES = ("serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says what the program does instead of using the cores"
SAME_LOSS_AS = ("known_activity", "threads_in_turn")

_ADVICE = {
    Doing.NETWORK: "Get the data once, before the job. If this is not possible, send several "
    "requests at the same time.",
    Doing.SLEEPING: "Instead of sleeping and checking again, call a function that returns as soon "
    "as the program can continue, for example `Event.wait()` or `Queue.get()`.",
    Doing.DISK: "Read and write fewer, larger blocks, on the node's own disk, and do not call "
    "`fsync` after each write.",
    Doing.PROCESS: "Let the program and the other process work at the same time, or "
    "start as many processes as the job has cores.",
    Doing.LOCK: "Find the thread that has the lock: `py-spy dump --pid PID` shows what each thread "
    "does. Release each lock as soon as possible.",
}
_ASLEEP = frozenset((Doing.SLEEPING, Doing.NETWORK))
"""A child process in these waits for something outside of the program, such as an instrument."""
_AS_IN_A_DRIVER = frozenset((Doing.LOCK, Doing.SLEEPING))


def judge(context: ProgramContext) -> Findings:
    """Add up the waits of the main thread for disk, network, processes, locks and times.

    Waiting for a process does not count if the program keeps the cores busy. A wait in a known
    activity does not count either. In a short run, waits in the set-up do not count. A program
    without known steps is not judged: waiting may be its purpose, for example for a sensor or a
    server. For the same reason, waiting for child processes that sleep does not count.
    With a GPU, waits for locks and times do not count: in the GPU's driver, a thread waits in the
    same way.
    """
    for main in context.mains[:1]:
        if not main.process.progress:
            continue
        node = context.node_of(main)
        used = context.figure(node, "CPU cores used", node.cpu_cores_used) if node else None
        if node is None or used is None:
            continue
        busy = 100 * used / max(1, node.cores)
        if busy >= context.limit("busy_cores_percent"):
            continue
        waits = _waits_s(context, main)
        waited_s = sum(waits.values())
        share = 100 * waited_s / main.process.wall_s
        if share < context.limit("waiting_percent") or not context.is_loss(waited_s, main):
            continue
        most = max(waits, key=lambda doing: waits[doing])
        yield context.lost(
            f"The program spent {share:.0f} % of the time waiting, mostly {_for(most)}.",
            share_percent=share,
            evidence=(
                *(
                    Evidence(doing.value, 100 * waits[doing] / main.process.wall_s, "%")
                    for doing in sorted(waits, key=lambda one: -waits[one])
                    if waits[doing] >= main.process.wall_s / 100
                ),
                Evidence("cores used, mean", used, "cores"),
            ),
            action=_ADVICE[most],
            regain_percent=(0.0, share),
            lines=main.lines(most),
        )
        return


def _waits_s(context: ProgramContext, main: MainProcess) -> dict[Doing, float]:
    has_gpu = bool(context.gpus) and main.process.may_use_device
    waits = {doing: 0.0 for doing in _ADVICE if not (has_gpu and doing in _AS_IN_A_DRIVER)}
    is_long = main.process.wall_s >= context.limit("work_min_s")
    early = () if is_long else early_stacks(main.process)
    for stacks, sign in ((main.process.stacks, 1), (early, -1)):
        for seen in stacks:
            doing = doing_in(main.process, seen)
            if doing in waits and activity_of(seen) is None:
                waits[doing] += sign * seen.wall_s
    waits[Doing.PROCESS] *= 1 - _asleep(main)
    return waits


def _asleep(main: MainProcess) -> float:
    """Return the share of the time in which the child processes slept or waited for a network."""
    total_s = idle_s = 0.0
    for child in main.children:
        for seen in child.stacks:
            total_s += seen.wall_s
            idle_s += seen.wall_s if doing_in(child, seen) in _ASLEEP else 0.0
    return idle_s / total_s if total_s else 0.0


def _for(doing: Doing) -> str:
    return {
        Doing.NETWORK: "for the network",
        Doing.SLEEPING: "in sleep calls",
        Doing.DISK: "for the disk",
        Doing.PROCESS: "for another process",
        Doing.LOCK: "for a lock",
    }[doing]
