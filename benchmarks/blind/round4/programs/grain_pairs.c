/* Pair distance histogram of a settling granular packing. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define N 16000
#define BINS 512
#define SNAPSHOTS 62

static double x[N], y[N], z[N];
static unsigned long long state = 88172645463325252ULL;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void shake(double size)
{
    for (int i = 0; i < N; i++) {
        x[i] = fabs(x[i] + size * (uniform() - 0.5));
        y[i] = fabs(y[i] + size * (uniform() - 0.5));
        z[i] = fabs(z[i] * 0.995 + size * (uniform() - 0.5));
        if (x[i] > 1.0) x[i] = 2.0 - x[i];
        if (y[i] > 1.0) y[i] = 2.0 - y[i];
        if (z[i] > 1.0) z[i] = 2.0 - z[i];
    }
}

static void count_pairs(long long *hist)
{
    const double inv = BINS / 1.8;
#pragma omp parallel for schedule(static) reduction(+ : hist[:BINS])
    for (int i = 0; i < N; i++) {
        const double xi = x[i], yi = y[i], zi = z[i];
        for (int j = i + 1; j < N; j++) {
            const double dx = xi - x[j];
            const double dy = yi - y[j];
            const double dz = zi - z[j];
            const int b = (int)(sqrt(dx * dx + dy * dy + dz * dz) * inv);
            hist[b < BINS ? b : BINS - 1]++;
        }
    }
}

int main(void)
{
    long long hist[BINS];
    double order = 0.0;

    for (int i = 0; i < N; i++) {
        x[i] = uniform();
        y[i] = uniform();
        z[i] = uniform();
    }
    for (int s = 0; s < SNAPSHOTS; s++) {
        for (int b = 0; b < BINS; b++)
            hist[b] = 0;
        count_pairs(hist);
        long long near = 0, all = 0;
        for (int b = 0; b < BINS; b++) {
            all += hist[b];
            if (b < BINS / 16)
                near += hist[b];
        }
        order += (double)near / (double)all;
        if (s % 20 == 0)
            printf("snapshot %2d  close pairs %lld\n", s, near);
        shake(0.05);
    }
    printf("mean order %.8f\n", order / SNAPSHOTS);
    return 0;
}
