/* Light in a forest canopy: photons walk through leaf layers until they are absorbed or leave. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 40
#define PHOTONS 16000000

static const double LEAF_AREA = 5.2;
static const double REFLECT = 0.38, TRANSMIT = 0.34;

static double uniform(void)
{
    return (rand() + 0.5) / ((double)RAND_MAX + 1.0);
}

int main(void)
{
    static double absorbed[LAYERS];
    double escaped = 0.0, ground = 0.0, scatterings = 0.0;

    srand(12345);
    #pragma omp parallel
    {
        double mine[LAYERS];
        memset(mine, 0, sizeof mine);

        #pragma omp for schedule(static) reduction(+ : escaped, ground, scatterings)
        for (long p = 0; p < PHOTONS; p++) {
            double depth = 0.0;
            double mu = sqrt(uniform());
            int down = 1;
            for (;;) {
                double step = -log(uniform()) * mu / 0.5;
                depth += down ? step : -step;
                if (depth < 0.0) {
                    escaped += 1.0;
                    break;
                }
                if (depth > LEAF_AREA) {
                    ground += 1.0;
                    break;
                }
                double fate = uniform();
                if (fate < REFLECT) {
                    down = !down;
                } else if (fate > REFLECT + TRANSMIT) {
                    int layer = (int)(depth / LEAF_AREA * LAYERS);
                    mine[layer < LAYERS ? layer : LAYERS - 1] += 1.0;
                    break;
                }
                mu = sqrt(uniform());
                scatterings += 1.0;
            }
        }

        #pragma omp critical
        for (int k = 0; k < LAYERS; k++)
            absorbed[k] += mine[k];
    }

    double sum = 0.0;
    for (int k = 0; k < LAYERS; k++)
        sum += absorbed[k];
    printf("threads %d\n", omp_get_max_threads());
    printf("albedo %.2f  ground %.2f\n", escaped / PHOTONS, ground / PHOTONS);
    printf("absorbed %.2f  top layer share %.2f\n", sum / PHOTONS, absorbed[0] / sum);
    printf("scatterings a photon %.1f\n", scatterings / PHOTONS);
    return 0;
}
