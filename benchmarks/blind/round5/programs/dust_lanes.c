/* Monte Carlo of photons in a slab of dust.
 *
 * Photons start in the middle plane.  They fly exponential path lengths,
 * scatter into a new direction or are absorbed.  The heights of all
 * scatterings are tallied, which shows where the dust lane glows.
 *
 * usage: dust PHOTONS
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BINS 64

static const double DEPTH = 6.0;      /* optical half thickness */
static const double ALBEDO = 0.96;

static long long tally[BINS];

/* xorshift generator; every photon has a stream of its own */
static inline double uniform(uint64_t *s)
{
    uint64_t x = *s;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *s = x;
    return ((x >> 11) + 0.5) * (1.0 / 9007199254740992.0);
}

static uint64_t stream(long photon)
{
    uint64_t z = (uint64_t)photon + 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) | 1;
}

static int bin_of(double z)
{
    int b = (int)((z + DEPTH) / (2.0 * DEPTH) * BINS);
    return b < 0 ? 0 : b >= BINS ? BINS - 1 : b;
}

int main(int argc, char **argv)
{
    long photons = argc > 1 ? atol(argv[1]) : 1000000;
    long escaped = 0, absorbed = 0;

#pragma omp parallel for schedule(dynamic, 10000) reduction(+ : escaped, absorbed)
    for (long p = 0; p < photons; p++) {
        uint64_t s = stream(p);
        double z = 0.0;
        double mu = 2.0 * uniform(&s) - 1.0;
        for (;;) {
            z += mu * -log(uniform(&s));
            if (fabs(z) > DEPTH) {
                escaped++;
                break;
            }
            int b = bin_of(z);
#pragma omp critical
            tally[b]++;
            if (uniform(&s) > ALBEDO) {
                absorbed++;
                break;
            }
            mu = 2.0 * uniform(&s) - 1.0;
        }
    }

    long long total = 0;
    double moment = 0.0;
    for (int b = 0; b < BINS; b++) {
        double z = -DEPTH + (b + 0.5) * 2.0 * DEPTH / BINS;
        total += tally[b];
        moment += tally[b] * z * z;
    }
    printf("photons: %ld, escaped: %ld, absorbed: %ld\n", photons, escaped, absorbed);
    printf("scatterings: %lld, per photon %.4f\n", total, (double)total / photons);
    printf("glow width: %.5f\n", sqrt(moment / total));
    printf("centre / edge: %.4f\n", (double)tally[BINS / 2] / tally[0]);
    return 0;
}
