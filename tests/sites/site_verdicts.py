"""What Teho plans for a site, compared with what its Slurm does.

A *false yes* is an option of a plan that Slurm refuses, or takes and never begins. A *false
no* is a partition that a plan refuses though a script by hand is taken there, begins on the
idle site, and has what the request says. A *figure* is an option that begins with other
figures than the plan announced.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator

import msgspec
from disagreements import Case, Tally, signs
from random_sites import WHOLE, Part, Site
from site_requests import ByHand, by_hand
from site_texts import lines_of
from site_twin import Job, SiteTwin, nodes_in

from teho.errors import TehoError
from teho.model.cluster import Cluster
from teho.model.plan import Answer, Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.inventory import UNTYPED
from teho.schedulers.script.write import write_script

__all__ = ["SlurmCase", "judge", "judge_site"]

_MOST_JUDGED_BY_A_JOB = 4
"""Of one site and one kind of refusal: each costs a real job."""


class SlurmCase(Case, frozen=True, kw_only=True):
    """A disagreement with Slurm."""

    scheduler = "Slurm"
    directive = "#SBATCH"

    site: Site

    @property
    def site_text(self) -> str:
        return lines_of(self.site)


class Doubt(msgspec.Struct, frozen=True):
    """A refusal of a plan for which Slurm takes scripts by hand."""

    request: Request
    part: Part
    kinds: str
    said: str
    scripts: tuple[ByHand, ...]


class Bench:
    """One running site with what Teho has discovered of it."""

    def __init__(self, twin: SiteTwin, cluster: Cluster, tally: Tally) -> None:
        self.twin, self.cluster, self.tally = twin, cluster, tally
        self.live = {cluster.name: twin.rights()}
        self.site = twin.site
        self.doubts: list[Doubt] = []

    def case(self, verdict: str, what: str, request: Request | None, **rest: str) -> None:
        self.tally.cases.append(
            SlurmCase(verdict=verdict, what=what, site=self.site, request=request, **rest)
        )


def judge_site(twin: SiteTwin, requests: Iterable[Request], *, jobs: int) -> Tally:
    """Return how plan and Slurm differ on a running site.

    Args:
        twin: the site.
        requests: to be planned.
        jobs: the number of a plan's options that are really submitted.
    """
    tally = Tally()
    try:
        cluster = twin.discovered()
    except TehoError as error:
        what = _plain_words(str(error).splitlines()[-1])
        tally.cases.append(
            SlurmCase(
                verdict="crash",
                what=f"discover: {what}",
                site=twin.site,
                request=None,
                teho=str(error),
                answer="the site runs",
            )
        )
        return tally
    bench = Bench(twin, cluster, tally)
    # No job before the last question: what a cancelled job leaves behind changes Slurm's answers.
    taken = [pair for request in requests for pair in judge(bench, request)]
    for doubt in bench.doubts:
        _judge_refusal(bench, doubt)
    draw = random.Random(f"sample {twin.site.seed}")
    for option, script in draw.sample(taken, min(jobs, len(taken))):
        _judge_job(bench, option, script)
    return tally


def judge(bench: Bench, request: Request) -> list[tuple[Option, str]]:
    """Compare a plan with Slurm's answers; return the options that both take, with scripts."""
    tally = bench.tally
    tally.counts["requests"] += 1
    try:
        found = answer(request, [bench.cluster], live=bench.live)
        scripts = [(one, write_script(one, bench.cluster).text) for one in found.options]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        what = f"{type(error).__name__}: {_plain_words(str(error))}"
        bench.case("crash", f"plan: {what}", request, teho=repr(error), answer="not asked")
        return []
    taken = []
    for option, text in scripts:
        why = bench.twin.refuses(text)
        tally.counts["options"] += 1
        if why and any(one.startswith("whether Slurm accepts") for one in option.unknown):
            tally.counts["options that Slurm refuses as the plan lists as unknown"] += 1
        elif why:
            bench.case(
                "false yes", _plain_words(why), request,
                partition=option.partition, teho=_option_text(option), answer=why, script=text,
            )  # fmt: skip
        else:
            tally.counts["options that Slurm takes"] += 1
            taken.append((option, text))
    planned = {option.partition for option in found.options}
    for part in bench.site.parts:
        if request.partition in {None, part.name} and part.name not in planned:
            _doubt(bench, request, part, found)
    return taken


def _doubt(bench: Bench, request: Request, part: Part, found: Answer) -> None:
    """Keep a refusal of a plan for judgement by a job if Slurm would take the request."""
    bench.tally.counts["refusals"] += 1
    own = [one for one in found.unfit if part.name in {one.partition, one.label}]
    own = own or [one for one in found.unfit if not one.partition and not one.label]
    refusals = [refusal for one in own for refusal in one.refusals]
    kinds = " + ".join(sorted({refusal.kind for refusal in refusals})) or "not named"
    said = "; ".join(refusal.sentence for refusal in refusals) or "no word of this partition"
    told = " ".join(refusal.instead for refusal in refusals)
    own_words = [
        ByHand(_with_own_qos(one.text, bench), one.means)
        for one in by_hand(bench.site, part, request)
        if not one.means or one.means not in told  # the plan names that way itself
    ]
    scripts = tuple(one for one in own_words if not bench.twin.refuses(one.text))
    if scripts:
        bench.doubts.append(Doubt(request, part, kinds, said, scripts))
    else:
        bench.tally.counts["refusals that Slurm shares"] += 1


def _judge_refusal(bench: Bench, doubt: Doubt) -> None:
    counts = bench.tally.counts
    counted = f"  judged by a job: {bench.site.seed} {doubt.kinds}"
    if counts[counted] >= _MOST_JUDGED_BY_A_JOB:
        counts["refusals that Slurm would take, not judged by a job"] += 1
        return
    counts[counted] += 1
    for one in doubt.scripts[:3]:
        job = bench.twin.submitted(one.text)
        less = list(_less_than_asked(bench.site, doubt.request, job)) if job.begun else []
        if not doubt.request.gpu_type and (len(job.gpus) > 1 or not WHOLE.issuperset(job.gpus)):
            # Nobody has asked for a mixture, nor for slices.
            less = ["GPUs of several types, or slices"]
        if job.begun and not less:
            bench.case(
                "false no",
                f"{doubt.kinds}{f' (with {one.means})' if one.means else ''}",
                doubt.request,
                partition=doubt.part.name,
                teho=doubt.said,
                answer=f"begins, with {_job_text(job)}",
                script=one.text,
            )
            return
        why = f"gives less: {less[0]}" if less else f"never begins: {_plain_words(job.said)}"
        counts[f"scripts by hand that Slurm takes with --test-only: {why}"] += 1
    counts["refusals that Slurm shares"] += 1


def _judge_job(bench: Bench, option: Option, script: str) -> None:
    bench.tally.counts["jobs"] += 1
    job = bench.twin.submitted(script)
    rest = {"partition": option.partition, "teho": _option_text(option), "script": script}
    told = any(
        one.startswith(("whether the job stays", "whether the job reaches"))
        for one in option.unknown
    )
    if job.number and not job.begun and told:
        bench.tally.counts["jobs that break a limit that the plan lists as unknown"] += 1
        return
    if not job.begun:
        what = "taken, never begins" if job.number else "refused without --test-only"
        said = _plain_words(job.said)
        bench.case("false yes", f"{what}: {said}", option.request, answer=job.said, **rest)
        return
    differing = [
        *_less_than_asked(bench.site, option.request, job),
        *_differing(bench, option, job),
    ]
    if "fewer cores than asked" in differing and any(
        one.startswith("whether the job gets") for one in option.unknown
    ):
        differing.remove("fewer cores than asked")
        bench.tally.counts["jobs with fewer cores, which the plan lists as unknown"] += 1
    for what in differing:
        bench.case("figure", what, option.request, answer=_job_text(job), **rest)
    bench.tally.counts["jobs as announced"] += not differing


def _cores_of(site: Site, job: Job) -> float:
    """Return the cores of a job, whose nodes may count cores or threads."""
    held = {
        *re.findall(
            r"\b([gc]\d+)-n", " ".join(re.findall(r"^\s+Nodes=(\S+)", job.record, re.MULTILINE))
        )
    }
    if len(held) == 1:
        return job.cpus / site.kind(held.pop()).cpus_per_core
    cores = 0.0
    pattern = r"^\s+Nodes=(\S+) CPU_IDs=(\S*)"
    for nodes, ids in re.findall(pattern, job.record, re.MULTILINE):
        spans = [span.partition("-") for span in ids.split(",") if span]
        cpus = sum(int(last or first) - int(first) + 1 for first, _, last in spans)
        for some in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", nodes):
            kind = site.kind(some.partition("-")[0])
            cores += nodes_in(some) * cpus / kind.threads
    return cores


def _less_than_asked(site: Site, request: Request, job: Job) -> Iterator[str]:
    gpus = sum(job.gpus.values())
    # GPUs to which the site gives no type are `gpu` to Teho, and have no name in the allocation.
    name = "" if request.gpu_type == UNTYPED else request.gpu_type
    typed = job.gpus.get(name, 0) if request.gpu_type else gpus
    cores = _cores_of(site, job)
    asked_cores = request.cpus or (request.cpus_per_gpu or 0) * request.gpus
    memory_mib = request.memory_mib
    if gpus < request.gpus:
        yield "fewer GPUs than asked"
    elif typed < request.gpus:
        yield "another type of GPU than asked"
    if cores < asked_cores:
        yield "fewer cores than asked"
    if request.nodes and job.nodes != request.nodes:
        yield "other nodes than asked"
    counted = "Memory" in site.words["SelectTypeParameters"]
    if memory_mib and counted and job.memory_mib < memory_mib * job.nodes:
        yield "less memory than asked"
    if request.time_s and _minutes(job.time_min) < math.ceil(request.time_s / 60):
        yield "less time than asked"


def _differing(bench: Bench, option: Option, job: Job) -> Iterator[str]:
    site, part = bench.site, bench.site.part(option.partition)
    if option.nodes != job.nodes:
        yield "nodes: other than announced"
    given = option.given
    if given is None:
        yield "nothing announced"
        return
    gpus = sum(job.gpus.values())
    if given.gpus is not None:
        yield from signs("GPUs", option.nodes * sum(n for _, n in given.gpus), gpus)
        known = {one.type for kind in site.kinds for one in kind.gpus if one.type}
        announced = {name for name, _ in given.gpus}
        if announced and announced <= known and set(job.gpus) != announced:
            yield "GPU type: other than announced"
    if given.cores is not None:
        yield from signs("cores", option.nodes * given.cores, _cores_of(site, job))
    if given.cpus is not None:
        yield from signs("CPUs", option.nodes * given.cpus, job.cpus)
    if given.memory_mib is not None and "Memory" in site.words["SelectTypeParameters"]:
        announced_mib = option.nodes * given.memory_mib
        yield from signs("memory", announced_mib, job.memory_mib, option.nodes)
    if _minutes(job.time_min) != math.ceil(option.time_s / 60):
        yield "time limit: other than announced"
    if "TRESBillingWeights" in part.words and job.billing is not None:
        if option.cost is None:
            bench.tally.counts["jobs whose cost is not announced, though it has weights"] += 1
        else:
            rate = option.cost.amount / (option.time_s / 3600)
            yield from signs("cost", rate, job.billing, 1 + 0.005 * job.billing)


def _minutes(text: str) -> float:
    if text == "UNLIMITED":
        return math.inf
    days, _, rest = text.rpartition("-")
    hours, minutes, _ = (*map(int, rest.split(":")), 0, 0, 0)[:3] if rest else (0, 0, 0)
    return int(days or 0) * 1440 + hours * 60 + minutes


def _with_own_qos(text: str, bench: Bench) -> str:
    known = {one.name for one in bench.site.qos}

    def real(found: re.Match[str]) -> str:
        name = found.group(1)
        return f"{name}_{bench.twin.name}" if name in known else name

    return re.sub(r"\{qos:(\w+)\}", real, text)


def _plain_words(said: str) -> str:
    """Return Slurm's or Teho's words without numbers and names, one category for all alike."""
    lines = [re.sub(r"^sbatch: (error: )?", "", line) for line in said.splitlines()]
    text = " / ".join(dict.fromkeys(line for line in lines if line))
    text = re.sub(r"(?<!\S)/\S+", "PATH", text)
    return re.sub(r"\d+", "N", text.removeprefix("allocation failure: "))


def _option_text(option: Option) -> str:
    memory = f", {option.memory_mib} MiB a node" if option.memory_mib else ""
    cost = (
        f"; costs {option.cost.amount:g} {option.cost.unit}: {option.cost.sum}"
        if option.cost
        else ""
    )
    return (
        f"takes it on {option.node_kind}: {option.nodes} nodes with {option.gpus_per_node} "
        f"{option.gpu_type or 'GPUs'}, {option.tasks_per_node} × {option.cpus_per_task} cores"
        f"{memory}, {option.time_s / 60:g} min{cost}"
    )


def _job_text(job: Job) -> str:
    gpus = ", ".join(f"{count} × {name or 'gpu'}" for name, count in job.gpus.items())
    return (
        f"{job.nodes} nodes, {job.cpus} CPUs, {job.memory_mib:.0f} MiB, GPUs: {gpus or 'none'}, "
        f"{job.time_min}, billing {job.billing}"
    )
