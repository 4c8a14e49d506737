"""An option in the program's source makes a part of its work expensive.

The stacks show which work takes the time, and the program's source shows the option that makes this
work slow. The option is often on another line. Examples are `SVC(probability=True)` in a program
that never asks for probabilities, PNG files that are compressed as much as possible, and a program
that lets its libraries use only one core. Some calls in loops count too, if the source shows that a
faster way gives the same result. Examples are a query that reads a table page by page with
`OFFSET`, a model that predicts one row at a time, and `nn.LSTMCell` for each step of a sequence
that is known before. The file `costly_options.toml` lists the options.
"""

from __future__ import annotations

import msgspec

from teho.explain.compiles import compiled_again
from teho.explain.gpu_lines import gpu_lines
from teho.explain.nouns import noun_of
from teho.explain.options import OptionTime, in_words, is_worth_naming, option_times
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Threshold,
    chosen,
)
from teho.explain.shared_thresholds import TEN_SAMPLES
from teho.explain.unneeded import UnneededTime, saved_part, unneeded_times
from teho.explain.wording import capital
from teho.model.in_source import Need
from teho.model.program import MainProcess

RANK = 213
SEVERITY = "critical, warning"
THRESHOLDS = {
    "known_min_s": TEN_SAMPLES,
    "known_percent": chosen(
        20.0, "%", "work that takes less than 2 s counts only above this share of the run time"
    ),
    "explains_percent": chosen(
        50.0, "%", "above this limit, the option is the main reason why the run takes long"
    ),
    "compiles_max": chosen(
        5.0,
        "times",
        "the rule fixed_costs_dominate uses the same threshold for one function of JAX",
    ),
    "one_core_max": Threshold(
        1.2,
        "cores",
        "if a job uses at most 1.01 cores, Jobstats (a job report tool) calls the job serial; "
        "this threshold is higher, because threads of Python and of the libraries use some CPU "
        "time too",
    ),
    "answering_cores_max": chosen(
        0.5,
        "cores",
        "if the job uses more, perhaps another of its processes computes the answers for which "
        "the program waits",
    ),
    "without_core_percent": chosen(
        10.0,
        "%",
        "if the main thread waited longer for a core, other threads or programs used the cores",
    ),
    "long_calls_percent": chosen(
        75.0,
        "%",
        "if native code runs in shorter calls for more than a quarter of the time, the calls are "
        "too short to be shared by several threads",
    ),
}
MUTES = (
    *("python_bound", "input_slow", "serial_program", "cores_unused", "product_on_one_core"),
    "fixed_costs_dominate",
)
MUTES_BECAUSE = "this finding names the option that costs the time"
SAME_LOSS_AS = ("known_activity", "saving_often")
_SEVERAL_WORKERS = 2
_MOST = 0.5
"""Part of the time of an option that other options explain, from which it is not named too."""


def judge(context: ProgramContext) -> Findings:
    """Find options that cost much of the time of the process that ran longest."""
    for main in context.mains[:1]:
        beside_gpu = gpu_lines(context, main)
        covered = set(beside_gpu.stacks if beside_gpu is not None else ())
        unused = [
            one
            for one in unneeded_times(main)
            if one.unneeded.need is not Need.PART and context.is_loss(one.wall_s, main)
        ]
        large = context.limit("known_percent"), context.limit("known_min_s")
        for time in option_times(main):
            hidden = covered.union(*(one.stacks for one in unused if _saves_more(one, time)))
            named_s = sum(s for stack, s in time.stacks.items() if stack in hidden)
            is_new = named_s < _MOST * time.wall_s
            is_loss = is_worth_naming(context, main, time.wall_s, large)
            if is_new and is_loss and _costs(context, main, time):
                covered.update(time.stacks)
                yield _found(context, main, time)


def _saves_more(unused: UnneededTime, time: OptionTime) -> bool:
    """Return whether the rule `result_unused` says how to save more of the time than an option."""
    return sum(saved_part(unused.unneeded)) * unused.wall_s >= sum(time.option.regain) * time.wall_s


def _costs(context: ProgramContext, main: MainProcess, time: OptionTime) -> bool:
    """Return whether an option costs time on this machine."""
    if time.option.cpu and context.gpus:
        return False
    if time.option.compiled_once and compiled_again(main, context.limit("compiles_max")):
        return False
    if time.option.ranks and _ranks(main) < _SEVERAL_WORKERS:
        return False
    if time.option.waits and not _is_idle(context, main):
        return False
    if time.option.workers and len(main.workers) < _SEVERAL_WORKERS:
        return False
    return not time.option.cores or _leaves_cores(context, main, time)


def _is_idle(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether the cores are idle, so that no process of the job computes the answers."""
    node = context.node_of(main)
    used = context.figure(node, "CPU cores used", node.cpu_cores_used) if node else None
    return used is not None and used <= context.limit("answering_cores_max")


def _leaves_cores(context: ProgramContext, main: MainProcess, time: OptionTime) -> bool:
    """Return whether a limit of threads leaves cores unused, so that more threads would help.

    The probe must have seen the limit, if it notes this limit. If there are several processes, they
    may share the cores.
    """
    node = context.node_of(main)
    facts = [_fact(main, name) for name in time.option.limits]
    known = [fact for fact in facts if fact is not None]
    if time.option.limits and (not known or any(fact != 1 for fact in known)):
        return False
    if node is None or node.cores < 2 or len(context.mains) > 1 or main.children:
        return False
    if main.process.cores is not None and len(main.process.cores) < 2:
        return False
    waited_s = main.process.wait_for_core_s or 0.0
    if 100 * waited_s > context.limit("without_core_percent") * main.process.wall_s:
        return False
    if time.long_calls_percent < context.limit("long_calls_percent"):
        return False
    used = context.figure(node, "CPU cores used", node.cpu_cores_used)
    return used is not None and used <= context.limit("one_core_max")


def _fact(main: MainProcess, name: str) -> object:
    library, _, fact = name.partition(".")
    return main.process.libraries.get(library, {}).get(fact)


def _ranks(main: MainProcess) -> int:
    """Return the number of ranks of the process group of PyTorch; 1 if there is none."""
    count = _fact(main, "torch.world_size")
    return count if isinstance(count, int) and count > 1 else 1


def _found(context: ProgramContext, main: MainProcess, time: OptionTime) -> Located:
    option, at = time.option, time.places[0]
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    least, most = option.regain
    if option.ranks:  # each rank needs only its share
        lost = 1 - 1 / _ranks(main)
        least, most = least * lost, most * lost
    if option.cores:
        most = min(most, 1 - 1 / context.cores_of(main))
    slow = time.lines[0][0] if time.lines else None
    is_there = slow is None or (slow.file, slow.line) == (at.file, at.line)
    has_words = option.columns or option.is_slow_call
    why = option.why.format(**time.words) if has_words else option.why
    where = "" if is_there or slow is None else f", mostly at {slow.short_place}"
    finding = context.lost(
        f"The {noun_of(at.text)} `{at.short_text}` at {at.short_place} {why}. "
        f"{capital(option.what)} took {share:.0f} % of the run time{where}.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on this work", share, "%"),
            Evidence("time spent on this work", time.wall_s, "s"),
            Evidence(noun_of(at.text), f"{at.short_place}  {at.short_text}"),
        ),
        action=in_words(option.advice, time.places, time.words),
        judged_by=["one_core_max"] if option.cores else [],
        regain_percent=(least * share, most * share),
        lines=time.lines,
        mutes=option.cores or share >= context.limit("explains_percent"),
        certainty=Certainty(option.certainty) if option.certainty else None,
    )
    return msgspec.structs.replace(finding, explains_loading=time.in_loading)
