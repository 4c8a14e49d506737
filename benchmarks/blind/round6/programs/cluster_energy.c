/* Lennard-Jones energy and gyration radius of an expanding argon cluster. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ATOMS 50000
#define FRAMES 14
#define CUTOFF 3.0

static double x[ATOMS], y[ATOMS], z[ATOMS];
static uint64_t seed = 88172645463325252ULL;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static void place(void)
{
    int side = 37, n = 0;
    for (int i = 0; i < side && n < ATOMS; i++)
        for (int j = 0; j < side && n < ATOMS; j++)
            for (int k = 0; k < side && n < ATOMS; k++, n++) {
                x[n] = 1.1 * i + 0.1 * uniform();
                y[n] = 1.1 * j + 0.1 * uniform();
                z[n] = 1.1 * k + 0.1 * uniform();
            }
}

static double pair_energy(long *contacts)
{
    double energy = 0.0;
    long close = 0;
#pragma omp parallel for schedule(static) reduction(+ : energy, close)
    for (int i = 0; i < ATOMS; i++) {
        double xi = x[i], yi = y[i], zi = z[i];
        for (int j = i + 1; j < ATOMS; j++) {
            double dx = xi - x[j], dy = yi - y[j], dz = zi - z[j];
            double r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < CUTOFF * CUTOFF) {
                double s6 = 1.0 / (r2 * r2 * r2);
                energy += 4.0 * s6 * (s6 - 1.0);
                close++;
            }
        }
    }
    *contacts = close;
    return energy;
}

static double gyration(void)
{
    double cx = 0, cy = 0, cz = 0, sum = 0;
    for (int i = 0; i < ATOMS; i++) {
        cx += x[i] / ATOMS;
        cy += y[i] / ATOMS;
        cz += z[i] / ATOMS;
    }
    for (int i = 0; i < ATOMS; i++)
        sum += (x[i] - cx) * (x[i] - cx) + (y[i] - cy) * (y[i] - cy) + (z[i] - cz) * (z[i] - cz);
    return sqrt(sum / ATOMS);
}

int main(void)
{
    place();
    for (int frame = 0; frame < FRAMES; frame++) {
        long contacts = 0;
        double energy = pair_energy(&contacts);
        printf("frame %2d  energy %.6g  contacts %ld  rg %.4f\n", frame, energy, contacts, gyration());
        for (int i = 0; i < ATOMS; i++) {
            x[i] *= 1.004;
            y[i] *= 1.004;
            z[i] *= 1.004;
        }
    }
    return 0;
}
