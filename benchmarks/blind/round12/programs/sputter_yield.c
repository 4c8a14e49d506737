/* Sputter yield and damage depth of a metal target: binary-collision cascade of many ions. */
#include <math.h>
#include <stdio.h>
#include <stdint.h>

#define IONS 1200000
#define DEPTHS 64
#define MAX_COLLISIONS 80

static long long hits[DEPTHS];
static long long damage[DEPTHS];

static inline uint64_t mix(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static inline double uniform(uint64_t *s)
{
    return ((mix(s) >> 11) + 0.5) * (1.0 / 9007199254740992.0);
}

static inline void record(int bin, double energy)
{
    #pragma omp atomic
    hits[bin] += 1;
    #pragma omp atomic
    damage[bin] += (long long)(energy * 1e3);
}

static int ion(long number, double start_energy)
{
    uint64_t seed = 0x51ed270b35a1ULL + 7919ULL * (uint64_t)number;
    double energy = start_energy, depth = 0.0, cosine = 1.0;
    int ejected = 0;
    for (int c = 0; c < MAX_COLLISIONS && energy > 15.0; c++) {
        double path = -2.1 * log(uniform(&seed)) * (1.0 + 0.002 * sqrt(energy));
        depth += cosine * path;
        if (depth < 0.0)
            return ejected + (energy > 40.0);
        double impact = sqrt(uniform(&seed));
        double angle = M_PI * exp(-1.6 * impact) / (1.0 + 0.004 * energy);
        double azimuth = 2.0 * M_PI * uniform(&seed);
        double sine = sqrt(fmax(0.0, 1.0 - cosine * cosine));
        double given = energy * 0.22 * sin(0.5 * angle) * sin(0.5 * angle) + 0.006 * path * sqrt(energy);
        cosine = cosine * cos(angle) + sine * sin(angle) * cos(azimuth);
        cosine = fmin(1.0, fmax(-1.0, cosine));
        energy -= given;
        int bin = (int)(depth * 0.35);
        record(bin < DEPTHS ? bin : DEPTHS - 1, given);
        if (given > 18.0 && depth < 6.0 && uniform(&seed) < 0.2)
            ejected++;
    }
    return ejected;
}

int main(void)
{
    const double energies[] = {250.0, 500.0, 1000.0};
    for (int e = 0; e < 3; e++) {
        long ejected = 0;
        for (int b = 0; b < DEPTHS; b++)
            hits[b] = damage[b] = 0;
        #pragma omp parallel for schedule(dynamic, 2048) reduction(+:ejected)
        for (long i = 0; i < IONS; i++)
            ejected += ion(i + (long)e * IONS, energies[e]);
        double total = 0.0, mean = 0.0;
        long long collisions = 0;
        for (int b = 0; b < DEPTHS; b++) {
            total += damage[b];
            mean += (double)damage[b] * (b + 0.5) / 0.35;
            collisions += hits[b];
        }
        printf("%6.0f eV: yield %.4f, mean damage depth %.3f A, %lld collisions\n",
               energies[e], (double)ejected / IONS, mean / total, collisions);
    }
    return 0;
}
