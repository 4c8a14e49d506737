"""Two-layer ocean box model with a run log."""
import logging
import os
import sys
import tempfile
import numpy as np

np.set_printoptions(threshold=sys.maxsize, precision=5)


def main():
    with tempfile.TemporaryDirectory() as d:
        logging.basicConfig(filename=os.path.join(d, "model.log"), level=logging.INFO,
                            format="%(asctime)s %(levelname)s %(message)s")
        log = logging.getLogger("ocean")
        rng = np.random.default_rng(0)
        t = rng.normal(10, 1, (40, 60))
        for step in range(1500):
            for _ in range(60):
                lap = np.roll(t, 1, 0) + np.roll(t, -1, 0) + np.roll(t, 1, 1) + np.roll(t, -1, 1) - 4 * t
                t = t + 0.1 * lap + 0.01 * np.sin(t)
            if step % 4 == 0:
                log.debug("step %d field\n%s", step, t)
            if step % 150 == 0:
                print(step, t.mean(), flush=True)


if __name__ == "__main__":
    main()
