"""Is 2**(p-1) * (2**p - 1) a perfect number? Lucas-Lehmer test of one exponent."""
import sys

EXPONENT = 40_009
CHECK_EVERY = 5_000


def is_prime(n):
    if n < 2 or n % 2 == 0:
        return n == 2
    divisor = 3
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 2
    return True


def fold(value, p, mersenne):
    """value modulo 2**p - 1 without division."""
    while value > mersenne:
        value = (value & mersenne) + (value >> p)
    return 0 if value == mersenne else value


def lucas_lehmer(p):
    """The residue after p - 2 squarings, and a few check values on the way."""
    mersenne = (1 << p) - 1
    s = 4
    marks = []
    for step in range(p - 2):
        s = fold(s * s, p, mersenne) - 2
        if s < 0:
            s += mersenne
        if step % CHECK_EVERY == CHECK_EVERY - 1:
            marks.append(s & 0xFFFF)
    return s, marks


def self_test():
    known = {3, 5, 7, 13, 17, 19, 31, 61, 89, 107, 127, 521, 607}
    for p in range(3, 620):
        if is_prime(p):
            assert (lucas_lehmer(p)[0] == 0) == (p in known), p


def main():
    self_test()
    print("exponent", EXPONENT, "is prime:", is_prime(EXPONENT))
    residue, marks = lucas_lehmer(EXPONENT)
    print("check values", " ".join("%04x" % m for m in marks))
    print("perfect number" if residue == 0 else "no perfect number, residue %016x" % (residue & (2 ** 64 - 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
