/* Lateral spread of an air shower on the ground: Monte Carlo of muons through the atmosphere. */
#include <math.h>
#include <stdio.h>
#include <stdint.h>

#define SHOWERS 5
#define MUONS 400000
#define LAYERS 60
#define RINGS 40

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

static int muon(uint64_t seed, double primary, const double *depth, double *distance)
{
    uint64_t s = seed;
    double energy = 0.6 + 0.02 * pow(primary, 0.3) * pow(uniform(&s), -0.55);
    double x = 0.0, y = 0.0, tx = 0.02 * (uniform(&s) - 0.5), ty = 0.02 * (uniform(&s) - 0.5);
    int start = (int)(-6.0 * log(uniform(&s)));
    if (start > 25)
        start = 25;
    for (int l = start; l < LAYERS; l++) {
        double length = 0.25 / sqrt(fmax(0.2, 1.0 - tx * tx - ty * ty));
        double gamma = energy / 0.10566;
        if (uniform(&s) < 1.0 - exp(-length / (0.66 * gamma)))
            return 0;
        double loss = depth[l] * length * (2.0 + 0.16 * log(gamma));
        energy -= loss * 0.001;
        if (energy < 0.12)
            return 0;
        double kick = 0.0136 / energy * sqrt(depth[l] * length / 36.0);
        double radius = sqrt(-2.0 * log(uniform(&s))), turn = 2.0 * M_PI * uniform(&s);
        tx += kick * radius * cos(turn);
        ty += kick * radius * sin(turn) + 3e-5 / energy;
        x += tx * length;
        y += ty * length;
    }
    *distance = sqrt(x * x + y * y);
    return 1;
}

int main(void)
{
    double depth[LAYERS];
    for (int l = 0; l < LAYERS; l++)
        depth[l] = 120.0 * exp(-(LAYERS - l) * 0.25 / 7.5);
    for (int shower = 0; shower < SHOWERS; shower++) {
        double primary = 1e5 * pow(4.0, shower);
        long rings[RINGS] = {0}, arrived = 0;
        #pragma omp parallel for schedule(static, 4096) reduction(+:rings[:RINGS], arrived)
        for (long i = 0; i < MUONS * 6L; i++) {
            double distance;
            if (muon(0xabcdULL + 131071ULL * (uint64_t)(i + MUONS * 6L * shower), primary, depth, &distance)) {
                int ring = (int)(distance * 25.0);
                rings[ring < RINGS ? ring : RINGS - 1]++;
                arrived++;
            }
        }
        long within = 0;
        int half = 0;
        while (half < RINGS && within * 2 < arrived)
            within += rings[half++];
        printf("primary %.1e GeV: %ld muons arrive (%.3f), half of them within %.2f km\n",
               primary, arrived, (double)arrived / (MUONS * 6.0), half / 25.0);
    }
    return 0;
}
