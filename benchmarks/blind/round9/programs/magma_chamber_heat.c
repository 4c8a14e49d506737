/* Cooling of a magma chamber in layered rock: explicit 3-D heat flow with latent heat. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

#define NX 256
#define NY 256
#define NZ 256
#define STEPS 900
#define AT(i, j, k) (((size_t)(i) * NY + (j)) * NZ + (k))

int main(void)
{
    size_t cells = (size_t)NX * NY * NZ;
    float *old = malloc(cells * sizeof *old), *fresh = malloc(cells * sizeof *fresh);
    float layer[NX];
    if (!old || !fresh) return 1;
    for (int i = 0; i < NX; i++)
        layer[i] = (i / 32) % 2 ? 0.14f : 0.10f;

#pragma omp parallel for schedule(static)
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NY; j++)
            for (int k = 0; k < NZ; k++) {
                float x = (i - 170) / 50.0f, y = (j - 128) / 70.0f, z = (k - 128) / 60.0f;
                float rock = 15.0f + 1.2f * i;
                old[AT(i, j, k)] = x * x + y * y + z * z < 1.0f ? 1150.0f : rock;
                fresh[AT(i, j, k)] = old[AT(i, j, k)];
            }

    for (int step = 1; step <= STEPS; step++) {
#pragma omp parallel for schedule(static)
        for (int i = 1; i < NX - 1; i++) {
            float d = layer[i];
            for (int j = 1; j < NY - 1; j++) {
                const float *c = old + AT(i, j, 0);
                const float *n = c - NZ, *s = c + NZ;
                const float *u = c - (size_t)NY * NZ, *w = c + (size_t)NY * NZ;
                float *out = fresh + AT(i, j, 0);
#pragma omp simd
                for (int k = 1; k < NZ - 1; k++) {
                    float flow = n[k] + s[k] + u[k] + w[k] + c[k - 1] + c[k + 1] - 6.0f * c[k];
                    float melt = c[k] > 800.0f && c[k] < 1000.0f ? 0.45f : 1.0f;
                    out[k] = c[k] + d * melt * flow;
                }
            }
        }
        float *swap = old; old = fresh; fresh = swap;
        if (step % 100 == 0) {
            double liquid = 0.0;
#pragma omp parallel for reduction(+ : liquid) schedule(static)
            for (size_t a = 0; a < cells; a++)
                liquid += old[a] > 1000.0f;
            printf("step %d liquid share %.6f centre %.2f\n", step, liquid / cells, old[AT(170, 128, 128)]);
        }
    }
    free(old); free(fresh);
    return 0;
}
