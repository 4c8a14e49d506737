"""
verdict: none
stack:
  mosaic(tiles_of((5.9, 45.8, 10.5, 47.8), zoom=11))
  download(template.format(z=z, x=x, y=y))
  requests.get(url, timeout=20)
why: the request is repeated only after an error, and the loop ends with the first answer
"""
import io
import time

import mercantile
import numpy as np
import requests
from PIL import Image

TEMPLATE = "https://tiles.example.org/dem/{z}/{x}/{y}.png"


def download(url, attempts=6):
    for attempt in range(attempts):
        try:
            answer = requests.get(url, timeout=20)
            answer.raise_for_status()
            return answer.content
        except requests.RequestException:
            time.sleep(2**attempt)
    return None


def tiles_of(bounds, zoom):
    return [(t.z, t.x, t.y) for t in mercantile.tiles(*bounds, zooms=zoom)]


def mosaic(tiles, template=TEMPLATE):
    xs = sorted({t[1] for t in tiles})
    ys = sorted({t[2] for t in tiles})
    canvas = np.zeros((256 * len(ys), 256 * len(xs)), dtype=np.float32)
    for z, x, y in tiles:
        content = download(template.format(z=z, x=x, y=y))
        if content is None:
            continue
        rgb = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), dtype=np.float32)
        height = rgb @ np.array([256.0, 1.0, 1 / 256]) - 32768
        row, col = ys.index(y) * 256, xs.index(x) * 256
        canvas[row:row + 256, col:col + 256] = height
    return canvas


if __name__ == "__main__":
    np.save("dem.npy", mosaic(tiles_of((5.9, 45.8, 10.5, 47.8), zoom=11)))
