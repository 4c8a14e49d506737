"""Drifting snow flux from a mast: one pass over a large Parquet file trains a small network."""
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

BLOCKS, ROWS, CHANNELS = 10, 400000, 12
BATCH = 4096


def write_mast(path):
    rng = np.random.default_rng(35)
    names = [f"channel_{i:02d}" for i in range(CHANNELS)] + ["flux"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False) as writer:
        for _ in range(BLOCKS):
            air = rng.standard_normal((CHANNELS, ROWS), dtype=np.float32)
            wind = np.abs(air[0] + 0.5 * air[1])
            flux = np.log1p(np.maximum(wind - 0.8, 0) ** 3) + 0.1 * air[2] * wind
            columns = [pa.array(values) for values in (*air, flux.astype(np.float32))]
            writer.write_table(pa.table(columns, schema=schema))


def main():
    torch.manual_seed(35)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "mast.parquet"
    write_mast(path)
    print(f"{path.stat().st_size / 1e6:.0f} MB")
    net = nn.Sequential(nn.Linear(CHANNELS, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for part in pq.ParquetFile(path).iter_batches(batch_size=BATCH):
        columns = np.stack([column.to_numpy() for column in part.columns])
        values = torch.from_numpy(columns).T
        guess = net(values[:, :CHANNELS]).squeeze(1)
        loss = nn.functional.mse_loss(guess, values[:, CHANNELS])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    for piece in losses.chunk(4):
        print(f"{len(piece)} batches, mean loss {piece.mean():.5f}")
    folder.cleanup()


if __name__ == "__main__":
    main()
