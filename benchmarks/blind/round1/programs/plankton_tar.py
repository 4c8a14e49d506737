"""Measure every plankton image of a tarball, in the order of the archive."""
import io
import os
import tarfile
import tempfile
import numpy as np
from scipy import ndimage

with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "cruise.tar.gz")
    rng = np.random.default_rng(0)
    with tarfile.open(path, "w:gz", compresslevel=1) as t:
        for i in range(260):
            img = ndimage.gaussian_filter(rng.random((200, 200)), 3)
            raw = (img * 255).astype(np.uint8).tobytes()
            info = tarfile.TarInfo(f"img{i:05d}.raw")
            info.size = len(raw)
            t.addfile(info, io.BytesIO(raw))
    sizes = []
    with tarfile.open(path, "r|gz") as t:
        for k, m in enumerate(t):
            img = np.frombuffer(t.extractfile(m).read(), np.uint8).reshape(200, 200).astype(float)
            bg = ndimage.median_filter(img, 9)
            lab, n = ndimage.label(img > bg + 1)
            sizes.append(np.bincount(lab.ravel())[1:].mean() if n else 0)
            if k % 40 == 0:
                print(k, n, flush=True)
    print("mean area", np.mean(sizes))
