"""
verdict: set
stack:
  run(Path(args.dem), args.species)
  suitability(tile, limits)
  terrain(tile_path)
  generic_filter(dem, np.std, size=7)
call: terrain(tile_path)
loop: for species in species_table
why: slope and ruggedness of each tile do not depend on the species, but are computed again for each species
"""
import argparse
import json
from pathlib import Path

import numpy as np
import rasterio
from scipy.ndimage import generic_filter


def terrain(source):
    with rasterio.open(source) as raster:
        dem = raster.read(1).astype(float)
        cell = raster.res[0]
    gy, gx = np.gradient(dem, cell)
    slope = np.degrees(np.arctan(np.hypot(gx, gy)))
    rugged = generic_filter(dem, np.std, size=7)
    return dem, slope, rugged


def suitability(tile_path, bounds):
    dem, slope, rugged = terrain(tile_path)
    fits = (dem >= bounds["min_height"]) & (dem <= bounds["max_height"])
    fits &= slope <= bounds.get("max_slope", 90)
    fits &= rugged >= bounds.get("min_rugged", 0)
    return fits.mean()


def run(folder, table):
    with open(table) as handle:
        species_table = json.load(handle)
    for species in species_table:
        limits = species["limits"]
        share = []
        for tile in sorted(folder.glob("*.tif")):
            share.append(suitability(tile, limits))
        print(species["name"], f"{np.mean(share):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("dem")
    parser.add_argument("--species", default="species.json")
    args = parser.parse_args()
    run(Path(args.dem), args.species)
