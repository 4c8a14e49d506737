# Data-parallel keyword spotting, launched by torchrun (see ddp_speech.sh)
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def clips(rank):
    # utterances come sorted by length in the corpus, each rank takes its half
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(20, 220, (240,), generator=g).sort().values
    mine = lengths[rank * 120:(rank + 1) * 120]
    order = torch.randperm(120, generator=g)
    for length in mine[order]:
        yield torch.randn(32, int(length), 24), torch.randint(0, 12, (32,))


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(24, 64, batch_first=True)
        self.out = nn.Linear(64, 12)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = DDP(Spotter())
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(2):
        for k, (x, y) in enumerate(clips(rank)):
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and k % 30 == 0:
                print(epoch, k, loss.item(), flush=True)
    dist.destroy_process_group()
