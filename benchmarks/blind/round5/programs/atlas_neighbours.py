"""For every cell of a new tissue sample, the ten nearest cells of an atlas, exactly.

The result is the reference for approximate indexes, so every distance is computed.
"""
import torch

ATLAS, SAMPLE, GENES, NEAREST = 100_000, 32_768, 192, 10
BLOCK = 1024
TYPES = 40


def cells(draw):
    """Expression profiles of the atlas and the sample, and the cell type of both."""
    centre = torch.randn(TYPES, GENES, generator=draw)
    kinds, profiles = [], []
    for count, spread in ((ATLAS, 0.9), (SAMPLE, 1.1)):
        kind = torch.randint(0, TYPES, (count,), generator=draw)
        kinds.append(kind)
        profiles.append(centre[kind] + spread * torch.randn(count, GENES, generator=draw))
    return profiles, kinds


def nearest(sample, atlas):
    """Indices and squared distances of the nearest atlas cells, block by block."""
    size = (atlas * atlas).sum(1)
    turned = atlas.T.contiguous()
    index = torch.empty(len(sample), NEAREST, dtype=torch.long)
    distance = torch.empty(len(sample), NEAREST)
    gap = torch.empty(BLOCK, len(atlas))
    for start in range(0, len(sample), BLOCK):
        block = sample[start:start + BLOCK]
        torch.addmm(size[None, :], block, turned, alpha=-2.0, out=gap)
        found = gap.topk(NEAREST, dim=1, largest=False)
        index[start:start + BLOCK] = found.indices
        distance[start:start + BLOCK] = found.values + (block * block).sum(1, keepdim=True)
    return index, distance


def label(index, kind):
    votes = torch.zeros(len(index), TYPES)
    votes.scatter_add_(1, kind[index], torch.ones(index.shape))
    share, winner = votes.max(1)
    return winner, share / NEAREST


def main():
    draw = torch.Generator().manual_seed(50)
    (atlas, sample), (atlas_kind, sample_kind) = cells(draw)
    index, distance = nearest(sample, atlas)
    pairs = len(sample) * len(atlas) / 1e9
    print(f"{pairs:.2f} billion distances, first neighbour at {distance[:, 0].sqrt().mean():.2f}")
    winner, share = label(index, atlas_kind)
    right = (winner == sample_kind).float().mean().item()
    print(f"cell types carried over: {right:.3f} right, mean agreement {share.mean():.3f}")
    popular = torch.bincount(index.flatten(), minlength=ATLAS)
    print(f"the most chosen atlas cell serves {int(popular.max())} cells")


if __name__ == "__main__":
    main()
