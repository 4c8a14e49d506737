"""
verdict: none
stack:
  power_iteration(sorted(glob("/archive/cesm/*.zarr")), modes=12)
  anomalies(shard)
  dataset["TS"].load()
why: a shard has 60 GB and the whole set 4 TB, so the blocks cannot be kept and each pass has to read them again
"""
import gc
from glob import glob

import numpy as np
import xarray as xr

# each store holds about 60 GB of float32; a node has 96 GB, so at most one is in memory


def anomalies(store):
    dataset = xr.open_zarr(store)
    field = dataset["TS"].load()
    monthly = field.groupby("time.month")
    block = (monthly - monthly.mean("time")).values
    dataset.close()
    return block.reshape(block.shape[0], -1)


def power_iteration(shards, modes, passes=15):
    points = xr.open_zarr(shards[0])["TS"][0].size
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((points, modes)))[0]
    for sweep in range(passes):
        product = np.zeros_like(basis)
        for shard in shards:
            block = anomalies(shard)
            product += block.T @ (block @ basis)
            del block
            gc.collect()
        basis, triangle = np.linalg.qr(product)
        print(sweep, np.abs(np.diag(triangle)))
    return basis


if __name__ == "__main__":
    eofs = power_iteration(sorted(glob("/archive/cesm/*.zarr")), modes=12)
    np.save("eofs.npy", eofs)
