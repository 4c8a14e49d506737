"""Word recognition from lip contours, trained on two ranks over gloo."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

POINTS = 160
WORDS = 30
CLIPS = 1280
BATCH = 16
EPOCHS = 5


def record(rng):
    motion = rng.normal(size=(WORDS, 4, POINTS)).astype(np.float32)
    clips, words = [], []
    for _ in range(CLIPS):
        w = int(rng.integers(0, WORDS))
        n = int(rng.integers(16, 97))
        phase = np.linspace(0, 3.0, n)
        weight = np.stack([np.sin(phase * (k + 1)) for k in range(4)], axis=1).astype(np.float32)
        clip = weight @ motion[w] + rng.normal(0, 2.0, size=(n, POINTS)).astype(np.float32)
        clips.append(torch.from_numpy(clip.astype(np.float32)))
        words.append(w)
    return clips, torch.tensor(words)


class LipNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(POINTS, 128)
        self.rnn = nn.GRU(128, 192, batch_first=True)
        self.head = nn.Linear(192, WORDS)

    def forward(self, x, lengths):
        h, _ = self.rnn(torch.relu(self.front(x)))
        steps = torch.arange(x.shape[1])
        mask = (steps[None] < lengths[:, None]).float()[..., None]
        return self.head((h * mask).sum(1) / mask.sum(1))


def my_clips(clips, rank, world):
    order = sorted(range(len(clips)), key=lambda i: len(clips[i]), reverse=True)
    share = len(order) // world
    return order[rank * share:(rank + 1) * share]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    clips, words = record(np.random.default_rng(3))
    net = DistributedDataParallel(LipNet())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    mine = my_clips(clips, rank, world)
    groups = [mine[k:k + BATCH] for k in range(0, len(mine), BATCH)]
    for epoch in range(EPOCHS):
        turns = np.random.default_rng(100 + epoch).permutation(len(groups))
        tally = torch.zeros(3)
        for t in turns:
            group = groups[t]
            x = nn.utils.rnn.pad_sequence([clips[i] for i in group], batch_first=True)
            lengths = torch.tensor([len(clips[i]) for i in group])
            y = words[group]
            logits = net(x, lengths)
            loss = nn.functional.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tally += torch.tensor([loss.item(), (logits.argmax(1) == y).float().mean().item(), 1.0])
        dist.all_reduce(tally)
        if rank == 0:
            print(f"epoch {epoch} loss {tally[0] / tally[2]:.4f} words right {tally[1] / tally[2]:.3f}",
                  flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
