"""Finds Fourier transforms of a length with a large prime factor, which the program may change.

cuFFT computes such lengths with Bluestein's algorithm: with transforms of more than twice the
length. If the program adds zeros up to this length, `n = a + b - 1`, it may as well add some more.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.constants import number_of
from teho.source.gpu_calls.call import GpuCall, InFile
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function
from teho.source.program import Place

__all__ = ["find_slow_lengths", "largest_factor"]

_TRANSFORM = lazy_pattern(
    r"(numpy|scipy|cupy|torch|jax\.numpy|cupyx\.scipy|scipy\.fftpack)(\.fft)?"
    r"\.(i?)(r?)fft(2|n)?"
)
_LARGE_FACTOR = 127
"""cuFFT has kernels for prime factors up to 127."""
_LONGEST = 1 << 40
_MODULES = {
    "cupy": "cupyx.scipy.fft",
    "cupyx": "cupyx.scipy.fft",
}
_ON_GPU = frozenset(("cupy", "cupyx", "jax", "torch"))


class _Transform(NamedTuple):
    """A call of a Fourier transform with a length that has a name."""

    call: ast.Call
    place: Place
    library: str
    is_inverse: bool
    is_real: bool


def find_slow_lengths(source: InFile) -> Iterator[GpuCall]:
    """Yield the first transform of each name with a slow length.

    A forward and an inverse transform must have the length, and the program must cut the result.

    Args:
        source: the file.
    """
    by_name: defaultdict[tuple[int, str], list[_Transform]] = defaultdict(list)
    for call, place, name in source.calls():
        match = _TRANSFORM.fullmatch(name)
        for length in _lengths(call, "n" if not match[5] else "s") if match else ():
            owner = _owner(length, place.function)
            if match and owner is not None:
                library = name.partition(".")[0]
                one = _Transform(call, place, library, bool(match[3]), bool(match[4]))
                by_name[id(owner.node), length].append(one)
    for (_, name), found in by_name.items():
        uses = sorted(found, key=lambda one: (one.call.lineno, one.call.col_offset))
        if any(one.is_inverse for one in uses) and not all(one.is_inverse for one in uses):
            yield from _of_name(name, uses, source)


def _lengths(call: ast.Call, word: str) -> list[str]:
    """Return the names of the lengths of a transform."""
    words = {word.arg: word.value for word in call.keywords}
    given = words.get(word, call.args[1] if len(call.args) > 1 else None)
    parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    return [one.id for one in parts if isinstance(one, ast.Name)]


def _owner(name: str, function: Function) -> Function | None:
    """Return the function that gives a name its only value."""
    found = assigned_value(name, function)
    return found[1] if found is not None else None


def _of_name(name: str, uses: list[_Transform], source: InFile) -> Iterator[GpuCall]:
    first = next(one for one in uses if not one.is_inverse)
    found = assigned_value(name, first.place.function)
    length = number_of(ast.Name(name, ast.Load()), first.place, source.purity)
    if found is None or length is None or not length.is_sure or not 1 < length.value < _LONGEST:
        return
    factor = largest_factor(int(length.value))
    if factor <= _LARGE_FACTOR or not all(_is_cut(one) for one in uses if one.is_inverse):
        return
    value, _ = found
    module = _MODULES.get(first.library, "scipy.fft")
    call = f"next_fast_len({ast.unparse(value)}, True)"
    words = {
        "name": name,
        "old": f"{name} = {ast.unparse(value)}",
        "new": f"{name} = {call}",
        "set": str(value.lineno),
        "import": f"from {module} import next_fast_len",
        "length": str(int(length.value)),
        "kind": "is a prime number" if factor == length.value else f"has the prime factor {factor}",
    }
    if first.library in _ON_GPU:
        yield GpuCall("slow_length_on_gpu", first.call, words)
    if first.library not in ("cupy", "cupyx"):
        is_cpu = first.library not in _ON_GPU
        for one in uses:
            yield GpuCall("slow_length" if is_cpu else "slow_length_on_cpu", one.call, words)


def _is_cut(transform: _Transform) -> bool:
    """Return whether the program uses only the begin of the result, up to a known place."""
    function = transform.place.function
    results = {
        target.id
        for node in function.nodes
        if isinstance(node, ast.Assign) and _contains(node.value, transform.call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for cut in function.nodes:
        if not isinstance(cut, ast.Subscript) or not isinstance(cut.ctx, ast.Load):
            continue
        is_own = _is_part(cut.value, transform.call)
        is_own |= isinstance(cut.value, ast.Name) and cut.value.id in results
        parts = cut.slice.elts if isinstance(cut.slice, ast.Tuple) else [cut.slice]
        ends = [one for one in parts if isinstance(one, ast.Slice) and one.upper is not None]
        if is_own and ends and all(_is_from_begin(one) for one in ends):
            return True
    return False


def _is_from_begin(cut: ast.Slice) -> bool:
    """Return whether a slice ends at a place that is counted from the begin."""
    begin, end = cut.lower, cut.upper
    negative = [isinstance(one, ast.UnaryOp) for one in (begin, end) if one is not None]
    return not any(negative)


def _is_part(node: ast.expr, call: ast.Call) -> bool:
    """Return whether an expression is the result of a call, perhaps `.real` of it."""
    while isinstance(node, (ast.Attribute, ast.Call)) and node is not call:
        inner = node.value if isinstance(node, ast.Attribute) else node.func
        node = inner
    return node is call


def _contains(node: ast.expr, call: ast.Call) -> bool:
    return any(one is call for one in ast.walk(node))


def largest_factor(number: int) -> int:
    """Return the largest prime factor of a number."""
    largest, divisor = 1, 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            largest, number = max(largest, divisor), number // divisor
        divisor += 1
        if divisor > _LARGE_FACTOR and number < _LARGE_FACTOR * _LARGE_FACTOR:
            break
    return max(largest, number)
