"""Many digits of Euler's number by binary splitting, and a look at their statistics."""
import collections
import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

DIGITS = 8_000_000
KNOWN_START = "27182818284590452353602874713526624977572470936999"


def terms_needed(digits):
    """Smallest number of terms whose factorial has enough digits."""
    low, high = 10, 10 * digits
    while low < high:
        middle = (low + high) // 2
        if math.lgamma(middle + 1) / math.log(10) > digits + 20:
            high = middle
        else:
            low = middle + 1
    return low


def leaf(first, last):
    """Sum and product of a short range with machine-near integers."""
    p, q = 0, 1
    for k in range(last, first, -1):
        p += q
        q *= k
    return Decimal(p), Decimal(q)


def split(first, last):
    """Numerator and denominator of the series between two terms."""
    if last - first <= 120:
        return leaf(first, last)
    middle = (first + last) // 2
    p1, q1 = split(first, middle)
    p2, q2 = split(middle, last)
    return p1 * q2 + p2, q1 * q2


def euler_digits(digits):
    context = Context(prec=digits + 1000, Emax=MAX_EMAX, Emin=MIN_EMIN)
    with localcontext(context):
        p, q = split(0, terms_needed(digits))
        value = 1 + p / q
    return str(value).replace(".", "")[:digits]


def chi_square(counts, expected):
    return sum((n - expected) ** 2 / expected for n in counts)


def longest_run(text):
    best, best_digit, run = 0, "", 0
    previous = ""
    for digit in text:
        run = run + 1 if digit == previous else 1
        previous = digit
        if run > best:
            best, best_digit = run, digit
    return best, best_digit


def main():
    text = euler_digits(DIGITS)
    assert text.startswith(KNOWN_START)
    single = collections.Counter(text)
    pairs = collections.Counter(text[k:k + 2] for k in range(0, len(text) - 1, 2))
    run, digit = longest_run(text)
    print("digits:", len(text))
    print("last ten:", text[-10:])
    print("chi-square of digits: %.2f (9 degrees of freedom)" % chi_square(
        [single[d] for d in "0123456789"], len(text) / 10))
    print("chi-square of pairs: %.1f (99 degrees of freedom)" % chi_square(
        [pairs["%02d" % k] for k in range(100)], sum(pairs.values()) / 100))
    print("longest run: %d times %s" % (run, digit))


if __name__ == "__main__":
    main()
