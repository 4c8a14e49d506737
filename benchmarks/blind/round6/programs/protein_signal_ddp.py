"""Signal-peptide prediction from protein sequences, data-parallel on two ranks."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

N_PROTEINS = 2800
BATCH = 32
EPOCHS = 2
WIDTH = 96


def make_proteins(rng):
    lengths = np.clip(rng.lognormal(np.log(130), 0.7, N_PROTEINS), 40, 450).astype(int)
    proteins = []
    for length in lengths:
        residues = rng.integers(1, 21, length)
        signal = rng.random() < 0.5
        if signal:
            start = int(rng.integers(2, 8))
            residues[start : start + 12] = rng.choice([9, 10, 11, 18], 12)
        proteins.append((residues, int(signal)))
    return proteins


def make_batches(proteins):
    """Neighbours in length share a batch, so that little padding is needed."""
    ordered = sorted(proteins, key=lambda entry: len(entry[0]))
    batches = []
    for first in range(0, len(ordered) - BATCH + 1, BATCH):
        group = ordered[first : first + BATCH]
        tokens = np.zeros((BATCH, max(len(r) for r, _ in group)), np.int64)
        for row, (residues, _) in enumerate(group):
            tokens[row, : len(residues)] = residues
        labels = torch.tensor([float(label) for _, label in group])
        batches.append((torch.from_numpy(tokens), labels))
    return batches[: len(batches) // 2 * 2]


class SignalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(21, WIDTH, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 5, padding=2) for _ in range(3))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, tokens):
        z = self.embed(tokens).transpose(1, 2)
        for conv in self.convs:
            z = z + torch.relu(conv(z))
        return self.out(z.amax(2)).squeeze(1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    batches = make_batches(make_proteins(np.random.default_rng(21)))
    share = len(batches) // world
    mine = batches[rank * share : (rank + 1) * share]
    model = DistributedDataParallel(SignalNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(share)
        stats = torch.zeros(2)
        for number in order:
            tokens, labels = mine[number]
            logit = model(tokens)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits = ((logit > 0).float() == labels).float().mean()
            stats += torch.stack([loss.detach(), hits])
        dist.all_reduce(stats)
        if rank == 0:
            loss, accuracy = (stats / (share * world)).tolist()
            print(f"epoch {epoch}  loss {loss:.4f}  accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
