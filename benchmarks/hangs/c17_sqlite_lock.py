"""Writes each step into a SQLite data base; another process keeps it locked for 40 s in between."""
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy as np

BACKUP = r"""
import sqlite3, sys, time
time.sleep(40)
db = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
rows = db.execute("SELECT COUNT(*) FROM steps").fetchone()
time.sleep(40)
db.execute("COMMIT")
db.close()
"""


def main():
    rng = np.random.default_rng(0)
    w = np.zeros(50)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "runs.db")
        db = sqlite3.connect(path, timeout=300)
        db.execute("PRAGMA synchronous=OFF")
        db.execute("CREATE TABLE steps (n INTEGER PRIMARY KEY, loss REAL)")
        db.commit()
        backup = subprocess.Popen([sys.executable, "-c", BACKUP, path])
        t0, n = time.monotonic(), 0
        while time.monotonic() - t0 < 130:
            x = rng.standard_normal((32, 50))
            err = x @ w - x[:, :4].sum(1)
            w -= 0.01 * x.T @ err / 32
            n += 1
            with db:
                db.execute("INSERT INTO steps VALUES (?, ?)", (n, float((err ** 2).mean())))
            if n % 100 == 0:
                print(f"{time.monotonic() - t0:6.1f} s  step {n}  loss {(err ** 2).mean():.5f}", flush=True)
            time.sleep(0.03)
        backup.wait()
        print("rows", db.execute("SELECT COUNT(*) FROM steps").fetchone()[0])
        db.close()


if __name__ == "__main__":
    main()
