/* Mixing of a tracer in the sea floor: burrows, advection with the sediment, and decay. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS 8000   /* along the transect */
#define COLS 700    /* depth */
#define STEPS 400
#define SAVE_EVERY 80

static double now[ROWS][COLS], next[ROWS][COLS], mixing[COLS];

static void start(void)
{
    for (int j = 0; j < COLS; j++)
        mixing[j] = 0.22 * exp(-j / 160.0) + 0.01;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            now[i][j] = 10.0 * exp(-j / 90.0) * (1.0 + 0.3 * sin(i * 0.011)) + 0.05 * sin(i * 0.9 + j);
}

static void advance(void)
{
    #pragma omp parallel for schedule(static)
    for (int j = 1; j < COLS - 1; j++) {
        for (int i = 1; i < ROWS - 1; i++) {
            double across = now[i - 1][j] + now[i + 1][j] - 2.0 * now[i][j];
            double down = now[i][j - 1] + now[i][j + 1] - 2.0 * now[i][j];
            double settle = now[i][j - 1] - now[i][j];
            next[i][j] = (now[i][j] + mixing[j] * (across + down) + 0.02 * settle) * 0.9999;
        }
    }
    #pragma omp parallel for schedule(static)
    for (int i = 1; i < ROWS - 1; i++) {
        next[i][0] = now[i][0];
        next[i][COLS - 1] = next[i][COLS - 2];
        for (int j = 0; j < COLS; j++)
            now[i][j] = next[i][j];
    }
}

static void save(const char *folder, int step)
{
    char path[512];
    snprintf(path, sizeof path, "%s/restart", folder);
    FILE *out = fopen(path, "w");
    if (!out) {
        perror(path);
        exit(1);
    }
    fprintf(out, "%d\n", step);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++)
            fprintf(out, "%.10g ", now[i][j]);
        fprintf(out, "\n");
    }
    fclose(out);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    start();
    for (int step = 1; step <= STEPS; step++) {
        advance();
        if (step % SAVE_EVERY == 0)
            save(argv[1], step);
    }
    double total = 0.0, depth = 0.0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) {
            total += now[i][j];
            depth += now[i][j] * j;
        }
    printf("threads %d steps %d\n", omp_get_max_threads(), STEPS);
    printf("tracer %.6e, mean depth %.4f\n", total, depth / total);
    return 0;
}
