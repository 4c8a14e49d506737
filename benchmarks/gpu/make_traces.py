"""Write traces of small real trainings with PyTorch's profiler: those in tests/data/traces.

    python3 make_traces.py FOLDER              all cases but `ddp`, on one GPU, or else on the CPU
    python3 make_traces.py FOLDER CASE...      conv, conv-pageable-item, lm-bf16, lm-stacks, ...
    python3 make_traces.py FOLDER ddp          NCCL with 1 rank, and gloo with 2 ranks on one GPU
    python3 make_traces.py cut FROM TO STEP    write one step of a trace, with few arguments

Needs PyTorch. Each case takes seconds; each trace has 3 steps.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

_CPU_CATEGORIES = frozenset(
    {"cpu_op", "cuda_driver", "cuda_runtime", "fwdbwd", "python_function", "user_annotation"}
)
_GPU_CATEGORIES = frozenset({"gpu_memcpy", "gpu_memset", "kernel"})
_ARGUMENTS = frozenset({"bytes", "correlation", "device", "stream"})
_SHORT_US = 20
"""Python functions of libraries that are shorter are left out of a cut."""


def train(
    model: Any, data: Any, file: Path, *, batch: int, bf16: bool = False, pin: bool = True,
    workers: int = 2, item: bool = False, compiled: str = "", ddp: bool = False, **settings: bool,
) -> None:  # fmt: skip
    """Train for ten steps and write the trace of three.

    Args:
        model: on the CPU.
        data: a dataset of inputs and labels.
        file: the trace.
        batch: batch size.
        bf16: whether the forward pass runs under autocast.
        pin: whether the loader pins its memory, and copies are asynchronous.
        workers: of the data loader.
        item: whether the loss is read in each step.
        compiled: mode of `torch.compile`; empty: not compiled.
        ddp: whether the model is distributed.
        settings: of the profiler.
    """
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    has_gpu = torch.cuda.is_available()
    device = "cuda" if has_gpu else "cpu"
    torch.manual_seed(0)
    model = model.to(device)
    if ddp:
        model = nn.parallel.DistributedDataParallel(model)
    if compiled:
        model = torch.compile(model, mode=compiled)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = torch.utils.data.DataLoader(
        data, batch, num_workers=workers, pin_memory=pin and has_gpu, drop_last=True
    )
    activities = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * has_gpu]
    with profile(
        activities=activities, schedule=schedule(wait=4, warmup=2, active=3, repeat=1),
        on_trace_ready=partial(_write, file=file), **settings,
    ) as profiler:  # fmt: skip
        for number, (given, wanted) in enumerate(loader):
            if number > 9:
                break
            inputs = given.to(device, non_blocking=pin)
            labels = wanted.to(device, non_blocking=pin)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
                outputs = model(inputs)
                loss = nn.functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())
            loss.backward()
            optimizer.step()
            if item:
                loss.item()
            profiler.step()
    if has_gpu:
        torch.cuda.synchronize()


def _write(profiler: Any, file: Path) -> None:
    plain = file.with_suffix("")
    profiler.export_chrome_trace(str(plain))
    with plain.open("rb") as source, gzip.open(file, "wb", 9) as target:
        shutil.copyfileobj(source, target)
    plain.unlink()


def cases(suffix: str = "") -> dict[str, Callable[[Path], None]]:
    """Return all trainings by name; each gets the folder of its trace."""
    import torch
    from torch import nn

    class Images(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4096

        def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
            generator = torch.Generator().manual_seed(number)
            return torch.rand(3, 32, 32, generator=generator), number % 10

    class Tokens(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4096

        def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
            generator = torch.Generator().manual_seed(number)
            tokens = torch.randint(0, 1000, (64,), generator=generator)
            return tokens, tokens

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
            self.embedding = nn.Embedding(1000, 256)
            self.blocks = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            self.head = nn.Linear(256, 1000)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.blocks(self.embedding(tokens)))

    def convolutions() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10),
        )  # fmt: skip

    def case(name: str, make: Callable[[], nn.Module], **settings: Any) -> None:
        data, batch = (Tokens(), 32) if make is Language else (Images(), 128)
        made[name] = lambda folder: train(
            make(), data, folder / f"{name}{suffix}.json.gz", batch=batch, **settings
        )

    made: dict[str, Callable[[Path], None]] = {}
    case("conv", convolutions)
    case("conv-pageable-item", convolutions, pin=False, workers=0, item=True)
    case("conv-compiled", convolutions, compiled="default")
    case("lm-bf16", Language, bf16=True)
    case("lm-graph", Language, bf16=True, compiled="reduce-overhead")
    case("lm-stacks", Language, bf16=True, with_stack=True, record_shapes=True,
         profile_memory=True, with_flops=True)  # fmt: skip
    case("ddp", Language, bf16=True, workers=0, ddp=True)
    return made


def distributed(rank: int, world: int, backend: str, port: int, folder: Path) -> None:
    """Train as one rank of a distributed program."""
    import torch
    from torch import distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if torch.cuda.is_available():
        torch.cuda.set_device(0)
    dist.init_process_group(backend, rank=rank, world_size=world)
    cases(f"-{backend}-{rank}of{world}")["ddp"](folder)
    dist.destroy_process_group()


def cut(source: Path, target: Path, step: int) -> None:
    """Write one step of a trace, with only the arguments that Teho reads."""
    document = json.loads(gzip.decompress(source.read_bytes()))
    events = document["traceEvents"]
    mark = next(
        event
        for event in events
        if event["name"] == f"ProfilerStep#{step}" and event["cat"] == "user_annotation"
    )
    start, end = mark["ts"], mark["ts"] + mark["dur"]
    kept = [event for event in events if _is_in(event, start, end)]
    launched = {event.get("args", {}).get("correlation") for event in kept} - {None}
    kept += [
        event
        for event in events
        if event.get("cat") in _GPU_CATEGORIES and event["args"]["correlation"] in launched
    ]
    for event in kept:
        has_numbers = event["cat"] in _GPU_CATEGORIES | {"cuda_driver", "cuda_runtime"}
        arguments = event.pop("args", {})
        few = {name: value for name, value in arguments.items() if name in _ARGUMENTS}
        if has_numbers and few:
            event["args"] = few
        event.pop("bp", None)
    document["traceEvents"] = kept
    text = json.dumps(document, separators=(",", ":"))
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _is_in(event: dict[str, Any], start: float, end: float) -> bool:
    """Return whether an event of the CPU belongs into a cut."""
    if event.get("cat") not in _CPU_CATEGORIES or event.get("ph") not in {"X", "s", "f"}:
        return False
    if event["cat"] != "python_function":
        return start <= event["ts"] <= end
    is_long = event["dur"] >= _SHORT_US or Path(__file__).stem in event["name"]
    return is_long and event["ts"] <= end and event["ts"] + event["dur"] >= start


def main(arguments: list[str]) -> None:
    """Write the traces of the cases, or cut one."""
    if arguments[0] == "cut":
        cut(Path(arguments[1]), Path(arguments[2]), int(arguments[3]))
        return
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    if arguments[1:] == ["ddp"]:
        from torch import multiprocessing

        for backend, world, port in (("nccl", 1, 29511), ("gloo", 2, 29512)):
            multiprocessing.spawn(distributed, (world, backend, port, folder), nprocs=world)
        return
    known = cases()
    for name in arguments[1:] or [name for name in known if name != "ddp"]:
        known[name](folder)
        print(name, "written", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
