"""Two ranks, equal shards, one all-reduce per step. bash ddp_weather.sh"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    net = DDP(nn.Sequential(nn.Conv2d(4, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
                            nn.Conv2d(24, 1, 1)))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    field = torch.randn(200, 4, 48, 48)
    for step in range(230):
        i = torch.randint(0, 200, (16,))
        loss = (net(field[i])[:, 0] - field[i, 0]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 30 == 0:
            print(step, loss.item(), flush=True)
    dist.destroy_process_group()
