/* Relax a soap film that is stretched over a wire frame (minimal surface). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>

#define N 1000
#define SWEEPS 500

static double film[2][N][N];

static double wire(int i, int j)
{
    double s = (double)i / (N - 1), t = (double)j / (N - 1);
    return 0.3 * sin(2.0 * M_PI * s) * cos(M_PI * t) + 0.1 * (s - t);
}

static double relaxed(double (*h)[N], int i, int j)
{
    double hx = 0.5 * (h[i + 1][j] - h[i - 1][j]) * (N - 1);
    double hy = 0.5 * (h[i][j + 1] - h[i][j - 1]) * (N - 1);
    double cross = 0.25 * (h[i + 1][j + 1] - h[i + 1][j - 1] - h[i - 1][j + 1] + h[i - 1][j - 1]);
    double a = 1.0 + hy * hy, b = 1.0 + hx * hx;
    double sum = a * (h[i + 1][j] + h[i - 1][j]) + b * (h[i][j + 1] + h[i][j - 1]);
    return (sum - 2.0 * hx * hy * cross) / (2.0 * (a + b));
}

static double area(double (*h)[N])
{
    double total = 0.0;
    for (int i = 0; i < N - 1; i++)
        for (int j = 0; j < N - 1; j++) {
            double hx = (h[i + 1][j] - h[i][j]) * (N - 1);
            double hy = (h[i][j + 1] - h[i][j]) * (N - 1);
            total += sqrt(1.0 + hx * hx + hy * hy);
        }
    return total / ((N - 1.0) * (N - 1.0));
}

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int edge = i == 0 || j == 0 || i == N - 1 || j == N - 1;
            film[0][i][j] = film[1][i][j] = edge ? wire(i, j) : 0.0;
        }

    int now = 0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double (*old)[N] = film[now];
        double (*fresh)[N] = film[1 - now];
#pragma omp parallel for collapse(2) schedule(dynamic)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                fresh[i][j] = relaxed(old, i, j);
        now = 1 - now;
        if ((sweep + 1) % 100 == 0)
            printf("sweep %d  area %.8f\n", sweep + 1, area(film[now]));
    }
    printf("height at the centre %.6f\n", film[now][N / 2][N / 3]);
    return 0;
}
