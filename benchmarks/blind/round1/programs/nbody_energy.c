/* potential energy of a star cluster and a histogram of distances */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 11000
#define BINS 64

static double x[N], y[N], z[N];

int main(void) {
    srand(7);
    for (int i = 0; i < N; i++) {
        x[i] = rand() / (double)RAND_MAX;
        y[i] = rand() / (double)RAND_MAX;
        z[i] = rand() / (double)RAND_MAX;
    }
    for (int rep = 0; rep < 8; rep++) {
        long hist[BINS] = {0};
        double e = 0;
#pragma omp parallel for schedule(dynamic, 16)
        for (int i = 0; i < N; i++) {
            double local = 0;
            for (int j = i + 1; j < N; j++) {
                double dx = x[i] - x[j], dy = y[i] - y[j], dz = z[i] - z[j];
                double r = sqrt(dx * dx + dy * dy + dz * dz + 1e-6);
                local += 1.0 / r;
                int b = (int)(r * BINS / 1.75);
#pragma omp critical
                hist[b]++;
            }
#pragma omp critical
            e -= local;
        }
        printf("rep %d energy %.1f middle bin %ld\n", rep, e, hist[BINS / 2]);
        fflush(stdout);
    }
    return 0;
}
