"""Write JPEG images: python feed_images.py FOLDER COUNT."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

folder, count = Path(sys.argv[1]), int(sys.argv[2])
folder.mkdir(parents=True)
rng = np.random.default_rng(0)
for number in range(count):
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8))
    smooth = np.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC)).astype(int)
    noisy = (smooth + rng.integers(-12, 12, smooth.shape)).clip(0, 255).astype(np.uint8)
    Image.fromarray(noisy).save(folder / f"{number:04d}.jpg", quality=90)
