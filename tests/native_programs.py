"""Small programs in C, compiled for a test, with functions that are known to take the time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["SOURCES", "built", "needs_cc"]

needs_cc = pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler on this machine")

_BEGIN = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static int goes_on(double seconds) { return clock() < seconds * CLOCKS_PER_SEC; }
"""
SOURCES = {
    # Two functions of its own; the second one takes three times as long.
    "own": """
static double __attribute__((noinline)) first(double x)
{ for (int i = 0; i < 1000; i++) x = x * 0.5 + sin(i * x); return x; }
static double __attribute__((noinline)) second(double x)
{ for (int i = 0; i < 3000; i++) x = x * 0.5 + sin(i * x); return x; }
int main(int n, char **words)
{ double x = 1; while (goes_on(atof(words[1]))) { x = first(x); x = second(x); }
  printf("%g\\n", x); return 0; }
""",
    "text": """
static void __attribute__((noinline)) save(FILE *out, double x)
{
    for (int i = 0; i < 200; i++)
        fprintf(out, "%.10g ", x * i); /* the line */
}
int main(int n, char **words)
{ FILE *out = fopen("/dev/null", "w"); double x = 0.1;
  while (goes_on(atof(words[1]))) save(out, x += 0.1);
  return 0; }
""",
    "powers": """
int main(int n, char **words)
{ double x = 1; int i = 0;
  do { x = pow(1.5 + 0.1 * sin(x), 3.0); x = pow(1.5 + x / 9, 0.7); } while (i++ % 1024
      || goes_on(atof(words[1])));
  printf("%g\\n", x); return 0; }
""",
    "lock": """
int main(int n, char **words)
{
    long sum = 0;
    double until = atof(words[1]);
    #pragma omp parallel reduction(+:sum) num_threads(2)
    while (goes_on(2 * until))
        for (int i = 0; i < 1000; i++)
            sum += rand(); /* the line */
    printf("%ld\\n", sum);
    return 0;
}
""",
    "critical": """
int main(int n, char **words)
{
    static long counts[16];
    double until = atof(words[1]);
    while (goes_on(2 * until)) {
        #pragma omp parallel for num_threads(2)
        for (int i = 0; i < 100000; i++) {
            #pragma omp critical
            counts[i % 16] += i;
        }
    }
    printf("%ld\\n", counts[3]);
    return 0;
}
""",
}


def built(folder: Path, name: str, *options: str) -> Path:
    """Return a compiled program of `SOURCES`; its argument is its run time in s."""
    source, program = folder / f"{name}.c", folder / name
    source.write_text(_BEGIN + SOURCES[name])
    command = ["gcc", *(options or ("-O2", "-g")), "-fopenmp", str(source), "-o", str(program)]
    done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this gcc has no OpenMP library")
    return program
