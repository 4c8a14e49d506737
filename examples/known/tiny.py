"""Fit a line to a hundred points with NumPy: importing NumPy takes longer than the work.

Neither cores nor GPUs matter here, and `teho compare` should say why.

    teho compare --on cpu:1,cpu:all -- python examples/known/tiny.py
"""

from __future__ import annotations

import numpy as np


def main() -> None:
    """Fit y = 3 x + 2, with a little noise."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 100)
    y = 3.0 * x + 2.0 + rng.normal(0.0, 0.01, x.size)
    design = np.column_stack([x, np.ones_like(x)])
    slope, offset = np.linalg.lstsq(design, y, rcond=None)[0]
    print(f"slope {slope:.4f}, offset {offset:.4f}")


if __name__ == "__main__":
    main()
