"""Two workshops train one model of harp string tension without sharing their records."""
import torch
import torch.distributed as dist
from torch import nn

INPUTS = 128
ROUNDS = 360
LOCAL_STEPS = 2
BATCH = 32


def make_records(rank, count):
    gen = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(count, INPUTS, generator=gen) + 0.2 * rank
    weight = torch.randn(INPUTS, 8, generator=torch.Generator().manual_seed(1)) / 11
    y = torch.tanh(x @ weight).sum(1, keepdim=True)
    return x, y + 0.05 * torch.randn(count, 1, generator=gen)


def make_net():
    return nn.Sequential(
        nn.Linear(INPUTS, 1024), nn.GELU(),
        nn.Linear(1024, 1024), nn.GELU(),
        nn.Linear(1024, 1),
    )


@torch.no_grad()
def share_weights(net, world):
    gathered = [None] * world
    dist.all_gather_object(gathered, net.state_dict())
    merged = {}
    for name in gathered[0]:
        merged[name] = torch.stack([state[name] for state in gathered]).mean(0)
    net.load_state_dict(merged)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(2)
    net = make_net()
    x, y = make_records(rank, 8000)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    gen = torch.Generator().manual_seed(rank)
    for turn in range(ROUNDS):
        total = torch.zeros(1)
        for _ in range(LOCAL_STEPS):
            pick = torch.randint(0, len(x), (BATCH,), generator=gen)
            loss = nn.functional.mse_loss(net(x[pick]), y[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        share_weights(net, world)
        if turn % 60 == 59:
            dist.all_reduce(total)
            if rank == 0:
                print(f"round {turn + 1}: loss {total.item() / (LOCAL_STEPS * world):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
