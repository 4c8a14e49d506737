"""Follow the logistic map step by step: each value needs the one before, so one core is enough.

However many cores there are, `teho compare` should find that they make no difference.

    teho compare --on cpu:1,cpu:all -- python examples/known/serial.py
"""

from __future__ import annotations

import argparse


def main() -> None:
    """Follow it from 0.5."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000_000)
    value = 0.5
    for _ in range(parser.parse_args().steps):
        value = 3.7 * value * (1.0 - value)
    print(f"the last value is {value:.12f}")


if __name__ == "__main__":
    main()
