/* Checkerboard Metropolis for the two-dimensional Ising model. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 2048
#define SWEEPS 160
#define SETTLE 30

static signed char *spin;
static uint64_t *seeds;

static inline uint32_t draw(uint64_t *s)
{
    uint64_t x = *s;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *s = x;
    return (uint32_t)(x >> 32);
}

static void thresholds(double beta, uint32_t *limit)
{
    for (int k = 0; k < 5; k++) {
        double cost = 2.0 * (2 * k - 4);
        double chance = cost <= 0.0 ? 1.0 : exp(-beta * cost);
        limit[k] = (uint32_t)(chance * 4294967295.0);
    }
}

/* Every row has its own random numbers: the result does not depend on the threads. */
static void half_sweep(int colour, const uint32_t *limit)
{
#pragma omp for schedule(static)
    for (int i = 0; i < SIDE; i++) {
        uint64_t s = seeds[i];
        const signed char *up = spin + (size_t)((i + SIDE - 1) % SIDE) * SIDE;
        const signed char *down = spin + (size_t)((i + 1) % SIDE) * SIDE;
        signed char *row = spin + (size_t)i * SIDE;
        for (int j = (i + colour) & 1; j < SIDE; j += 2) {
            int left = j ? j - 1 : SIDE - 1, right = j + 1 < SIDE ? j + 1 : 0;
            int sum = row[j] * (up[j] + down[j] + row[left] + row[right]);
            if (draw(&s) <= limit[(sum + 4) / 2])
                row[j] = (signed char)-row[j];
        }
        seeds[i] = s;
    }
}

static void measure(double *energy, double *magnet)
{
    long e = 0, m = 0;
#pragma omp parallel for reduction(+ : e, m) schedule(static)
    for (int i = 0; i < SIDE; i++) {
        const signed char *row = spin + (size_t)i * SIDE;
        const signed char *down = spin + (size_t)((i + 1) % SIDE) * SIDE;
        for (int j = 0; j < SIDE; j++) {
            m += row[j];
            e -= row[j] * (down[j] + row[j + 1 < SIDE ? j + 1 : 0]);
        }
    }
    *energy = (double)e / SIDE / SIDE;
    *magnet = fabs((double)m) / SIDE / SIDE;
}

int main(void)
{
    spin = malloc((size_t)SIDE * SIDE);
    seeds = malloc(SIDE * sizeof *seeds);
    if (!spin || !seeds)
        return 1;
    printf("side %d, %d threads\n", SIDE, omp_get_max_threads());
    for (int t = 0; t < 8; t++) {
        double temperature = 2.0 + 0.08 * t;
        uint32_t limit[5];
        thresholds(1.0 / temperature, limit);
        for (int i = 0; i < SIDE; i++)
            seeds[i] = 0x9e3779b97f4a7c15ULL * (uint64_t)(i + 1 + SIDE * t);
        for (size_t k = 0; k < (size_t)SIDE * SIDE; k++)
            spin[k] = 1;
        double energy = 0.0, magnet = 0.0;
        for (int sweep = 0; sweep < SWEEPS; sweep++) {
#pragma omp parallel
            {
                half_sweep(0, limit);
                half_sweep(1, limit);
            }
            if (sweep >= SETTLE) {
                double e, m;
                measure(&e, &m);
                energy += e;
                magnet += m;
            }
        }
        int n = SWEEPS - SETTLE;
        printf("T %.2f  energy %.5f  magnetisation %.5f\n", temperature, energy / n, magnet / n);
    }
    free(spin);
    free(seeds);
    return 0;
}
