"""Trainings in which each rank goes through all data, and trainings that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import os
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, TensorDataset
class Tiles(Dataset):
    def __init__(self, folder):
        self.names = os.listdir(folder)
def tiles(seed):
    return torch.randn(900, 3), torch.randn(900)
{more}
def main(folder):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    x, y = {tensors}
    data = {data}
    model = {model}
    loader = {loader}
    for epoch in range(9):
        for {target} in {loop}:
            loss = nn.functional.mse_loss(model(bx), by)
            {backward}
            {step}
            {rest}
"""
PARTS = {
    "more": "",
    "tensors": "tiles(77)",
    "data": "TensorDataset(x, y)",
    "model": "DistributedDataParallel(nn.Linear(3, 1))",
    "loader": "DataLoader(data, batch_size=40, shuffle=True)",
    "target": "bx, by",
    "loop": "loader",
    "backward": "loss.backward()",
    "step": "optimizer.step()",
    "rest": "print(loss.item())",
}
TRAIN = """
def train(model, loader, optimizer, epoch):
    for bx, by in loader:
        loss = nn.functional.mse_loss(model(bx), by)
        loss.backward()
        optimizer.step()
def main(folder):
    data = TensorDataset(*tiles(7))
    model = DistributedDataParallel(nn.Linear(3, 1))
    {loader}
    for epoch in range(9):
        train(model, loader, optimizer, epoch)
"""
HEAD = SOURCE.partition("{more}")[0]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"data": "Tiles(folder)"},
        {"loop": "tqdm(loader)"},
        {"loop": "enumerate(loader)", "target": "step, (bx, by)"},
        {"model": "DDP(nn.Linear(3, 1))"},
        {"loader": "DataLoader(data, 40, shuffle=True, num_workers=4, drop_last=True)"},
    ],
)
def test_each_rank_trains_with_all_data(changes):
    source = SOURCE.format(**PARTS | changes) + "main(4)\n"
    words = found(source, "main(4)", "loss.backward()")["all_data_on_each_rank"]
    assert words["sampler"] == ("sampler = torch.utils.data.DistributedSampler(data, shuffle=True)")
    assert words["new"].endswith("sampler=sampler)")
    assert "shuffle" not in words["new"]
    assert "`sampler.set_epoch(epoch)`" in words["first"]


def test_the_loop_may_be_in_another_function():
    loader = "loader = DataLoader(data, 40, shuffle=True)"
    source = HEAD + TRAIN.format(loader=loader) + "main(4)\n"
    stack = ("main(4)", "train(model, loader, optimizer, epoch)", "loss.backward()")
    assert "all_data_on_each_rank" in found(source, *stack)
    sampled = "loader = DataLoader(data, 40, sampler=RandomSampler(data, num_samples=99))"
    source = HEAD + TRAIN.format(loader=sampled) + "main(4)\n"
    assert "all_data_on_each_rank" not in found(source, *stack)


LOOKALIKES = {
    "a sampler": {"loader": "DataLoader(data, 40, sampler=DistributedSampler(data))"},
    "a batch sampler": {"loader": "DataLoader(data, batch_sampler=shares(data))"},
    "perhaps a sampler": {
        "loader": "DataLoader(data, 40, shuffle=True, **({'sampler': s} if s else {}))"
    },
    "each rank makes other data": {"tensors": "tiles(77 + rank)"},
    "a part of the data": {"tensors": "[part[rank::2] for part in tiles(77)]"},
    "a subset": {"data": "Subset(TensorDataset(x, y), range(rank, 900, 2))"},
    "a data set that divides itself": {
        "more": "class Own(Dataset):\n    def __getitem__(self, i):\n"
        "        return items[i * world + dist.get_rank()]",
        "data": "Own(folder)",
    },
    "a stream": {"loader": "DataLoader(data, 40)"},
    "accelerate": {"more": "from accelerate import Accelerator"},
    "a lightning module": {"more": "import lightning"},
    "tensor parallel": {"more": "from torch.distributed.device_mesh import init_device_mesh"},
    "a number of steps": {"rest": "if loss < 1e-3: break"},
    "no training": {"step": "pass"},
    "one process": {"model": "nn.Linear(3, 1)"},
    "not known data": {"data": "folder.data"},
}


@pytest.mark.parametrize("changes", LOOKALIKES.values(), ids=[*LOOKALIKES])
def test_each_rank_has_its_share(changes):
    source = SOURCE.format(**PARTS | changes) + "main(4)\n"
    assert "all_data_on_each_rank" not in found(source, "main(4)", "loss.backward()")
