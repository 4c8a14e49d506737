/* Spread of an ink stain in paper of uneven absorbency, explicit time stepping. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 2000
#define STEPS 420
#define KEEP 30

static double (*now)[SIZE], (*next)[SIZE], (*fibre)[SIZE];

static void make_paper(void)
{
    unsigned int seed = 20231u;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            seed = seed * 1664525u + 1013904223u;
            double grain = (double)(seed >> 8) / 16777216.0;
            fibre[i][j] = 0.08 + 0.12 * grain + 0.03 * sin(i * 0.02) * cos(j * 0.03);
            double r = hypot(i - SIZE / 2.0, j - SIZE / 2.0);
            now[i][j] = r < 220.0 ? 1.0 : 0.0;
        }
}

static void spread(void)
{
#pragma omp parallel for schedule(static)
    for (int j = 1; j < SIZE - 1; j++)
        for (int i = 1; i < SIZE - 1; i++) {
            double middle = now[i][j];
            double around = now[i - 1][j] + now[i + 1][j] + now[i][j - 1] + now[i][j + 1];
            next[i][j] = middle + fibre[i][j] * (around - 4.0 * middle) - 1e-5 * middle;
        }
    double (*swap)[SIZE] = now;
    now = next;
    next = swap;
}

static int keep_state(const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return 1;
    for (int i = 0; i < SIZE; i += 2)
        for (int j = 0; j < SIZE; j += 2)
            fprintf(out, "%.17g\n", now[i][j]);
    return fclose(out);
}

int main(void)
{
    size_t bytes = sizeof(double) * SIZE * SIZE;
    now = malloc(bytes);
    next = malloc(bytes);
    fibre = malloc(bytes);
    char path[] = "/tmp/ink_state_XXXXXX";
    int handle = mkstemp(path);
    if (!now || !next || !fibre || handle < 0)
        return 1;
    close(handle);
    make_paper();
    memcpy(next, now, bytes);
    int kept = 0;
    for (int step = 1; step <= STEPS; step++) {
        spread();
        if (step % KEEP == 0) {
            if (keep_state(path))
                return 1;
            kept++;
        }
    }
    double total = 0.0, edge = 0.0;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            total += now[i][j];
            if (now[i][j] > 0.01)
                edge = fmax(edge, hypot(i - SIZE / 2.0, j - SIZE / 2.0));
        }
    printf("%d steps, state kept %d times\n", STEPS, kept);
    printf("ink left %.6f, radius of the stain %.3f\n", total, edge);
    unlink(path);
    return 0;
}
