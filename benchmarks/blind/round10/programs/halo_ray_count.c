/* Scattering angles of sunlight through randomly oriented hexagonal ice prisms (22 degree halo). */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define RAYS 260000000LL
#define BLOCK 200000LL
#define BINS 600
#define ICE 1.3105

static inline uint64_t mix(uint64_t *s)
{
    uint64_t z = (*s += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static inline double uniform(uint64_t *s)
{
    return (double)(mix(s) >> 11) * (1.0 / 9007199254740992.0);
}

/* deviation through a 60 degree prism for one orientation, negative if totally reflected */
static inline double deviation(uint64_t *s)
{
    double tilt = asin(2.0 * uniform(s) - 1.0);
    double turn = (uniform(s) - 0.5) * M_PI;
    double c = cos(tilt);
    double n = sqrt(ICE * ICE - sin(tilt) * sin(tilt)) / c;
    double inside = asin(sin(turn) / n);
    double second = n * sin(M_PI / 3.0 - inside);
    if (fabs(second) >= 1.0)
        return -1.0;
    double flat = turn + asin(second) - M_PI / 3.0;
    double half = c * sin(0.5 * flat);
    return 2.0 * asin(fabs(half)) * 180.0 / M_PI;
}

int main(void)
{
    static long long total[BINS];
    long long lost = 0;
    long long blocks = RAYS / BLOCK;
#pragma omp parallel reduction(+ : lost)
    {
        long long mine[BINS] = {0};
#pragma omp for schedule(dynamic, 4)
        for (long long b = 0; b < blocks; b++) {
            uint64_t s = 0x1234567ULL + 7919ULL * (uint64_t)b;
            for (long long r = 0; r < BLOCK; r++) {
                double d = deviation(&s);
                int bin = (int)(d * 10.0);
                if (d < 0.0 || bin >= BINS)
                    lost++;
                else
                    mine[bin]++;
            }
        }
#pragma omp critical
        for (int k = 0; k < BINS; k++)
            total[k] += mine[k];
    }
    int peak = 0;
    for (int k = 100; k < BINS; k++)
        if (total[k] > total[peak] || peak < 100)
            peak = k;
    printf("%lld rays, %lld not refracted\n", RAYS, lost);
    printf("brightest ring at %.1f degrees\n", 0.1 * peak);
    printf("rays there %lld, just inside %lld\n", total[peak], total[peak - 10]);
    return 0;
}
