/* Flow through a porous rock sample: lattice Boltzmann method, nine velocities, two threads. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NX 768
#define NY 640
#define STEPS 1100

static const int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
static const int CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const int BACK[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
static const double W[9] = {4.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9, 1.0 / 9,
                            1.0 / 36, 1.0 / 36, 1.0 / 36, 1.0 / 36};
static const double TAU = 0.9, OMEGA = 1.0 / 0.9, FORCE = 2e-6;

static unsigned char solid[NY][NX];

static void place_grains(void)
{
    unsigned state = 2463534242u;
    for (int grain = 0; grain < 260; grain++) {
        state ^= state << 13; state ^= state >> 17; state ^= state << 5;
        int gx = (int)(state % NX);
        state ^= state << 13; state ^= state >> 17; state ^= state << 5;
        int gy = (int)(state % NY), r = 6 + (int)(state >> 28);
        for (int y = gy - r; y <= gy + r; y++)
            for (int x = gx - r; x <= gx + r; x++)
                if ((x - gx) * (x - gx) + (y - gy) * (y - gy) <= r * r)
                    solid[(y + NY) % NY][(x + NX) % NX] = 1;
    }
}

/* pull the populations from the neighbours, bounce back at grains, collide */
static double advance(const double *restrict from, double *restrict to)
{
    double flux = 0.0;
    #pragma omp parallel for schedule(static) reduction(+ : flux)
    for (int y = 0; y < NY; y++) {
        int up = y + 1 == NY ? 0 : y + 1, down = y == 0 ? NY - 1 : y - 1;
        for (int x = 0; x < NX; x++) {
            size_t here = (size_t)y * NX + x;
            if (solid[y][x])
                continue;
            int right = x + 1 == NX ? 0 : x + 1, left = x == 0 ? NX - 1 : x - 1;
            double f[9], rho = 0.0, ux = 0.0, uy = 0.0;
            for (int k = 0; k < 9; k++) {
                int sx = CX[k] > 0 ? left : CX[k] < 0 ? right : x;
                int sy = CY[k] > 0 ? down : CY[k] < 0 ? up : y;
                size_t there = (size_t)sy * NX + sx;
                f[k] = solid[sy][sx] ? from[BACK[k] * (size_t)NX * NY + here]
                                     : from[k * (size_t)NX * NY + there];
                rho += f[k];
                ux += f[k] * CX[k];
                uy += f[k] * CY[k];
            }
            double inverse = 1.0 / rho;
            ux = ux * inverse + TAU * FORCE;
            uy *= inverse;
            flux += ux;
            double square = 1.5 * (ux * ux + uy * uy);
            for (int k = 0; k < 9; k++) {
                double cu = 3.0 * (CX[k] * ux + CY[k] * uy);
                double equilibrium = W[k] * rho * (1.0 + cu + 0.5 * cu * cu - square);
                to[k * (size_t)NX * NY + here] = f[k] - OMEGA * (f[k] - equilibrium);
            }
        }
    }
    return flux / (NX * (double)NY);
}

int main(void)
{
    size_t count = 9 * (size_t)NX * NY;
    double *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b), flux = 0.0;
    if (!a || !b)
        return 1;
    place_grains();
    #pragma omp parallel for schedule(static)
    for (int y = 0; y < NY; y++)
        for (int k = 0; k < 9; k++)
            for (int x = 0; x < NX; x++)
                a[k * (size_t)NX * NY + (size_t)y * NX + x] = b[k * (size_t)NX * NY + (size_t)y * NX + x] = W[k];
    for (int step = 0; step < STEPS; step++) {
        flux = advance(a, b);
        double *swap = a;
        a = b;
        b = swap;
    }
    long open = 0;
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++)
            open += !solid[y][x];
    printf("threads %d steps %d\n", omp_get_max_threads(), STEPS);
    printf("porosity %.4f  flux %.6e\n", open / ((double)NX * NY), flux);
    free(a);
    free(b);
    return 0;
}
