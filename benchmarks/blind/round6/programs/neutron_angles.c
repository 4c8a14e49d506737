/* Angular distribution of neutrons after a few elastic collisions in a light gas. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NEUTRONS 110000000L
#define COLLISIONS 4
#define BINS 48
#define MASS 4.0

static long angle_count[BINS];
static long energy_count[BINS];

static inline uint64_t mix(uint64_t v)
{
    v += 0x9E3779B97F4A7C15ULL;
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9ULL;
    v = (v ^ (v >> 27)) * 0x94D049BB133111EBULL;
    return v ^ (v >> 31);
}

static inline double uniform(uint64_t v)
{
    return (double)(mix(v) >> 11) / 9007199254740992.0;
}

static void transport(void)
{
    const double alpha = ((MASS - 1) / (MASS + 1)) * ((MASS - 1) / (MASS + 1));
#pragma omp parallel for schedule(static)
    for (long n = 0; n < NEUTRONS; n++) {
        double energy = 1.0;
        for (int c = 0; c < COLLISIONS; c++) {
            double mu = 2.0 * uniform((uint64_t)n * COLLISIONS + c) - 1.0;
            double lab = (1.0 + MASS * mu) / sqrt(1.0 + MASS * MASS + 2.0 * MASS * mu);
            energy *= 0.5 * ((1.0 + alpha) + (1.0 - alpha) * mu);
            int a = (int)(0.5 * (lab + 1.0) * BINS);
            int e = (int)(energy * BINS);
            if (a >= BINS)
                a = BINS - 1;
            if (e >= BINS)
                e = BINS - 1;
#pragma omp atomic
            angle_count[a]++;
#pragma omp atomic
            energy_count[e]++;
        }
    }
}

int main(void)
{
    transport();
    long total = 0, forward = 0;
    double mean = 0.0;
    for (int b = 0; b < BINS; b++) {
        total += angle_count[b];
        if (b >= BINS / 2)
            forward += angle_count[b];
        mean += energy_count[b] * (b + 0.5) / BINS;
    }
    printf("collisions %ld\n", total);
    printf("forward fraction %.6f\n", (double)forward / total);
    printf("mean energy %.6f\n", mean / total);
    return 0;
}
