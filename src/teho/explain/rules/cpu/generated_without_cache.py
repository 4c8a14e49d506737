"""A language model generates text without its cache of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.program_context import in_lines
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import LineTimes, place_of
from teho.model.stack import Frame
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

RANK = 212
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "generating_min_s": chosen(
        20.0,
        "s",
        "Teho reads about 400 stacks in 20 s. If the program uses the cache for 1 % of the time, "
        "some of these stacks show the cache. This limit is needed only if Teho could not read "
        "the setting `use_cache`",
    ),
}

_GENERATING = lazy_pattern(
    r"transformers/generation/utils\.py:(\w+\.)?_(sample|beam_search|greedy\w*)$"
)
_ATTENTION = lazy_pattern(r":\w*Attention\.forward$")
_CACHE = lazy_pattern(r"transformers/cache_utils\.py:")
_ACTION = (
    "If `use_cache=False` is in `generate(…)`, in the `GenerationConfig` or in the model's "
    "configuration, remove this setting: without the cache, the model computes all earlier tokens "
    "again for each new token. In training mode, gradient checkpointing turns the cache off: call "
    "`model.eval()` before `generate`."
)


def judge(context: ProgramContext) -> Findings:
    """Look for calls of `generate` without the cache, or for attention without cache functions.

    The probe notes whether a call used the cache. Recordings before 2026-11-26 have no such note:
    for these recordings, the finding is a remark, because old versions of Transformers have no
    functions for the cache.
    """
    for main in context.mains:
        noted = main.process.libraries.get("transformers", {})
        without = int(noted.get("generated_without_cache", 0))
        lines, generating_s, sees_cache, sees_attention = _generating(main.process)
        if noted.get("generated_with_cache") or not context.is_loss(generating_s, main):
            continue
        share = 100 * generating_s / main.process.wall_s
        evidence = (
            Evidence("share of the run spent on generating text", share, "%"),
            Evidence("time spent on generating text", generating_s, "s"),
        )
        regain = (share / 2, 0.95 * share)
        if without:
            yield context.lost(
                f"Generating text took {share:.0f} % of the time: `generate` ran without the cache "
                "of keys and values.",
                share_percent=share,
                evidence=(
                    *evidence,
                    Evidence("calls of `generate` without the cache", float(without)),
                ),
                action=_ACTION,
                regain_percent=regain,
                lines=lines,
            )
            return
        is_long = generating_s >= context.limit("generating_min_s")
        if sees_attention and not sees_cache and is_long:
            yield context.finding(
                Severity.REMARK,
                f"Generating text took {share:.0f} % of the time. As far as Teho could "
                "see, `generate` did not use its cache of keys and values.",
                evidence=(*evidence, *in_lines(lines)),
                action=_ACTION,
                regain_percent=regain,
            )
            return


def _generating(
    process: WatchedProcess,
) -> tuple[Sequence[tuple[Frame, float]], float, bool, bool]:
    """Return the lines that generated text, their time in s, and whether the cache was seen.

    The last item is whether attention was seen: models without attention have other caches.
    """
    lines, generating_s, sees_cache, sees_attention = LineTimes(), 0.0, False, False
    for seen in process.stacks:
        places = [place_of(frame) for frame in seen.frames]
        if any(map(_GENERATING.search, places)):
            sees_cache = sees_cache or any(map(_CACHE.search, places))
            sees_attention = sees_attention or any(map(_ATTENTION.search, places))
            generating_s += seen.wall_s
            lines.add(seen)
    return lines.slowest(), generating_s, sees_cache, sees_attention
