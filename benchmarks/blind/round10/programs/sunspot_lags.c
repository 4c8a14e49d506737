/* Structure function of a sunspot record: mean absolute difference for every lag. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define N 190000

static unsigned long long state = 88172645463325252ULL;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void make_record(double *x)
{
    double memory = 0.0;
    for (int i = 0; i < N; i++) {
        double t = i / 365.25;
        double cycle = 60.0 + 60.0 * sin(2.0 * M_PI * t / 11.04 + 0.4 * sin(2.0 * M_PI * t / 87.0));
        memory = 0.97 * memory + 8.0 * (uniform() - 0.5);
        x[i] = fmax(0.0, cycle + memory + 20.0 * (uniform() - 0.5));
    }
}

static void structure_function(const double *x, double *s)
{
#pragma omp parallel for schedule(static)
    for (int lag = 0; lag < N - 100; lag++) {
        double sum = 0.0;
        int pairs = N - lag;
        for (int i = 0; i < pairs; i++)
            sum += fabs(x[i + lag] - x[i]);
        s[lag] = sum / pairs;
    }
}

static int first_minimum(const double *s, int from, int to)
{
    int best = from;
    for (int lag = from; lag < to; lag++)
        if (s[lag] < s[best])
            best = lag;
    return best;
}

int main(void)
{
    double *x = malloc(N * sizeof *x);
    double *s = calloc(N, sizeof *s);
    if (!x || !s) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    make_record(x);
    structure_function(x, s);
    printf("%d days, %d lags\n", N, N - 100);
    printf("difference after a day %.4f, a month %.4f, a year %.4f\n", s[1], s[30], s[365]);
    int cycle = first_minimum(s, 3000, 5500);
    printf("cycle of %.3f years (difference %.4f)\n", cycle / 365.25, s[cycle]);
    int century = first_minimum(s, 29000, 36000);
    printf("long cycle of %.2f years (difference %.4f)\n", century / 365.25, s[century]);
    free(x);
    free(s);
    return 0;
}
