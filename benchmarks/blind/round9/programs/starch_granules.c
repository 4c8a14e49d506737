/* Read granule positions and sizes from a microscope text export; sizes and pair distances. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRANULES 90000

static unsigned long long state = 88172645463325252ULL;

static double uniform(void)
{
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void export_file(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) { perror(path); exit(1); }
    for (int i = 0; i < GRANULES; i++)
        fprintf(f, "%11.5f %11.5f %11.6f\n", 20000.0 * uniform(), 20000.0 * uniform(),
                4.0 + 9.0 * pow(uniform(), 1.7));
    fclose(f);
}

static char *whole_file(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) { perror(path); exit(1); }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = malloc(size + 1);
    if (fread(text, 1, size, f) != (size_t)size) exit(1);
    text[size] = '\0';
    fclose(f);
    return text;
}

static int parse(const char *text, double *value, int limit)
{
    int count = 0;
    int used;
    while (count < limit && sscanf(text, "%lf%n", &value[count], &used) == 1) {
        text += used;
        count++;
    }
    return count;
}

int main(void)
{
    char path[] = "/tmp/granules_XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) { perror("mkstemp"); return 1; }
    close(fd);
    export_file(path);
    char *text = whole_file(path);
    double *value = malloc(sizeof(double) * 3 * GRANULES);
    int count = parse(text, value, 3 * GRANULES) / 3;

    double mean = 0.0, volume = 0.0;
    for (int i = 0; i < count; i++) {
        mean += value[3 * i + 2];
        volume += pow(value[3 * i + 2], 3.0);
    }
    long pairs[40] = {0};
    for (int i = 0; i < count / 2; i++)
        for (int j = i + 1; j < count / 2; j++) {
            double dx = value[3 * i] - value[3 * j], dy = value[3 * i + 1] - value[3 * j + 1];
            double d2 = dx * dx + dy * dy;
            if (d2 < 40000.0)
                pairs[(int)(sqrt(d2) / 5.0)]++;
        }
    long near = 0, far = 0;
    for (int k = 0; k < 40; k++)
        if (k < 10) near += pairs[k]; else far += pairs[k];
    printf("granules %d\n", count);
    printf("mean diameter %.3f um, volume mean %.3f um\n", mean / count, cbrt(volume / count));
    printf("pairs under 50 um %ld, under 200 um %ld\n",
           near, near + far);
    unlink(path);
    return 0;
}
