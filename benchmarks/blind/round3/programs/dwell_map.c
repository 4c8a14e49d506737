/* Speed and dwell statistics of animal tracks, one pass per speed limit. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS 3000000
#define LIMITS 400
#define MAX_WORKERS 64

struct tally {
    double dwell;
    double path;
};

static struct tally tallies[MAX_WORKERS];
static double *px, *py, *pt;

static uint64_t state = 88172645463325252ULL;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void walk(void)
{
    double x = 0.0, y = 0.0, t = 0.0, heading = 0.0;
    for (long i = 0; i < POINTS; i++) {
        heading += 0.6 * (uniform() - 0.5);
        double step = -log(1.0 - uniform());
        x += step * cos(heading);
        y += step * sin(heading);
        t += 0.5 + uniform();
        px[i] = x;
        py[i] = y;
        pt[i] = t;
    }
}

/* Time spent below the limit, and the length of the path covered above it. */
static void speed_pass(double limit, double *dwell, double *path)
{
    int workers = omp_get_max_threads();
    for (int w = 0; w < workers; w++)
        tallies[w].dwell = tallies[w].path = 0.0;

#pragma omp parallel for schedule(static)
    for (long i = 1; i < POINTS; i++) {
        int me = omp_get_thread_num();
        double dx = px[i] - px[i - 1];
        double dy = py[i] - py[i - 1];
        double dt = pt[i] - pt[i - 1];
        double length = sqrt(dx * dx + dy * dy);
        if (length < limit * dt)
            tallies[me].dwell += dt;
        else
            tallies[me].path += length;
    }

    *dwell = *path = 0.0;
    for (int w = 0; w < workers; w++) {
        *dwell += tallies[w].dwell;
        *path += tallies[w].path;
    }
}

/* Mean turning angle in windows of the given width. */
static double turning(long width)
{
    double total = 0.0;
#pragma omp parallel for reduction(+ : total) schedule(static)
    for (long i = width; i < POINTS - width; i++) {
        double ax = px[i] - px[i - width], ay = py[i] - py[i - width];
        double bx = px[i + width] - px[i], by = py[i + width] - py[i];
        total += fabs(atan2(ax * by - ay * bx, ax * bx + ay * by));
    }
    return total / (double)(POINTS - 2 * width);
}

int main(void)
{
    px = malloc(POINTS * sizeof *px);
    py = malloc(POINTS * sizeof *py);
    pt = malloc(POINTS * sizeof *pt);
    if (!px || !py || !pt)
        return 1;
    walk();
    printf("%d points, %.0f s\n", POINTS, pt[POINTS - 1]);

    double area = 0.0;
    for (int k = 0; k < LIMITS; k++) {
        double dwell, path;
        speed_pass(0.2 + 0.0075 * k, &dwell, &path);
        area += dwell;
        if (k % 100 == 0)
            printf("limit %.2f: dwell %.6e s, path %.6e m\n", 0.2 + 0.0075 * k, dwell, path);
    }
    printf("area %.6e\n", area);

    for (long width = 1; width <= 160; width++) {
        double mean = turning(width);
        if (width % 40 == 0)
            printf("turn over %ld points: %.5f rad\n", width, mean);
    }
    free(px);
    free(py);
    free(pt);
    return 0;
}
