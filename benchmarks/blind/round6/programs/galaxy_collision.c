/* Two disc galaxies of equal mass, direct summation with a softened force. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BODIES 9000
#define STEPS 56
#define SOFT2 0.01
#define DT 0.01

static double px[BODIES], py[BODIES], pz[BODIES];
static double vx[BODIES], vy[BODIES], vz[BODIES];
static double ax[BODIES], ay[BODIES], az[BODIES], phi[BODIES];
static const double mass = 2.0 / BODIES;
static uint64_t seed = 1442695040888963407ULL;

static double uniform(void)
{
    seed = seed * 6364136223846793005ULL + 1ULL;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static void disc(int first, int last, double cx, double cy, double bulk)
{
    for (int i = first; i < last; i++) {
        double r = 0.05 + sqrt(uniform());
        double a = 6.283185307179586 * uniform();
        double speed = sqrt(0.6 * r / (r * r + 0.05));
        px[i] = cx + r * cos(a);
        py[i] = cy + r * sin(a);
        pz[i] = 0.05 * (uniform() - 0.5);
        vx[i] = bulk - speed * sin(a);
        vy[i] = speed * cos(a);
        vz[i] = 0.0;
    }
}

static void forces(void)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < BODIES; i++) {
        double x = px[i], y = py[i], z = pz[i];
        double fx = 0, fy = 0, fz = 0, pot = 0;
        for (int j = 0; j < BODIES; j++) {
            double dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
            double inv = 1.0 / sqrt(dx * dx + dy * dy + dz * dz + SOFT2);
            double w = inv * inv * inv;
            fx += w * dx;
            fy += w * dy;
            fz += w * dz;
            pot -= inv;
        }
        ax[i] = mass * fx;
        ay[i] = mass * fy;
        az[i] = mass * fz;
        phi[i] = mass * (pot + 1.0 / sqrt(SOFT2));
    }
}

static double energy(void)
{
    double sum = 0;
    for (int i = 0; i < BODIES; i++)
        sum += 0.5 * mass * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i] + phi[i]);
    return sum;
}

static void kick(double dt)
{
    for (int i = 0; i < BODIES; i++) {
        vx[i] += dt * ax[i];
        vy[i] += dt * ay[i];
        vz[i] += dt * az[i];
    }
}

int main(void)
{
    disc(0, BODIES / 2, -1.5, -0.4, 0.4);
    disc(BODIES / 2, BODIES, 1.5, 0.4, -0.4);
    forces();
    double start = energy();
    for (int step = 1; step <= STEPS; step++) {
        kick(0.5 * DT);
        for (int i = 0; i < BODIES; i++) {
            px[i] += DT * vx[i];
            py[i] += DT * vy[i];
            pz[i] += DT * vz[i];
        }
        forces();
        kick(0.5 * DT);
        if (step % 14 == 0)
            printf("step %3d  energy drift %.3e\n", step, (energy() - start) / fabs(start));
    }
    double cx = 0;
    for (int i = 0; i < BODIES / 2; i++)
        cx += px[i] / (BODIES / 2);
    printf("first galaxy at %.5f\n", cx);
    return 0;
}
