"""Ridge regression of soil carbon on random features of 40 spectral bands."""
import os
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1_800_000
BANDS = 40
FEATURES = 640
BATCH = 65_536


def write_survey(path, rng):
    names = [f"b{k:02d}" for k in range(BANDS)]
    schema = pa.schema([(n, pa.float32()) for n in names] + [("carbon", pa.float32())])
    direction = rng.normal(0, 0.3, BANDS).astype(np.float32)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as out:
        for first in range(0, ROWS, 200_000):
            n = min(200_000, ROWS - first)
            bands = rng.standard_normal((BANDS, n), dtype=np.float32)
            carbon = np.tanh(direction @ bands) + 0.1 * rng.standard_normal(n, dtype=np.float32)
            columns = [pa.array(b) for b in bands] + [pa.array(carbon.astype(np.float32))]
            out.write_table(pa.Table.from_arrays(columns, schema=schema))


def batches(path):
    for batch in pq.ParquetFile(path).iter_batches(batch_size=BATCH):
        table = np.stack([c.to_numpy() for c in batch.columns])
        yield table[:BANDS].T, table[BANDS]


def main():
    rng = np.random.default_rng(1877)
    w = rng.normal(0, 0.25, (BANDS, FEATURES)).astype(np.float32)
    phase = rng.uniform(0, 2 * np.pi, FEATURES).astype(np.float32)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "survey.parquet")
        write_survey(path, rng)
        gram = np.zeros((FEATURES, FEATURES))
        right = np.zeros(FEATURES)
        total = 0.0
        n = 0
        for x, y in batches(path):
            z = np.cos(x @ w + phase)
            gram += z.T @ z
            right += z.T @ y
            total += float(np.square(y, dtype=np.float64).sum())
            n += len(y)
    coef = np.linalg.solve(gram + 1e-2 * n * np.eye(FEATURES), right)
    residual = total - 2 * coef @ right + coef @ gram @ coef
    print(f"rows {n}  explained {1 - residual / total:.4f}  largest weight {np.abs(coef).max():.3f}")


if __name__ == "__main__":
    main()
