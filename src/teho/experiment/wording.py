"""Settings in words, and as changes of the program's lines."""

from __future__ import annotations

import ast
from pathlib import Path

from teho.experiment.attempt import Attempt
from teho.experiment.search_space import serial_calls
from teho.explain.loader_words import grain_code
from teho.explain.wording import joined
from teho.model.stack import Frame
from teho.model.tuned import Change, Settings
from teho.model.watched import Loader

__all__ = ["PIPELINE_CODE", "changes_of", "in_words"]

_ARGUMENTS = (
    "num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "batch_size",
)  # fmt: skip
_REMARKS = {
    "pin_memory": "Copies to the GPU overlap with computing only if the program uses "
    "`.to(device, non_blocking=True)`.",
    "batch_size": "This setting changes the training: the learning rate may need an adjustment.",
}
_LINES = {
    "threads": "torch.set_num_threads({})",
    "tf32": 'torch.set_float32_matmul_precision("high")',
    "autocast": "with torch.autocast(device_type, dtype=torch.{}):  # around the model's call",
    "channels_last": "model = model.to(memory_format=torch.channels_last)  # and the images too",
}
_LINE_REMARKS = {
    "threads": "Or set `OMP_NUM_THREADS` in the environment.",
    "tf32": "With TF32, matrix products have 10 bits of mantissa: check the result.",
    "autocast": "This setting changes the numbers: check the result.",
}
_UNKNOWN = Frame("", "", 0, "DataLoader(…)")
_OF_GRAIN = "This line reads the pipeline: change the code that makes the pipeline."
_FROZEN = (
    "For this measurement, samples were loaded for 3 s and then used again and again. In memory, "
    "each sample keeps its first random augmentation."
)


PIPELINE_CODE = {
    "num_parallel_calls": "num_parallel_calls=tf.data.AUTOTUNE",
    "prefetch": ".prefetch(tf.data.AUTOTUNE)",
    "cache": ".cache()",
}
"""Settings of a tf.data pipeline, as code."""
_CALL_REMARKS = {
    "cache": "For this measurement, elements were loaded for 3 s and then used again and again. "
    "Call random augmentation and `shuffle` after `cache`.",
}


_FED = (
    "Import it: `from teho.feed import resident`. The batches are then on the GPU already. In "
    "memory, each sample keeps its first random augmentation: make random changes with the "
    "arguments of `resident`."
)
_FED_SHUFFLED = (
    "The order depends only on the argument `seed` of `resident`, not on `torch.manual_seed` or on "
    "a `generator`."
)
_FED_DISTRIBUTED = (
    "`resident` itself divides the samples between the ranks: remove the `DistributedSampler` and "
    "its `set_epoch`."
)


def _fed(loader: Loader, settings: Settings) -> Change:
    """Return the call that replaces a DataLoader."""
    given, frame = loader.settings, loader.made_at or _UNKNOWN
    batch_size = settings.get("batch_size", given["batch_size"])
    more = ", shuffle=True" if given["shuffle"] else ""
    more += ", drop_last=True" if given.get("drop_last") else ""
    remarks = [_FED]
    if given["shuffle"]:
        remarks.append(_FED_SHUFFLED)
    if given["sampler"] == "DistributedSampler":
        remarks.append(_FED_DISTRIBUTED)
    if "batch_size" in settings:
        remarks.append(_REMARKS["batch_size"])
    return Change(
        file=frame.file,
        line=frame.line,
        text=frame.text,
        set_to=f"resident({_dataset_at(frame)}, batch_size={batch_size}{more})",
        remark=" ".join(remarks),
    )


def _dataset_at(frame: Frame) -> str:
    """Return the expression that the program gives a DataLoader at a line as its dataset.

    If the line does not have exactly one such call, or is not in a file, the result is `dataset`.
    """
    try:
        tree = ast.parse(Path(frame.file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return "dataset"
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno == frame.line
        and ast.unparse(node.func).rpartition(".")[2] == "DataLoader"
    ]
    if len(calls) != 1:
        return "dataset"
    named = [one.value for one in calls[0].keywords if one.arg == "dataset"]
    first = next(iter([*calls[0].args, *named]), None)
    return "dataset" if first is None or isinstance(first, ast.Starred) else ast.unparse(first)


def in_words(settings: Settings) -> str:
    """Return settings as part of a sentence; empty if there are none."""
    named = {"in_memory": "samples in memory", "feed": "teho.feed.resident", **PIPELINE_CODE}
    words = [f"`{named.get(name, f'{name}={value!r}')}`" for name, value in settings.items()]
    return joined(words) if words else ""


def changes_of(settings: Settings, base: Attempt) -> tuple[Change, ...]:
    """Return the lines of the program to change.

    Args:
        settings: to set.
        base: a run of the unchanged program. It has the line where the loader is made.
    """
    found = []
    frame = (base.loader and base.loader.made_at) or _UNKNOWN
    file, line, text = frame.file, frame.line, frame.text
    if settings.get("in_memory"):
        kept = "dataset = [dataset[i] for i in range(len(dataset))]  # before this line"
        found.append(Change(file=file, line=line, text=text, set_to=kept, remark=_FROZEN))
    if settings.get("feed") and base.loader:
        found.append(_fed(base.loader, settings))
    given = [name for name in _ARGUMENTS if name in settings and not settings.get("feed")]
    if given and base.loader and base.loader.library == "grain":
        code = grain_code(base.loader, **{name: settings[name] for name in given})
        found.append(Change(file=file, line=line, text=text, set_to=code, remark=_OF_GRAIN))
    elif given:
        found.append(
            Change(
                file=file,
                line=line,
                text=text,
                set_to=", ".join(f"{name}={settings[name]!r}" for name in given),
                remark=" ".join(_REMARKS[name] for name in given if name in _REMARKS),
            )
        )
    found += _changes_of_pipelines(settings, base)
    found += [
        Change(
            file="",
            line=0,
            text="",
            set_to=code.format(settings[name]),
            remark=_LINE_REMARKS.get(name, ""),
        )
        for name, code in _LINES.items()
        if settings.get(name)
    ]
    return tuple(found)


def _changes_of_pipelines(settings: Settings, base: Attempt) -> list[Change]:
    found = []
    for call in serial_calls(base) if "num_parallel_calls" in settings else ():
        (file, line), text = call["at"], f".{call['call']}(…)"
        set_to = PIPELINE_CODE["num_parallel_calls"]
        found.append(Change(file=file, line=line, text=text, set_to=set_to))
    for name in ("cache", "prefetch"):
        if name in settings:
            file, line, call = settings[name].rsplit(":", 2)
            found.append(
                Change(
                    file=file,
                    line=int(line),
                    text=f".{call}(…)",
                    set_to=f"{PIPELINE_CODE[name]}  # add it after this call",
                    remark=_CALL_REMARKS.get(name, ""),
                )
            )
    return found
