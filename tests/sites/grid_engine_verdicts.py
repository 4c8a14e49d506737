"""What Teho plans for a site, compared with what its Grid Engine does.

A *false yes* is an option of a plan that Grid Engine refuses, or takes and never begins. A *false
no* is a queue that a plan refuses though a script by hand begins there on the idle site, and has
what the request says. A *figure* is an option that begins with other figures than announced.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from disagreements import Case, Tally, signs
from grid_engine_requests import ByHand, by_hand, seconds_of
from grid_engine_site_twin import FACTS, Job, SiteTwin
from grid_engine_sites import Queue, Site
from grid_engine_texts import lines_of

from teho.errors import TehoError
from teho.model.cluster import Cluster
from teho.model.plan import Answer, Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import write_script

__all__ = ["GridEngineCase", "judge_site"]

_MOST_SCRIPTS_BY_HAND = 4
"""Of one refusal: each costs a real job."""
_MOST_CONFIRMED = 2
"""Of one site and one answer of `qsub -w v`: how many jobs wait in vain before it is believed."""


class GridEngineCase(Case, frozen=True, kw_only=True):
    """A disagreement with Grid Engine."""

    scheduler = "Grid Engine"
    directive = "#$"

    site: Site

    @property
    def site_text(self) -> str:
        return lines_of(self.site)


class Bench:
    """One running site with what Teho has discovered of it."""

    def __init__(self, twin: SiteTwin, cluster: Cluster, tally: Tally) -> None:
        self.twin, self.cluster, self.tally = twin, cluster, tally
        self.site = twin.site
        self.live = {cluster.name: twin.rights()}
        self.confirmed: Counter[str] = Counter()
        """By an answer of `qsub -w v`, the number of jobs that never began."""
        self._jobs: dict[str, Job] = {}

    def case(self, verdict: str, what: str, request: Request | None, **rest: str) -> None:
        self.tally.cases.append(
            GridEngineCase(verdict=verdict, what=what, site=self.site, request=request, **rest)
        )

    def job(self, script: str, *, facts: bool = False, doubt: bool = True) -> Job:
        """Submit a script, unless one with the same words has been submitted."""
        known = self._jobs.get(script)
        if known is None or (facts and known.begun and known.facts is None and not known.output):
            self.tally.counts["jobs"] += 1
            known = self._jobs[script] = self.twin.submitted(script, facts=facts, doubt=doubt)
        return known


def judge_site(twin: SiteTwin, requests: Iterable[Request]) -> Tally:
    """Return how plan and Grid Engine differ on a running site."""
    tally = Tally()
    try:
        cluster, mistakes = twin.discovered()
    except TehoError as error:
        what = f"discover: {_plain_words(str(error).splitlines()[-1])}"
        tally.cases.append(
            GridEngineCase(verdict="crash", what=what, site=twin.site, request=None,
                 teho=str(error), answer="the site runs")
        )  # fmt: skip
        return tally
    bench = Bench(twin, cluster, tally)
    if mistakes:
        bench.case(
            "crash", f"the file has mistakes: {_plain_words(mistakes[0])}", None,
            teho="\n".join(mistakes), answer="the site runs",
        )  # fmt: skip
    for request in requests:
        _judge(bench, request)
    return tally


def _judge(bench: Bench, request: Request) -> None:
    tally = bench.tally
    tally.counts["requests"] += 1
    try:
        found = answer(request, [bench.cluster], live=bench.live)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        what = f"{type(error).__name__}: {_nameless(bench.site, str(error))}"
        bench.case("crash", f"plan: {what}", request, teho=repr(error), answer="not asked")
        return
    for option in found.options:
        tally.counts["options"] += 1
        try:
            script = write_script(option, bench.cluster).text
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            what = f"no script: {_nameless(bench.site, str(error))}"
            bench.case(
                "false yes", what, request, partition=option.partition,
                teho=f"{_option_text(option)}, and then: {error!r}", answer="not asked",
            )  # fmt: skip
            continue
        _judge_option(bench, option, script)
    planned = {option.partition or option.label for option in found.options}
    for queue in bench.site.queues:
        if request.partition in {None, queue.name} and queue.name not in planned:
            tally.counts["refusals"] += 1
            _judge_refusal(bench, request, queue, found)


def _judge_option(bench: Bench, option: Option, script: str) -> None:
    counts, site = bench.tally.counts, bench.site
    why = bench.twin.refuses(script)
    trust = bool(why) and bench.confirmed[_nameless(site, why)] >= _MOST_CONFIRMED
    job = Job(said=why) if trust else bench.job(script, facts=True, doubt=not why)
    rest = {"partition": option.partition, "teho": _option_text(option), "script": script}
    if not job.begun:
        counts["options that -w v refuses, not submitted"] += trust
        bench.confirmed[_nameless(site, why)] += bool(why) and not trust
        said = job.said if not why or trust else f"{job.said}\n-w v: {why}"
        what = _why_not(bench, option, script, job, why)
        # What a plan lists as unknown may come.
        is_told = (
            any(one.startswith("whether the job ever starts") for one in option.unknown) and not why
        )
        unsure = is_told or what.startswith("the queue is")
        verdict = "unsure" if unsure else "false yes"
        bench.case(verdict, what, option.request, answer=said, **rest)
        counts["options that -w v takes and that never begin"] += not why
        return
    counts["options that begin"] += 1
    counts["options that begin though -w v refuses them"] += bool(why)
    differing = [
        *_less_than_asked(site, option.request, job),
        *_differing(site, option, job),
        *_program(job),
    ]
    # What a plan lists as unknown may come.
    if any("on one node" in one for one in option.unknown):
        differing = [what for what in differing if what != "spread over more hosts than asked"]
    if any("enough memory" in one for one in option.unknown):
        differing = [what for what in differing if what != "a host with less memory than asked"]
    for what in dict.fromkeys(differing):
        bench.case("figure", what, option.request, answer=_job_text(job), **rest)
    counts["options as announced"] += not differing


def _judge_refusal(bench: Bench, request: Request, queue: Queue, found: Answer) -> None:
    own = [one for one in found.unfit if queue.name in {one.partition, one.label}]
    own = own or [one for one in found.unfit if not one.partition and not one.label]
    refusals = [refusal for one in own for refusal in one.refusals]
    kinds = " + ".join(sorted({refusal.kind for refusal in refusals})) or "not named"
    said = "; ".join(refusal.sentence for refusal in refusals) or "no word of this queue"
    told = " ".join(refusal.instead for refusal in refusals)
    counts = bench.tally.counts
    if queue.state:
        counts["refusals of queues that are disabled or suspended, not judged"] += 1
        return
    for one in _sample(by_hand(bench.site, queue, request, FACTS)):
        if "-P" in one.means.split() and (
            "-P" in told or "--account" in told or "account" in kinds
        ):
            continue  # the plan names that way itself
        if "$round_robin" in one.means:
            # It would wait for one host that the user chose, whatever is free.
            counts["scripts by hand that tie the job to a host, not judged"] += 1
            continue
        if bench.twin.refuses(one.text):
            continue
        job = bench.job(one.text, facts=True)
        if not job.begun:
            reason = _plain_reasons(bench.site, job.said)
            counts[f"scripts by hand that -w v takes and that never begin: {reason}"] += 1
            continue
        less = [*_less_than_asked(bench.site, request, job), *_more_gpus(bench.site, request, job)]
        less += list(_program(job))
        if less:
            counts[f"scripts by hand that give something else: {less[0]}"] += 1
            continue
        means = f"by hand with {one.means}: " if one.means else ""
        sentences = " + ".join(sorted({_nameless(bench.site, one.sentence) for one in refusals}))
        bench.case(
            "false no", f"{kinds}: {sentences}", request,
            partition=queue.name, teho=said, answer=f"{means}begins, with {_job_text(job)}",
            script=one.text,
        )  # fmt: skip
        return
    counts["refusals that Grid Engine shares"] += 1


def _sample(scripts: list[ByHand]) -> list[ByHand]:
    plain = [one for one in scripts if not one.means]
    rest = [one for one in scripts if one.means]
    return [*plain[:_MOST_SCRIPTS_BY_HAND], *rest][: 2 * _MOST_SCRIPTS_BY_HAND]


def _why_not(bench: Bench, option: Option, script: str, job: Job, why: str) -> str:
    """Return the category of an option that does not begin."""
    site, name = bench.site, option.partition
    rejected = re.search(r"job rejected: (.*)|denied: (.*)", why or job.said)
    if rejected:
        return f"refused by qsub: {_nameless(site, rejected.group())}"
    states = {queue.name: queue.state for queue in site.queues}
    if states.get(name) and not why:
        return f"the queue is {'disabled' if states[name] == 'd' else 'suspended'}, the job waits"
    if not why:
        return f"never begins, though -w v takes it: {_plain_reasons(site, job.said)}"
    environment = re.search(r"^#\$ -pe (\S+) (\d+)", script, re.MULTILINE)
    queue = next((one for one in site.queues if one.name == name), None)
    if environment and queue:
        lists = [site.on_host(queue.environments, host) for host in site.hosts_of(queue)]
        if not any(environment.group(1) in one.split() for one in lists):
            return "never begins: the PE is not in the queue's pe_list"
        slots = {one.name: one.slots for one in site.environments}[environment.group(1)]
        if int(environment.group(2)) > slots:
            return "never begins: more slots than the PE has"
    reason = _plain_reasons(site, why)
    if "offers" in reason:
        reason += f"; {_cured_by(bench, script)}"
    return f"never begins: {reason}"


def _cured_by(bench: Bench, script: str) -> str:
    """Return what has to be taken away for `qsub -w v` to take a script."""
    site, twin = bench.site, bench.twin
    if site.quotas:
        with twin.without_quotas():
            if not twin.refuses(script):
                return "taken without the resource quotas"
    gpus = "|".join(re.escape(one.complex) for one in site.gpus) or "none"
    changes = {
        "its memory": (rf"^#\$ -l {site.memory}=.*\n", ""),
        "its time": (r"^#\$ -l h_rt=.*\n", ""),
        "its GPUs": (rf"^#\$ -l ({gpus})=.*\n", ""),
        "its -pe": (r"^#\$ -pe .*\n", ""),
        "more than one slot": (r"^(#\$ -pe \S+) .*\n", r"\1 1\n"),
    }
    found = [
        name
        for name, (pattern, instead) in changes.items()
        if not twin.refuses(re.sub(pattern, instead, script, flags=re.MULTILINE))
    ]
    for line in (f"-l {site.memory}=600M", *(f"-P {one.name}" for one in site.projects)):
        if not twin.refuses(script.replace("#$ -cwd\n", f"#$ -cwd\n#$ {line}\n")):
            return f"taken with a line {'-P' if line.startswith('-P') else '-l memory'}"
    counted = {one.consumable for one in site.gpus if f"-l {one.complex}=" in script}
    if found and found[0] == "its GPUs" and counted:
        return f"taken without its GPUs (consumable {', '.join(counted)})"
    return f"taken without {found[0]}" if found else "taken with no single change"


def _plain_reasons(site: Site, said: str) -> str:
    """Return Grid Engine's reasons without numbers and names, and without those that follow."""
    begin = r"^(Unable to run job: )?Job \d+ "
    lines = [re.sub(begin, "", line.strip()) for line in re.split(r"; |\n", said)]
    skipped = "hard queue list|no suitable queues|^Exiting|^$|-w v: "
    own = [line for line in lines if not re.search(skipped, line)]
    more = [line for line in own if "offers 0 slots" not in line] or own or lines
    found = " / ".join(dict.fromkeys(_nameless(site, line) for line in more))
    return found[:160] or "no reason named"


def _nameless(site: Site, said: str) -> str:
    """Return a sentence without the site's own names, and without numbers."""
    names = {one.name: "QUEUE" for one in site.queues}
    names |= {one.name: "PE" for one in site.environments}
    names |= {one.name: "HOST" for one in site.hosts} | dict.fromkeys(site.groups, "HOSTS")
    names |= {one.complex: "GPUs" for one in site.gpus}
    names |= {one.type: "GPUs" for one in site.gpus if one.type}
    names |= {one.name: "PROJECT" for one in site.projects}
    for name in sorted(names, key=len, reverse=True):
        said = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", names[name], said)
    said = re.sub(r"\bGPUs?\b( GPUs?\b)?", "GPU", said).replace("QUEUE@HOST", "QUEUE")
    return re.sub(r"\d+(\.\d+)?", "N", said)


def _gpus_of(site: Site, job: Job) -> dict[str, float]:
    """Return the GPUs that a job consumes, by type (empty: without a type).

    Where a host and a queue both count them, both are debited: the larger number counts.
    """
    found: dict[str, float] = {}
    for one in site.gpus:
        places = {"host": 0.0, "queue": 0.0}
        for key, count in job.consumed.items():
            place, _, name = key.rpartition(":")
            if name == one.complex:
                places["queue" if "@" in place else "host"] += count
        if most := max(places.values()):
            found[one.type] = found.get(one.type, 0.0) + most
    return found


def _memory_of(site: Site, job: Job) -> float | None:
    """Return the memory that a job consumes in bytes; None: none is counted there."""
    found = [count for key, count in job.consumed.items() if key.endswith(f":{site.memory}")]
    return sum(found) if found else None


def _seconds(site: Site, job: Job) -> float:
    # At the soft limit the program is sent a signal that ends it.
    limits = [
        seconds_of(site.queue(name).words.get(limit, "INFINITY"))
        for name in job.queues
        for limit in ("h_rt", "s_rt")
    ]
    if "h_rt" in job.limits:
        limits.append(seconds_of(job.limits["h_rt"]))
    return min(limits)


def _less_than_asked(site: Site, request: Request, job: Job) -> Iterator[str]:
    gpus = _gpus_of(site, job)
    typed = gpus.get(request.gpu_type, 0) if request.gpu_type else sum(gpus.values())
    cores = sum(job.slots.values())
    asked_cores = request.cpus or (request.cpus_per_gpu or 0) * request.gpus
    if sum(gpus.values()) < request.gpus:
        yield "fewer GPUs than asked"
    elif typed < request.gpus and any(one.type for one in site.gpus):
        yield "another type of GPU than asked"
    if cores < asked_cores:
        yield "fewer cores than asked"
    if len(job.hosts) > (request.nodes or 1):
        yield "spread over more hosts than asked"
    if request.partition and job.queues != {request.partition}:
        yield "another queue than asked"
    if request.account and job.project != request.account:
        yield "another project than asked"
    memory = _memory_of(site, job)
    asked_mib = request.memory_mib or 0
    if memory is not None:
        yield from _short_of(asked_mib, memory / 2**20, cores, "less memory than asked")
    elif sum(one.memory_mib for one in site.hosts if one.name in job.hosts) < asked_mib:
        yield "a host with less memory than asked"
    elif job.facts and job.facts[1].isdigit():
        limit_mib = int(job.facts[1]) / 1024
        yield from _short_of(asked_mib, limit_mib, cores, "a memory limit below what is asked")
    if request.time_s and _seconds(site, job) < request.time_s:
        yield "less time than asked"


def _short_of(asked_mib: float, given_mib: float, slots: int, what: str) -> Iterator[str]:
    if given_mib < asked_mib - 1:
        rounded = " (rounded down for each slot)" if given_mib > asked_mib - 1 - slots else ""
        yield f"{what}{rounded}"


def _more_gpus(site: Site, request: Request, job: Job) -> Iterator[str]:
    if sum(_gpus_of(site, job).values()) > request.gpus:
        yield "more GPUs than asked"


def _differing(site: Site, option: Option, job: Job) -> Iterator[str]:
    given = option.given
    gpus = _gpus_of(site, job)
    total = option.nodes * option.gpus_per_node
    if given is not None and given.gpus is not None:
        total = option.nodes * sum(count for _, count in given.gpus)
    yield from signs("GPUs", total, sum(gpus.values()))
    known = {one.type for one in site.gpus if one.type}
    if option.gpu_type in known and gpus and set(gpus) != {option.gpu_type}:
        yield "GPU type: other than announced"
    cores = option.nodes * option.tasks_per_node * option.cpus_per_task
    if given is not None and given.cores is not None:
        cores = option.nodes * given.cores
    yield from signs("slots", cores, sum(job.slots.values()))
    if option.partition and job.queues != {option.partition}:
        yield "queue: other than announced"
    memory_mib = given.memory_mib if given is not None else option.memory_mib
    memory = _memory_of(site, job)
    if memory_mib is not None and memory is not None:
        announced = option.nodes * memory_mib
        yield from signs("memory", announced, memory / 2**20, 1 + sum(job.slots.values()))
    if memory_mib is not None and job.facts and job.facts[1].isdigit():
        limit_mib = int(job.facts[1]) / 1024
        if limit_mib < memory_mib - 1 - sum(job.slots.values()):
            yield "memory: the process's limit (ulimit -v) is less than announced"
    if _seconds(site, job) < option.time_s - 0.5:
        yield "time limit: less than announced"
    elif _seconds(site, job) > math.ceil(option.time_s / 60) * 60 + 0.5:
        yield "time limit: more than announced"
    if option.account and job.project != option.account:
        yield "project: other than announced"


def _program(job: Job) -> Iterator[str]:
    if job.facts is None:
        yield "the program did not run"
    elif len(job.facts) > 1 and job.facts[1].isdigit() and int(job.facts[1]) <= 10240:
        yield "the program has a memory limit of 10 MiB"


def _plain_words(said: str) -> str:
    """Return words without numbers and names, one category for all alike."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = " / ".join(dict.fromkeys(lines))
    text = re.sub(r"(?<!\S)/\S+", "PATH", text)
    text = re.sub(r'"[^"]*"', '"…"', text)
    return re.sub(r"\d+", "N", text)[:200]


def _option_text(option: Option) -> str:
    given = option.given
    memory = f", {option.memory_mib} MiB a node" if option.memory_mib else ""
    announced = (
        f"; announces {given.cores} cores, {dict(given.gpus) if given.gpus else 'no'} GPUs, "
        f"{given.memory_mib} MiB"
        if given
        else ""
    )
    unknown = f"; not known: {', '.join(option.unknown)}" if option.unknown else ""
    advice = "; ".join(one.sentence for one in option.advice)
    return (
        f"takes it in {option.partition or option.label} on {option.node_kind}: {option.nodes} "
        f"nodes with {option.gpus_per_node} {option.gpu_type or 'GPUs'}, {option.tasks_per_node} × "
        f"{option.cpus_per_task} cores{memory}, {option.time_s / 60:g} min{announced}{unknown}"
        f"{f'; advice: {advice}' if advice else ''}"
    )


def _job_text(job: Job) -> str:
    slots = ", ".join(f"{count} slots of {name}" for name, count in job.slots.items())
    consumed = ", ".join(
        f"{key}={value / 2**20:.0f}M" if value > 1e6 else f"{key}={value:g}"
        for key, value in job.consumed.items()
        if not key.endswith(":slots")
    )
    program = f"program saw {' '.join(job.facts)}" if job.facts else f"no program: {job.output}"
    return f"{slots}; consumes {consumed or 'nothing counted'}; limits {job.limits}; {program}"
