/* Point vortices in a tidal strait, direct sum.
 *
 * This is the reference for the fast methods: every vortex feels every other
 * vortex, without approximation.  Midpoint steps; the energy-like moments
 * show the quality.
 *
 * usage: gyres VORTICES STEPS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float *alloc(int n)
{
    float *a = aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
    if (!a)
        exit(1);
    return a;
}

/* Velocity of all vortices at the places x, y. */
static void velocity(int n, const float *restrict x, const float *restrict y,
                     const float *restrict g, float *restrict u, float *restrict v)
{
    const float core = 1e-4f;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) {
        float su = 0.0f, sv = 0.0f;
        const float xi = x[i], yi = y[i];
#pragma omp simd reduction(+ : su, sv)
        for (int j = 0; j < n; j++) {
            float dx = xi - x[j];
            float dy = yi - y[j];
            float w = g[j] / (dx * dx + dy * dy + core);
            su -= w * dy;
            sv += w * dx;
        }
        u[i] = su * 0.15915494f;
        v[i] = sv * 0.15915494f;
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2000;
    int steps = argc > 2 ? atoi(argv[2]) : 50;
    float *x = alloc(n), *y = alloc(n), *g = alloc(n);
    float *u = alloc(n), *v = alloc(n), *xm = alloc(n), *ym = alloc(n);
    const float dt = 0.002f;

    unsigned s = 12345;
    for (int i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        float a = (s >> 8) * (6.2831853f / 16777216.0f);
        s = s * 1664525u + 1013904223u;
        float r = 0.3f + 0.7f * (s >> 8) / 16777216.0f;
        x[i] = r * cosf(a) + (i % 2 ? 1.4f : -1.4f);
        y[i] = 0.6f * r * sinf(a);
        g[i] = (i % 2 ? 1.0f : -0.8f) * 4.0f / n;
    }

    for (int k = 0; k < steps; k++) {
        velocity(n, x, y, g, u, v);
        for (int i = 0; i < n; i++) {
            float tide = 0.05f * sinf(0.03f * k);
            xm[i] = x[i] + 0.5f * dt * (u[i] + tide);
            ym[i] = y[i] + 0.5f * dt * v[i];
        }
        velocity(n, xm, ym, g, u, v);
        for (int i = 0; i < n; i++) {
            float tide = 0.05f * sinf(0.03f * k + 0.015f);
            x[i] += dt * (u[i] + tide);
            y[i] += dt * v[i];
        }
    }

    double mx = 0, my = 0, mr = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        mx += (double)g[i] * x[i];
        my += (double)g[i] * y[i];
        mr += (double)g[i] * ((double)x[i] * x[i] + (double)y[i] * y[i]);
        sum += g[i];
    }
    printf("vortices: %d, steps: %d\n", n, steps);
    printf("circulation %.4f, impulse %.3f %.3f\n", sum, mx, my);
    printf("angular moment %.3f\n", mr);
    return 0;
}
