"""Mark stuttered frames in speech; two ranks with gloo."""
import os
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MEL = 40
FRAMES = 100
LABELS = 48
BATCH = 32
EPOCHS = 3
PER_EPOCH = 32


class FrameMarker(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(MEL, 128, 5, padding=2), nn.ReLU(),
            nn.Conv1d(128, 128, 5, padding=2), nn.ReLU(),
            nn.Conv1d(128, 128, 5, padding=2), nn.ReLU(),
        )
        self.mark = nn.Conv1d(128, LABELS, 1)
        self.speaker = nn.Sequential(nn.Flatten(), nn.Linear(128 * FRAMES // 2, 384), nn.ReLU(),
                                     nn.Linear(384, 128))

    def forward(self, x):
        z = self.body(x)
        bias = self.speaker(nn.functional.avg_pool1d(z, 2))
        return self.mark(z + bias[:, :, None])


def utterances(rng, shapes):
    y = np.repeat(rng.integers(0, LABELS, size=(BATCH, FRAMES // 5)), 5, axis=1)
    x = shapes[y].transpose(0, 2, 1) + rng.normal(0, 1.5, size=(BATCH, MEL, FRAMES))
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)


def frame_score(logits, y, world):
    gathered = [None] * world
    dist.all_gather_object(gathered, (logits.detach().softmax(1).tolist(), y.tolist()))
    right = total = 0
    for probs, labels in gathered:
        labels = np.asarray(labels)
        right += int((np.asarray(probs).argmax(1) == labels).sum())
        total += labels.size
    return right / total


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(23)
    shapes = np.random.default_rng(23).normal(size=(LABELS, MEL))
    rng = np.random.default_rng(500 + rank)
    net = DistributedDataParallel(FrameMarker())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    folder = tempfile.mkdtemp(prefix="stutter_")
    path = os.path.join(folder, "marker.pt")
    data = [utterances(rng, shapes) for _ in range(PER_EPOCH)]
    for epoch in range(EPOCHS):
        score = 0.0
        for step, (x, y) in enumerate(data):
            logits = net(x)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            score += frame_score(logits, y, world)
            if step % 2 == 1:
                if rank == 0:
                    torch.save({"net": net.module.state_dict(), "opt": opt.state_dict()}, path)
                dist.barrier()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} frames right {score / PER_EPOCH:.3f}",
                  flush=True)
    if rank == 0:
        os.remove(path)
    os.rmdir(folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
