"""Two-process data-parallel run on a table. Start with: bash ddp_tabular.sh"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

ACCUM = 8


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    net = DDP(nn.Sequential(nn.Linear(64, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 1)))
    opt = torch.optim.SGD(net.parameters(), 1e-3)
    x = torch.randn(4000, 64)
    y = x.sum(1, keepdim=True)
    micro = 0
    for step in range(60):
        opt.zero_grad()
        for _ in range(ACCUM):
            i = torch.randint(0, 4000, (48,))
            import contextlib
            with net.no_sync() if _ < ACCUM - 1 else contextlib.nullcontext():
                loss = (net(x[i]) - y[i]).square().mean() / ACCUM
                loss.backward()
            micro += 1
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(step, loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
