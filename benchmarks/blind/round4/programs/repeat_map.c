/* Repeat map of an assembly: fold reads, smooth a match density grid, align pairs. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS 200
#define READ_LEN 50000
#define GRID 4096
#define SWEEPS 26
#define PAIRS 280
#define WINDOW 4000

static unsigned long long seed = 0x9E3779B97F4A7C15ULL;
static char fold[256];

static unsigned int draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned int)(seed >> 32);
}

static char *make_read(void)
{
    static const char letters[] = "acgtACGTN";
    char *s = malloc(READ_LEN + 1);
    for (int i = 0; i < READ_LEN; i++)
        s[i] = letters[draw() % 9];
    s[READ_LEN] = '\0';
    return s;
}

static void fold_read(char *s)
{
    for (size_t i = 0; i < strlen(s); i++)
        s[i] = fold[(unsigned char)s[i]];
}

static void smooth(const float *in, float *out)
{
    const size_t n = GRID;
#pragma omp parallel for schedule(static)
    for (size_t j = 0; j < n; j++) {
        out[j] = in[j];
        for (size_t i = 1; i + 1 < n; i++)
            out[i * n + j] = 0.25f * in[(i - 1) * n + j] + 0.5f * in[i * n + j]
                           + 0.25f * in[(i + 1) * n + j];
        out[(n - 1) * n + j] = in[(n - 1) * n + j];
    }
}

static int align(const char *a, const char *b)
{
    int row[WINDOW + 1];
    int best = 0;
    memset(row, 0, sizeof row);
    for (int i = 1; i <= WINDOW; i++) {
        int diag = 0, left = 0;
        const char c = a[i - 1];
        for (int j = 1; j <= WINDOW; j++) {
            int score = diag + (c == b[j - 1] ? 2 : -1);
            const int up = row[j] - 2;
            diag = row[j];
            if (up > score) score = up;
            if (left - 2 > score) score = left - 2;
            if (score < 0) score = 0;
            row[j] = left = score;
            if (score > best) best = score;
        }
    }
    return best;
}

int main(void)
{
    char *reads[READS];
    float *grid = malloc(sizeof(float) * GRID * GRID);
    float *next = malloc(sizeof(float) * GRID * GRID);
    long total = 0;
    double mass = 0.0;

    for (int c = 0; c < 256; c++)
        fold[c] = 'N';
    fold['a'] = fold['A'] = 'A';
    fold['c'] = fold['C'] = 'C';
    fold['g'] = fold['G'] = 'G';
    fold['t'] = fold['T'] = 'T';

    for (int r = 0; r < READS; r++)
        reads[r] = make_read();
    for (size_t k = 0; k < (size_t)GRID * GRID; k++)
        grid[k] = (float)(draw() & 7);

#pragma omp parallel for schedule(dynamic)
    for (int r = 0; r < READS; r++)
        fold_read(reads[r]);

    for (int s = 0; s < SWEEPS; s++) {
        smooth(grid, next);
        float *swap = grid;
        grid = next;
        next = swap;
    }
    for (size_t k = 0; k < (size_t)GRID * GRID; k++)
        mass += grid[k];

#pragma omp parallel for schedule(dynamic) reduction(+ : total)
    for (int p = 0; p < PAIRS; p++)
        total += align(reads[p % READS] + (p * 37) % 40000,
                       reads[(p * 7 + 3) % READS] + (p * 91) % 40000);

    printf("density %.6f\n", mass / ((double)GRID * GRID));
    printf("mean local score %.4f\n", (double)total / PAIRS);
    return 0;
}
