/* Sticking times of one long orbit of the kicked rotor.
 *
 * A single chaotic orbit is followed for many kicks; the time that it stays
 * near the regular islands is collected in a logarithmic histogram, together
 * with the Lyapunov exponent of the orbit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define KICKS 500000000L
#define BINS 24

#define TWO_PI 6.283185307179586
#define INVERSE 0.15915494309189535

static double wrap(double a)
{
    return a - TWO_PI * floor(a * INVERSE);
}

int main(void)
{
    const double strength = 1.8;
    double theta = 1.3, momentum = 0.7;
    double tx = 1.0, ty = 0.0, exponent = 0.0;
    long bins[BINS] = {0};
    long since = 0, crossings = 0;
    int side = 0;

    for (long kick = 0; kick < KICKS; kick++) {
        double s = sin(theta);
        momentum = wrap(momentum + strength * s);
        if ((kick & 15) == 0) {
            double c = strength * cos(theta);
            double ny = ty + c * tx;
            double nx = tx + ny;
            double norm = sqrt(nx * nx + ny * ny);
            exponent += log(norm);
            tx = nx / norm;
            ty = ny / norm;
        }
        theta = wrap(theta + momentum);
        since++;
        int now = momentum > 0.5 * TWO_PI;
        if (now != side) {
            int b = 0;
            while ((since >> b) > 1 && b < BINS - 1)
                b++;
            bins[b]++;
            crossings++;
            since = 0;
            side = now;
        }
    }

    printf("%ld kicks, %ld crossings, exponent %.4f\n", KICKS, crossings,
           exponent / (double)(KICKS / 16));
    for (int b = 0; b < 8; b++)
        printf("stay of 2^%d kicks or more: %ld\n", b, bins[b]);
    return 0;
}
