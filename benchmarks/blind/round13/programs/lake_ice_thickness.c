/* Growth of lake ice on a fine grid: heat conduction in the ice sheet with snow patches. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 4096
#define SWEEPS 840

static void start(float *ice, float *snow)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < SIDE; row++) {
        for (int column = 0; column < SIDE; column++) {
            size_t k = (size_t)row * SIDE + column;
            ice[k] = 0.10f + 0.02f * sinf(row * 0.011f) * cosf(column * 0.017f);
            snow[k] = (row / 64 + column / 96) % 3 == 0 ? 0.12f : 0.03f;
        }
    }
}

static void sweep(const float *old, float *new, const float *snow, float cold)
{
#pragma omp parallel for schedule(static)
    for (int row = 1; row < SIDE - 1; row++) {
        const float *above = old + (size_t)(row - 1) * SIDE;
        const float *here = old + (size_t)row * SIDE;
        const float *below = old + (size_t)(row + 1) * SIDE;
        const float *cover = snow + (size_t)row * SIDE;
        float *out = new + (size_t)row * SIDE;
        for (int column = 1; column < SIDE - 1; column++) {
            float mean = 0.25f * (above[column] + below[column] + here[column - 1] + here[column + 1]);
            float growth = cold / (here[column] + 7.0f * cover[column] + 0.05f);
            out[column] = here[column] + 0.05f * (mean - here[column]) + growth;
        }
    }
}

int main(void)
{
    size_t cells = (size_t)SIDE * SIDE;
    float *a = malloc(cells * sizeof *a);
    float *b = malloc(cells * sizeof *b);
    float *snow = malloc(cells * sizeof *snow);
    double sum = 0.0;
    if (!a || !b || !snow)
        return 1;
    start(a, snow);
    start(b, snow);
    for (int step = 0; step < SWEEPS; step++) {
        float cold = 2.0e-5f * (1.0f + 0.5f * cosf(step * 0.03f));
        float *swap = a;
        sweep(a, b, snow, cold);
        a = b;
        b = swap;
        if (step % 140 == 0)
            printf("step %3d: ice in the middle %.4f m\n", step, a[cells / 2 + SIDE / 2]);
    }
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            sum += a[(size_t)row * SIDE + column];
    printf("mean thickness %.4f m\n", sum / cells);
    free(a);
    free(b);
    free(snow);
    return 0;
}
