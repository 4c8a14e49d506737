"""
verdict: same
stack:
  summarise("scenes", "coast.geojson")
  land_tiles(folder, coast)
  coastline(vector_file)
  unary_union([shape(f["geometry"]).buffer(0) for f in features])
call: coastline(vector_file)
loop: for name in sorted(os.listdir(directory))
why: inside the generator the union of the same coast polygons is made again for each tile
"""
import json
import os

import numpy as np
import rasterio
from rasterio.features import geometry_mask
from shapely.geometry import box, shape
from shapely.ops import unary_union


def coastline(path):
    with open(path) as handle:
        features = json.load(handle)["features"]
    return unary_union([shape(f["geometry"]).buffer(0) for f in features])


def land_tiles(directory, vector_file):
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".tif"):
            continue
        with rasterio.open(os.path.join(directory, name)) as tile:
            land = coastline(vector_file).intersection(box(*tile.bounds))
            if land.is_empty:
                continue
            red, nir = tile.read(1).astype(float), tile.read(2).astype(float)
            inside = geometry_mask([land], red.shape, tile.transform, invert=True)
        yield name, red, nir, inside


def summarise(folder, coast):
    table = {}
    for name_of_tile, red, nir, inside in land_tiles(folder, coast):
        ndvi = (nir - red) / np.maximum(nir + red, 1e-6)
        table[name_of_tile] = float(ndvi[inside].mean())
    return table


if __name__ == "__main__":
    for key, value in summarise("scenes", "coast.geojson").items():
        print(key, round(value, 3))
