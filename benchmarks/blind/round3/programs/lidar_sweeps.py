"""Pack the sweeps of a cloud lidar into Parquet and fit a few profiles to them.

The instrument writes one sweep at a time.  Several passes over the file follow,
each with the columns it needs.
"""
import os
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import ndimage

SWEEPS = 2_200
GATES = 240
SCHEMA = pa.schema(
    [
        ("sweep", pa.int32()),
        ("azimuth", pa.float32()),
        ("range", pa.float32()),
        ("backscatter", pa.float32()),
        ("depol", pa.float32()),
        ("doppler", pa.float32()),
        ("snr", pa.float32()),
        ("width", pa.float32()),
    ]
)


def sweeps(seed=77):
    rng = np.random.default_rng(seed)
    gate = np.arange(GATES, dtype=np.float32) * 30.0
    for k in range(SWEEPS):
        base = 900.0 + 300.0 * np.sin(k / 140.0)
        cloud = np.exp(-0.5 * ((gate - base) / 120.0) ** 2)
        noise = rng.standard_normal((5, GATES)).astype(np.float32)
        yield {
            "sweep": np.full(GATES, k, dtype=np.int32),
            "azimuth": np.full(GATES, (k * 7.5) % 360.0, dtype=np.float32),
            "range": gate,
            "backscatter": (0.2 + 3.0 * cloud + 0.1 * noise[0]).astype(np.float32),
            "depol": (0.05 + 0.2 * cloud + 0.02 * noise[1]).astype(np.float32),
            "doppler": (2.0 * np.sin(np.radians(k * 7.5)) + 0.4 * noise[2]).astype(np.float32),
            "snr": (12.0 * cloud + 2.0 + noise[3]).astype(np.float32),
            "width": np.abs(0.6 + 0.2 * noise[4]).astype(np.float32),
        }


def pack(path):
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for sweep in sweeps():
            writer.write_table(pa.table(sweep, schema=SCHEMA))


def column_pass(path, names):
    table = pq.read_table(path, columns=names)
    return [table[name].to_numpy() for name in names]


def wind_profile(path, low, high):
    azimuth, gate, doppler, snr = column_pass(path, ["azimuth", "range", "doppler", "snr"])
    keep = (gate >= low) & (gate < high) & (snr > 1.0)
    angle = np.radians(azimuth[keep].astype(float))
    design = np.column_stack([np.sin(angle), np.cos(angle), np.ones(angle.size)])
    fit = np.linalg.lstsq(design, doppler[keep].astype(float), rcond=None)[0]
    return float(np.hypot(fit[0], fit[1]))


def texture(path, name, sweeps):
    """Median filter over a few sweeps; how much of the field is left over."""
    (field,) = column_pass(path, [name])
    field = field.reshape(SWEEPS, GATES)
    smooth = ndimage.median_filter(field, size=(sweeps, 7))
    return float((field - smooth).std())


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        path = os.path.join(tmp, "sweeps.parquet")
        pack(path)
        print(f"{pq.read_metadata(path).num_rows} gates of {SWEEPS} sweeps")

        winds = [wind_profile(path, low, low + 450.0) for low in range(0, 7200, 450)]
        print("wind  " + " ".join(f"{w:.3f}" for w in winds))
        for name in ("backscatter", "depol", "snr", "width"):
            rough = [texture(path, name, k) for k in (3, 5, 7, 9)]
            print(f"{name:>12} " + " ".join(f"{r:.4f}" for r in rough))


if __name__ == "__main__":
    main()
