"""Learn to name cave chambers from their echo signatures on two ranks."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TAPS, CHAMBERS, BATCH, STEPS = 400, 500, 128, 450


def signature_bank():
    rng = np.random.default_rng(11)
    decay = np.exp(-np.arange(TAPS) / 120.0)
    return (rng.normal(0, 1, (CHAMBERS, TAPS)) * decay).astype(np.float32)


def draw(bank, rng):
    label = rng.integers(0, CHAMBERS, BATCH)
    echo = bank[label] + rng.normal(0, 0.6, (BATCH, TAPS)).astype(np.float32)
    return torch.from_numpy(echo), torch.from_numpy(label)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    rng = np.random.default_rng(100 + rank)
    bank = signature_bank()
    model = DistributedDataParallel(nn.Sequential(
        nn.Linear(TAPS, 600), nn.ReLU(),
        nn.Linear(600, 400), nn.ReLU(),
        nn.Linear(400, CHAMBERS)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    seen, right, in_top5 = 0, 0, 0
    for step in range(1, STEPS + 1):
        echo, label = draw(bank, rng)
        scores = model(echo)
        loss = nn.functional.cross_entropy(scores, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        mine = [{"chamber": int(c), "scores": s.tolist()}
                for c, s in zip(label, scores.detach())]
        parts = [None] * world
        dist.all_gather_object(parts, mine)
        for record in (r for part in parts for r in part):
            ranked = np.argsort(record["scores"])[::-1]
            seen += 1
            right += int(ranked[0] == record["chamber"])
            in_top5 += int(record["chamber"] in ranked[:5])

        if step % 90 == 0:
            if rank == 0:
                print(f"step {step}: loss {loss.item():.3f} "
                      f"top1 {right / seen:.3f} top5 {in_top5 / seen:.3f}", flush=True)
            seen, right, in_top5 = 0, 0, 0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
