/* Fall of volcanic ash grains through a layered wind profile.
 *
 * Grain diameters (micrometres) come as one long text table; each grain is
 * followed from the top of the plume to the ground and binned by distance.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRAINS 300000
#define LAYERS 600
#define BINS 40

static void write_table(const char *path)
{
    FILE *out = fopen(path, "w");
    unsigned long long s = 88172645463325252ULL;
    if (!out)
        exit(1);
    for (int i = 0; i < GRAINS; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        double u = (double)(s >> 11) / 9007199254740992.0;
        fprintf(out, "%.4f%c", 20.0 + 380.0 * u * u, (i % 12 == 11) ? '\n' : ' ');
    }
    fclose(out);
}

static char *read_table(const char *path)
{
    FILE *in = fopen(path, "r");
    if (!in)
        exit(1);
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    char *text = malloc(size + 1);
    if (fread(text, 1, size, in) != (size_t)size)
        exit(1);
    text[size] = '\0';
    fclose(in);
    return text;
}

static int parse_table(const char *text, double *diameter)
{
    int count = 0, used = 0;
    const char *p = text;
    while (count < GRAINS && sscanf(p, "%lf%n", &diameter[count], &used) == 1) {
        p += used;
        count++;
    }
    return count;
}

static double fall_distance(double diameter, const double *wind, const double *rho)
{
    double x = 0.0, d = diameter * 1e-6;
    for (int k = LAYERS - 1; k >= 0; k--) {
        double stokes = 2400.0 * 9.81 * d * d / (18.0 * 1.8e-5);
        double drag = 1.0 + 0.15 * sqrt(stokes * d * rho[k] / 1.8e-5);
        double speed = stokes / drag;
        x += wind[k] * (12000.0 / LAYERS) / speed;
    }
    return x;
}

int main(void)
{
    char path[] = "/tmp/tephra_table_XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    write_table(path);
    char *text = read_table(path);
    double *diameter = malloc(sizeof(double) * GRAINS);
    double *distance = malloc(sizeof(double) * GRAINS);
    int count = parse_table(text, diameter);
    double wind[LAYERS], rho[LAYERS];
    for (int k = 0; k < LAYERS; k++) {
        double z = 12000.0 * (k + 0.5) / LAYERS;
        wind[k] = 4.0 + 18.0 * exp(-pow((z - 9000.0) / 2500.0, 2));
        rho[k] = 1.2 * exp(-z / 8200.0);
    }
    double total = 0.0;
    for (int season = 0; season < 6; season++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < count; i++)
            distance[i] = fall_distance(diameter[i] * (1.0 + 0.01 * season), wind, rho);
        long bins[BINS] = {0};
        for (int i = 0; i < count; i++) {
            int b = (int)(log10(distance[i] + 1.0) * 7.0);
            bins[b < BINS ? b : BINS - 1]++;
            total += log(distance[i] + 1.0);
        }
        printf("season %d: nearest bins %ld %ld %ld\n", season, bins[25], bins[30], bins[35]);
    }
    printf("%d grains, mean log distance %.6f\n", count, total / count / 6);
    unlink(path);
    free(text);
    free(diameter);
    free(distance);
    return 0;
}
