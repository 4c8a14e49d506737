"""Many tokens or time steps of the batches are padding."""

from __future__ import annotations

from teho.explain.lines import sections_s
from teho.explain.options import options_of_rule
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.program import Doing, MainProcess, Section
from teho.model.stack import Frame
from teho.model.watched import Loader

RANK = 204
SEVERITY = "critical, warning"
THRESHOLDS = {
    "padding_percent": chosen(
        40.0, "%", "texts of different lengths need some padding, even if they are sorted"
    ),
    "series_percent": chosen(
        25.0,
        "%",
        "series of different lengths need some padding; these time steps come after the longest "
        "series of a batch, so no batch needs them",
    ),
    "computing_percent": chosen(
        25.0,
        "%",
        "if the source shows padding to a fixed width, but the padding is not measured, the model "
        "must take at least this share of the time",
    ),
    "gpu_busy_percent": chosen(
        70.0,
        "%",
        "if the padding is not measured, the GPU must be busy while the program works: else the "
        "model is not what takes the time",
    ),
}
MUTES = ("waits_for_device", "gpu_low_occupancy", "gpu_low_use")
MUTES_BECAUSE = "while the program works, the GPU is busy with the padding"

_COMPUTING = (Section.LOOP, Section.EVALUATION, Section.PROGRAM)
_GENERATED = ("generated_with_cache", "generated_without_cache")
_DOINGS = (Doing.NATIVE, Doing.THREADS, Doing.DEVICE)
"""Activities in which a model computes, if the section of the program is not known."""
_MOST_OF_UNKNOWN = 0.7
"""Part of the computing time that shorter batches save at most, if the padding is not measured."""
_REST_PERCENT = 20.0
"""Padding inside of the batches from which sorting by length is worth a sentence."""
_TEXTS = (
    "Pad each batch only to the length of its longest text. With Transformers, tokenize without "
    "`padding`, and use `DataCollatorWithPadding(tokenizer)`. Without Transformers, call "
    "`torch.nn.utils.rnn.pad_sequence` in `collate_fn`. Put texts of similar lengths into the same "
    "batch, for example with `group_by_length=True` in `TrainingArguments`."
)


def judge(context: ProgramContext) -> Findings:
    """Judge the share of padding in the batches of a loader.

    The probe counts the padding in the first batches. It uses the attention mask, or the token that
    ends most texts. In batches of series, it uses the lengths of the series. A model computes the
    padding in the same way as all other tokens and time steps.
    """
    for main in context.mains:
        loader, padding = _most_padded(main, "padding_percent")
        if loader is not None and padding >= context.limit("padding_percent"):
            found = _found(context, main, padding)
            if found is not None:
                yield found
                return
        loader, padding = _most_padded(main, "series_after_longest_percent")
        if loader is not None and padding >= context.limit("series_percent"):
            found = _found(context, main, padding, loader)
            if found is not None:
                yield found
                return
    yield from _by_tokenizer(context) or _by_source(context)


def _is_counted(main: MainProcess) -> bool:
    """Return whether the probe counted the padding in the batches of a loader."""
    return any(
        "padding_percent" in one.batch or "series_padding_percent" in one.batch
        for one in main.process.loaders
    )


def _by_tokenizer(context: ProgramContext) -> list[Located]:
    """Return a finding about the padding that the tokenizer of a program without a loader makes."""
    main = context.mains[0] if context.mains else None
    facts = main.process.libraries.get("transformers", {}) if main else {}
    padding = facts.get("token_padding_percent")
    if main is None or _is_counted(main) or not isinstance(padding, float):
        return []
    if any(name in facts for name in _GENERATED):  # only the prompts are padded
        return []
    computing_s = main.seconds(*_DOINGS)
    if padding < context.limit("padding_percent"):
        return []
    if not context.is_loss(computing_s * padding / 100, main):
        return []
    place = facts.get("tokenized_at")
    at = Frame(*place) if place else None
    where = f" (`{at.short_text}` at {at.short_place})" if at is not None else ""
    share = 100 * computing_s * padding / 100 / main.process.wall_s
    return [
        context.lost(
            f"Of all tokens that the tokenizer makes{where}, {padding:.0f} % are padding (tokens "
            "without text). The model also computes with the padding.",
            share_percent=share,
            evidence=(
                Evidence("share of padding in all tokens", padding, "%"),
                Evidence("time spent on computing", main.percent(*_DOINGS), "%"),
                *([Evidence("tokenizer", f"{at.short_place}  {at.short_text}")] if at else []),
            ),
            action=(
                "Pad only to the longest text of each batch: `padding=True` instead of "
                '`padding="max_length"`. Sort the texts by length before you divide them into '
                "batches, so that each batch has texts of similar lengths."
            ),
            judged_by=["padding_percent"],
            regain_percent=(share / 2, 0.9 * share),
            certainty=Certainty.LIKELY,
        )
    ]


def _by_source(context: ProgramContext) -> Findings:
    """Yield a possible finding: the source shows padding, but the probe could not count it."""
    main = context.mains[0] if context.mains else None
    found = next(options_of_rule(main, "input_padded"), None) if main else None
    if main is None or found is None or _is_counted(main):
        return
    if any(name in main.process.libraries.get("transformers", {}) for name in _GENERATED):
        return
    action, at = found
    computing = main.percent(*_DOINGS)
    is_long = context.is_loss(main.seconds(*_DOINGS), main)
    if not is_long or computing < context.limit("computing_percent"):
        return
    use = context.gpu_use(main)
    if use is None or use.busy_percent < context.limit("gpu_busy_percent"):
        return
    yield context.lost(
        f"The batches are padded to a fixed width (`{at.short_text}` at {at.short_place}). The "
        "model also computes with the padding. If most items are much shorter, most of this work "
        "has no effect.",
        share_percent=computing,
        evidence=(
            Evidence("time spent on computing, and on waiting for the GPU", computing, "%"),
            use.evidence,
            Evidence("padding", f"{at.short_place}  {at.short_text}"),
        ),
        action=(
            f"{action}. To see the share of padding, print `1 - mask.float().mean()` of a batch "
            "(`mask` is 1 for items, and 0 for padding). The results stay the same if the model "
            "gets the mask."
        ),
        judged_by=["computing_percent", "gpu_busy_percent"],
        regain_percent=(0.0, _MOST_OF_UNKNOWN * computing),
        certainty=Certainty.POSSIBLE,
    )


def _most_padded(main: MainProcess, fact: str) -> tuple[Loader | None, float]:
    """Return the loader with the most batches of those with padding, and its padding in %."""
    loaders = [one for one in main.process.loaders if fact in one.batch]
    loader = max(loaders, key=lambda one: one.batches, default=None)
    return loader, float(loader.batch[fact]) if loader else 0.0


def _found(
    context: ProgramContext, main: MainProcess, padding: float, series: Loader | None = None
) -> Located | None:
    """Return the finding; None if the padding costs too little time.

    Args:
        context: the run.
        main: the process.
        padding: share of the padding, in %.
        series: the loader, if it has series of numbers.
    """
    sections = sections_s(main.process)
    computing_s = sum(sections.get(section, 0.0) for section in _COMPUTING)
    needless_s = computing_s * padding / 100
    if not context.is_loss(needless_s, main):
        return None
    share = 100 * needless_s / main.process.wall_s
    sentence = (
        f"Of all tokens in the batches, {padding:.0f} % are padding (tokens without text). The "
        "model also computes with the padding."
    )
    evidence = [Evidence("share of padding in all tokens", padding, "%")]
    places = dict.fromkeys(options_of_rule(main, "input_padded"))
    action = f"{next(iter(places))[0]}." if len(places) == 1 else _TEXTS
    if series is not None:
        every = float(series.batch.get("series_padding_percent", padding))
        sentence = (
            f"Of all time steps in the batches, {padding:.0f} % come after the end of the longest "
            "series of their batch: they are only zeros. The model also computes with them."
        )
        evidence = [
            Evidence("time steps after the longest series", padding, "%"),
            Evidence("time steps after the end of their own series", every, "%"),
        ]
        action = _series_action(series, every - padding)
    computing = Evidence(
        "time in steps and in evaluation", 100 * computing_s / main.process.wall_s, "%"
    )
    return context.lost(
        sentence,
        share_percent=share,
        evidence=(*evidence, computing),
        action=action,
        regain_percent=(share / 2, 0.9 * share),
        lines=main.lines(Doing.NATIVE, Doing.THREADS, Doing.DEVICE),
        mutes=False,
    )


def _series_action(loader: Loader, rest: float) -> str:
    """Return the advice for series: `rest` is the padding inside of the batches, in %."""
    collate = str(loader.settings.get("collate") or "")
    where = f"In `{collate}`, pad" if collate and collate != "default_collate" else "Pad"
    action = (
        f"{where} each batch only to its own longest series: `width = max(lengths)`, instead of "
        "the same width for all batches. Or cut each batch before the model gets it: `series[:, : "
        "int(lengths.max())]`."
    )
    if rest >= _REST_PERCENT:
        action += (
            " Put series of similar lengths into the same batch: this further reduces the padding."
        )
    return action
