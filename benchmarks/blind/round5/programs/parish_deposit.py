"""Pack parish registers for the long-term deposit.

The archive asks for one xz file per register, packed as small as possible,
and a checksum of the plain text.  Registers are packed two at a time and
read back for proof before they are accepted.
"""
import hashlib
import lzma
import multiprocessing as mp
import os
import random
import tempfile

REGISTERS = 14
ENTRIES = 48_000
NAMES = ("anna johann maria peter katharina georg barbara michael margaretha "
         "jakob elisabeth andreas ursula martin christina thomas").split()
TRADES = "miller smith weaver farmer shepherd tailor cooper carter tanner".split()


def register_text(number):
    """Plain text of one register."""
    rng = random.Random(number)
    lines = []
    for entry in range(ENTRIES):
        year = 1640 + number * 9 + entry // 5500
        lines.append(
            f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d};"
            f"{rng.choice(NAMES)} {rng.choice(NAMES)};{rng.choice(TRADES)};"
            f"folio {entry // 14};witness {rng.choice(NAMES)} of farm "
            f"{rng.randint(1, 900)};fee {rng.randint(2, 96)} kr")
    return "\n".join(lines).encode()


def pack(task):
    """Write one register as xz and prove that it can be read back."""
    number, folder = task
    text = register_text(number)
    path = os.path.join(folder, f"register_{number:02d}.xz")
    with lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as f:
        f.write(text)
    digest = hashlib.sha256(text).hexdigest()
    with lzma.open(path, "rb") as f:
        again = hashlib.sha256(f.read()).hexdigest()
    if again != digest:
        raise RuntimeError(f"register {number} is damaged")
    return number, len(text), os.path.getsize(path), digest


def main():
    with tempfile.TemporaryDirectory() as folder:
        tasks = [(n, folder) for n in range(REGISTERS)]
        plain = packed = 0
        manifest = hashlib.sha256()
        with mp.Pool(2) as pool:
            for number, size, small, digest in pool.imap(pack, tasks):
                plain += size
                packed += small
                manifest.update(f"{number} {digest}\n".encode())
    print(f"registers: {REGISTERS}, plain {plain / 1e6:.2f} MB, "
          f"packed {packed / 1e6:.2f} MB")
    print(f"manifest: {manifest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
