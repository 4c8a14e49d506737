/* Pair potential of a confined cluster: energy and forces by direct summation,
 * relaxed with a damped velocity Verlet scheme.  Threads keep their own force arrays. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 3000
#define STEPS 230

static double pos[N][3], vel[N][3], frc[N][3];
static unsigned long long seed = 88172645463325252ULL;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) * (1.0 / 9007199254740992.0);
}

static void place(void)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            pos[i][k] = 20.0 * (uniform() - 0.5);
            vel[i][k] = 0.0;
        }
}

static double forces(double (*part)[N][3])
{
    double energy = 0.0;
#pragma omp parallel reduction(+ : energy)
    {
        double(*mine)[3] = part[omp_get_thread_num()];
        memset(mine, 0, sizeof(double) * N * 3);
#pragma omp for schedule(static)
        for (int i = 0; i < N - 1; i++) {
            double fx = 0, fy = 0, fz = 0;
            for (int j = i + 1; j < N; j++) {
                double dx = pos[i][0] - pos[j][0];
                double dy = pos[i][1] - pos[j][1];
                double dz = pos[i][2] - pos[j][2];
                double r2 = dx * dx + dy * dy + dz * dz + 0.25;
                double r = sqrt(r2);
                double e = exp(-0.8 * r) / r;
                double f = e * (0.8 + 1.0 / r) / r;
                energy += e;
                fx += f * dx; fy += f * dy; fz += f * dz;
                mine[j][0] -= f * dx; mine[j][1] -= f * dy; mine[j][2] -= f * dz;
            }
            mine[i][0] += fx; mine[i][1] += fy; mine[i][2] += fz;
        }
    }
    int team = omp_get_max_threads();
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            double s = -0.3 * pos[i][k];
            for (int t = 0; t < team; t++) s += part[t][i][k];
            frc[i][k] = s;
            energy += 0.15 * pos[i][k] * pos[i][k];
        }
    return energy;
}

int main(void)
{
    double(*part)[N][3] = calloc(omp_get_max_threads(), sizeof(*part));
    double e = 0.0, first = 0.0, dt = 0.02;
    place();
    for (int s = 0; s < STEPS; s++) {
        e = forces(part);
        if (s == 0) first = e;
        for (int i = 0; i < N; i++)
            for (int k = 0; k < 3; k++) {
                vel[i][k] = 0.9 * vel[i][k] + dt * frc[i][k];
                pos[i][k] += dt * vel[i][k];
            }
    }
    printf("particles %d, energy first %.4f last %.4f\n", N, first, e);
    free(part);
    return 0;
}
