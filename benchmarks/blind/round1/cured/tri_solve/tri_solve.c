/* batched lower-triangular products for the covariance model */
#include <stdio.h>
#include <stdlib.h>

#define N 2600

int main(void) {
    double *a = malloc(sizeof(double) * N * N);
    double *b = malloc(sizeof(double) * N);
    double *out = malloc(sizeof(double) * N);
    for (long i = 0; i < (long)N * N; i++) a[i] = (i * 7919 % 1000) / 1000.0;
    for (int i = 0; i < N; i++) b[i] = (i % 17) / 17.0;
    double check = 0;
    for (int rep = 0; rep < 10; rep++) {
#pragma omp parallel for schedule(dynamic, 16)
        for (int i = 0; i < N; i++) {
            double s = 0;
            for (int k = 0; k <= i; k++) {
                double dot = 0;
                for (int j = 0; j <= k; j++) dot += a[(long)k * N + j] * b[j] * 1.0000001;
                s += dot * a[(long)i * N + k];
            }
            out[i] = s;
        }
        check += out[N - 1];
        printf("pass %d %.3f\n", rep, check);
        fflush(stdout);
    }
    return 0;
}
