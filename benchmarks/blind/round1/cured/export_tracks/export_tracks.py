# Export simulated tracks as gzipped json lines for the web viewer
import gzip
import json
import math
import os
import random
import tempfile

r = random.Random(1)


def track(k):
    x = y = 0.0
    pts = []
    for i in range(150):
        a = r.gauss(0, 0.3) + k
        x, y = x + math.cos(a), y + math.sin(a)
        pts.append([round(x, 4), round(y, 4)])
    return {"id": k, "kind": "plaice" if k % 2 else "cod", "points": pts}


with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "tracks.jsonl.gz")
    with gzip.open(path, "wt", compresslevel=1) as f:
        for k in range(26000):
            f.write(json.dumps(track(k % 40)) + "\n")
            if k % 2000 == 0:
                print(k, flush=True)
    print("size", os.path.getsize(path))
