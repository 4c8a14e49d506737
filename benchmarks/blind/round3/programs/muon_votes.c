/* Back-projection of muon tracks into a voxel block (scattering tomography). */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 96
#define VOXELS ((size_t)SIDE * SIDE * SIDE)
#define TRACKS 6500000L
#define FIT_STEPS 14

struct track {
    float x0, y0, x1, y1, bend;
};

static struct track *tracks;
static double *votes;
static const double blur[3] = {0.25, 0.5, 0.25};

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static float unit(uint64_t *s)
{
    *s = mix(*s);
    return (float)(*s >> 40) / 16777216.0f;
}

static void expose(void)
{
    uint64_t s = 20240229;
    for (long i = 0; i < TRACKS; i++) {
        struct track *t = &tracks[i];
        t->x0 = unit(&s);
        t->y0 = unit(&s);
        t->x1 = t->x0 + 0.5f * (unit(&s) - 0.5f);
        t->y1 = t->y0 + 0.5f * (unit(&s) - 0.5f);
        float mx = 0.5f * (t->x0 + t->x1) - 0.45f, my = 0.5f * (t->y0 + t->y1) - 0.55f;
        float dense = mx * mx + my * my < 0.01f ? 3.0f : 1.0f;
        t->bend = dense * (unit(&s) + unit(&s) + unit(&s) - 1.5f);
    }
}

/* Most likely momentum for this bend: a few damped Newton steps. */
static double momentum(double bend)
{
    double p = 1.0, b2 = bend * bend + 1e-3;
    for (int k = 0; k < FIT_STEPS; k++) {
        double e = exp(-0.3 * p);
        double slope = b2 * p - 1.0 / p + 0.3 * e + 0.2 * log(p);
        double curve = b2 + 1.0 / (p * p) + 0.2 / p + 0.09 * e;
        p -= 0.8 * slope / curve;
        if (p < 0.05)
            p = 0.05;
    }
    return p;
}

static void project(void)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < TRACKS; i++) {
        const struct track *t = &tracks[i];
        double p = momentum(t->bend);
        double weight = t->bend * t->bend * p * p;
#pragma omp critical
        {
            for (int k = 0; k < SIDE; k++) {
                float u = (k + 0.5f) / SIDE;
                int x = (int)((t->x0 + u * (t->x1 - t->x0)) * SIDE);
                int y = (int)((t->y0 + u * (t->y1 - t->y0)) * SIDE);
                if (x < 1 || x >= SIDE - 1 || y < 1 || y >= SIDE - 1)
                    continue;
                for (int a = -1; a <= 1; a++)
                    for (int b = -1; b <= 1; b++)
                        votes[((size_t)(x + a) * SIDE + y + b) * SIDE + k] +=
                            weight * blur[a + 1] * blur[b + 1];
            }
        }
    }
}

int main(void)
{
    tracks = malloc(TRACKS * sizeof *tracks);
    votes = calloc(VOXELS, sizeof *votes);
    if (!tracks || !votes)
        return 1;
    expose();
    printf("%ld tracks, %zu voxels, %d threads\n", TRACKS, VOXELS, omp_get_max_threads());

    project();

    double total = 0.0, peak = 0.0;
    size_t at = 0;
    for (size_t v = 0; v < VOXELS; v++) {
        total += votes[v];
        if (votes[v] > peak) {
            peak = votes[v];
            at = v;
        }
    }
    printf("total %.6e\n", total);
    printf("densest voxel %zu %zu %zu: %.5e\n", at / (SIDE * SIDE), at / SIDE % SIDE, at % SIDE, peak);
    free(tracks);
    free(votes);
    return 0;
}
