/* Seiche in a rectangular lake: linear shallow water on a staggered grid. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NX 2000
#define NY 2000
#define STEPS 1300

int main(void)
{
    const double g = 9.81, depth = 40.0, dx = 50.0, dt = 1.2;
    const double cu = g * dt / dx, ch = depth * dt / dx;
    double *h = malloc(sizeof(double) * NX * NY);
    double *u = malloc(sizeof(double) * NX * NY);
    double *v = malloc(sizeof(double) * NX * NY);

#pragma omp parallel for schedule(static)
    for (int i = 0; i < NY; i++)
        for (int j = 0; j < NX; j++) {
            h[(size_t)i * NX + j] = 0.3 * cos(M_PI * (j + 0.5) / NX)
                                  + 0.1 * cos(2 * M_PI * (i + 0.5) / NY);
            u[(size_t)i * NX + j] = 0.0;
            v[(size_t)i * NX + j] = 0.0;
        }

    for (int s = 0; s < STEPS; s++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < NY; i++) {
            const size_t r = (size_t)i * NX;
            for (int j = 0; j < NX - 1; j++)
                u[r + j] -= cu * (h[r + j + 1] - h[r + j]);
            if (i < NY - 1)
                for (int j = 0; j < NX; j++)
                    v[r + j] -= cu * (h[r + NX + j] - h[r + j]);
        }
#pragma omp parallel for schedule(static)
        for (int i = 0; i < NY; i++) {
            const size_t r = (size_t)i * NX;
            h[r] -= ch * (u[r] + v[r] - (i > 0 ? v[r - NX] : 0.0));
            for (int j = 1; j < NX; j++)
                h[r + j] -= ch * (u[r + j] - u[r + j - 1] + v[r + j]
                                  - (i > 0 ? v[r - NX + j] : 0.0));
        }
    }

    double sum = 0.0, square = 0.0;
    for (size_t k = 0; k < (size_t)NX * NY; k++) {
        sum += h[k];
        square += h[k] * h[k];
    }
    printf("mean level %.6f  rms %.6f\n", sum / ((double)NX * NY),
           sqrt(square / ((double)NX * NY)));
    return 0;
}
