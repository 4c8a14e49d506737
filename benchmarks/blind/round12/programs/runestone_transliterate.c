/* Transliteration of runic inscriptions into Latin letters and distances between the texts. */
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STONES 12
#define LETTERS 250000
#define WINDOW 5000

static const char *runes = "FUTArkgwhnIjEpzstBemlNdo";
static const char *latin = "futhrkgwhnijepzstbemlndo";
static char *texts[STONES];
static int row_a[WINDOW + 1], row_b[WINDOW + 1];

static uint32_t next(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static void carve(char *text, uint32_t seed)
{
    uint32_t s = seed;
    int last = 0;
    for (int i = 0; i < LETTERS; i++) {
        int r = next(&s) % 24;
        if (next(&s) % 4 == 0)
            r = (last * 5 + 3) % 24;
        text[i] = next(&s) % 9 == 0 ? ':' : runes[r];
        last = r;
    }
    text[LETTERS] = '\0';
}

static void transliterate(char *text, const char *table)
{
    for (size_t i = 0; i < strlen(text); i++)
        text[i] = table[(unsigned char)text[i]];
}

static int distance(const char *a, const char *b)
{
    int *prev = row_a, *here = row_b;
    for (int j = 0; j <= WINDOW; j++)
        prev[j] = j;
    for (int i = 1; i <= WINDOW; i++) {
        here[0] = i;
        for (int j = 1; j <= WINDOW; j++) {
            int best = prev[j - 1] + (a[i - 1] != b[j - 1]);
            if (prev[j] + 1 < best)
                best = prev[j] + 1;
            if (here[j - 1] + 1 < best)
                best = here[j - 1] + 1;
            here[j] = best;
        }
        int *swap = prev;
        prev = here;
        here = swap;
    }
    return prev[WINDOW];
}

int main(void)
{
    char table[256];
    long pairs[26][26] = {{0}};
    for (int c = 0; c < 256; c++)
        table[c] = (char)(c ? c : 1);
    for (int r = 0; r < 24; r++)
        table[(unsigned char)runes[r]] = latin[r];
    table[':'] = ' ';
    for (int s = 0; s < STONES; s++) {
        texts[s] = malloc(LETTERS + 1);
        carve(texts[s], 900u + 17u * (uint32_t)s);
        transliterate(texts[s], table);
        for (int i = 1; i < LETTERS; i++) {
            char p = texts[s][i - 1], q = texts[s][i];
            if (p >= 'a' && p <= 'z' && q >= 'a' && q <= 'z')
                pairs[p - 'a'][q - 'a']++;
        }
    }
    int nearest = 1 << 30, first = 0, second = 0;
    for (int s = 0; s < STONES; s++)
        for (int t = s + 1; t < STONES; t++) {
            int d = distance(texts[s], texts[t]);
            if (d < nearest) {
                nearest = d;
                first = s;
                second = t;
            }
        }
    long top = 0;
    int p = 0, q = 0;
    for (int i = 0; i < 26; i++)
        for (int j = 0; j < 26; j++)
            if (pairs[i][j] > top) {
                top = pairs[i][j];
                p = i;
                q = j;
            }
    printf("%d stones, commonest pair %c%c (%ld)\n", STONES, 'a' + p, 'a' + q, top);
    printf("nearest texts %d and %d, distance %d of %d\n", first, second, nearest, WINDOW);
    return 0;
}
