"""Chain of digests over a notary's deeds: every seal covers the deed and the seal before it."""
import hashlib
import os
import random
import tempfile

DEEDS = 48
DEED_BYTES = 1 << 20
YEARS = 125


def write_deeds(folder):
    rng = random.Random(1512)
    names = []
    for number in range(DEEDS):
        name = os.path.join(folder, f"deed_{number:02d}.bin")
        with open(name, "wb") as f:
            f.write(rng.randbytes(DEED_BYTES))
        names.append(name)
    return names


def read_deeds(names):
    deeds = []
    for name in names:
        with open(name, "rb") as f:
            deeds.append(f.read())
    return deeds


def seal(previous, year, deed):
    digest = hashlib.sha3_256(previous)
    digest.update(year.to_bytes(4, "big"))
    digest.update(deed)
    return digest.digest()


def chain(deeds):
    last = b"\0" * 32
    seals = []
    for year in range(1512, 1512 + YEARS):
        for deed in deeds:
            last = seal(last, year, deed)
        seals.append(last)
    return seals


def balance(seals):
    ones = sum(int.from_bytes(s, "big").bit_count() for s in seals)
    return ones / (256 * len(seals))


def main():
    with tempfile.TemporaryDirectory() as folder:
        deeds = read_deeds(write_deeds(folder))
    seals = chain(deeds)
    sealed = DEEDS * DEED_BYTES * YEARS / 1e9
    print(f"{DEEDS} deeds sealed for {YEARS} years, {sealed:.2f} GB")
    print(f"first seal {seals[0].hex()[:16]}, last seal {seals[-1].hex()[:16]}")
    print(f"share of ones {balance(seals):.4f}")


if __name__ == "__main__":
    main()
