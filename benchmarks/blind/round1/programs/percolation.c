/* site percolation: mean cluster mass by Monte Carlo, each thread its own samples */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define L 300
#define RUNS 1500

static unsigned next(unsigned *s) {
    *s ^= *s << 13; *s ^= *s >> 17; *s ^= *s << 5;
    return *s;
}

int main(void) {
    double mass = 0;
#pragma omp parallel for schedule(dynamic, 4) reduction(+:mass)
    for (int run = 0; run < RUNS; run++) {
        unsigned s = 2463534242u + run * 7919u;
        char *g = malloc(L * L);
        int *stack = malloc(sizeof(int) * L * L * 4);
        for (int i = 0; i < L * L; i++) g[i] = next(&s) % 1000 < 590;
        for (int rep = 0; rep < 6; rep++) {
            for (int i = 0; i < L * L; i++) if (g[i] == 2) g[i] = next(&s) % 1000 < 590;
            int top = 0;
            long hit = 0;
            for (int c = 0; c < L; c++) stack[top++] = c;
            while (top) {
                int k = stack[--top];
                if (k < 0 || k >= L * L || g[k] != 1) continue;
                g[k] = 2; hit++;
                if (top < L * L * 4 - 4) {
                    stack[top++] = k + L; stack[top++] = k - L;
                    if (k % L) stack[top++] = k - 1;
                    if (k % L != L - 1) stack[top++] = k + 1;
                }
            }
            mass += hit;
        }
        free(g); free(stack);
    }
    printf("mean mass %.2f\n", mass / RUNS / 6);
    return 0;
}
