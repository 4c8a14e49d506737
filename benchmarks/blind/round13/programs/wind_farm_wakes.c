/* Yearly yield of candidate wind-farm layouts with a super-Gaussian wake model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TURBINES 900
#define DIRECTIONS 72
#define LAYOUTS 24
#define DIAMETER 120.0

static double px[TURBINES], py[TURBINES];
static double rx[TURBINES], ry[TURBINES];
static double speed[TURBINES];

static unsigned long long state = 88172645463325252ULL;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) * (1.0 / 9007199254740992.0);
}

static void new_layout(void)
{
    int side = 30;
    for (int i = 0; i < TURBINES; i++) {
        px[i] = (i % side) * 6.0 * DIAMETER + 200.0 * (uniform() - 0.5);
        py[i] = (i / side) * 5.0 * DIAMETER + 200.0 * (uniform() - 0.5);
    }
}

static double farm_power(double angle, double wind)
{
    double c = cos(angle), s = sin(angle), total = 0.0;
    for (int i = 0; i < TURBINES; i++) {
        rx[i] = c * px[i] + s * py[i];
        ry[i] = -s * px[i] + c * py[i];
    }
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : total)
    for (int i = 0; i < TURBINES; i++) {
        double loss = 0.0;
        for (int j = 0; j < TURBINES; j++) {
            double dx = rx[i] - rx[j];
            if (dx <= 0.0)
                continue;
            double width = 0.45 * DIAMETER + 0.04 * dx;
            double across = (ry[i] - ry[j]) / width;
            double spread = pow(1.0 + 0.08 * dx / DIAMETER, 3.0);
            double shape = exp(-0.5 * pow(across, 4.0));
            double deficit = 0.55 / spread * shape;
            loss += deficit * deficit;
        }
        double u = wind * (1.0 - sqrt(loss));
        if (u < 0.0)
            u = 0.0;
        speed[i] = u;
        double p = 0.5 * 1.2 * 0.42 * 11310.0 * u * u * u;
        total += p < 5.0e6 ? p : 5.0e6;
    }
    return total;
}

int main(void)
{
    double best = 0.0;
    int best_layout = -1;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        double sum = 0.0;
        new_layout();
        for (int d = 0; d < DIRECTIONS; d++) {
            double angle = 2.0 * M_PI * d / DIRECTIONS;
            double wind = 8.0 + 2.0 * cos(angle - 0.7);
            sum += farm_power(angle, wind);
        }
        sum /= DIRECTIONS;
        if (sum > best) {
            best = sum;
            best_layout = layout;
        }
        if (layout % 8 == 0)
            printf("layout %2d: mean power %.2f MW\n", layout, sum / 1e6);
    }
    printf("best layout %d: %.2f MW\n", best_layout, best / 1e6);
    return 0;
}
