/* Source strengths on the panels of a hull in a following sea.
 *
 * The panels are ordered from the bow to the stern.  In slender-ship theory
 * the flow at a panel depends on the panels upstream of it, so each panel
 * sums over all panels before it, and some sweeps give the steady state.
 *
 * usage: hull PANELS SWEEPS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    double x, y, z;     /* centre */
    double area;
} panel;

static void make_hull(panel *p, int n)
{
    int rings = n / 40;
    for (int i = 0; i < n; i++) {
        double s = (double)(i / 40) / (rings ? rings : 1);
        double a = M_PI * (i % 40 + 0.5) / 40.0;
        double beam = 8.0 * sqrt(s * (1.0 - s) + 0.01);
        p[i].x = 120.0 * s;
        p[i].y = beam * cos(a);
        p[i].z = -0.7 * beam * sin(a);
        p[i].area = 1.2 + 0.3 * sin(9.0 * s);
    }
}

/* Flow at panel a that comes from strength q on panel b. */
static double influence(const panel *a, const panel *b, double q)
{
    double dx = a->x - b->x;
    double dy = a->y - b->y;
    double dz = a->z - b->z;
    double r2 = dx * dx + dy * dy + dz * dz + 0.05;
    double r = sqrt(r2);
    return q * b->area * (dx + 0.1 * r) / (r2 * r);
}

static void sweep(const panel *p, const double *q, double *flow, int n)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < i; j++)
            sum += influence(&p[i], &p[j], q[j]);
        flow[i] = sum;
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4000;
    int sweeps = argc > 2 ? atoi(argv[2]) : 4;
    panel *p = malloc(n * sizeof *p);
    double *q = malloc(n * sizeof *q);
    double *flow = malloc(n * sizeof *flow);
    if (!p || !q || !flow)
        return 1;

    make_hull(p, n);
    for (int i = 0; i < n; i++)
        q[i] = 0.01 * cos(0.002 * i);

    double change = 0.0;
    for (int k = 0; k < sweeps; k++) {
        sweep(p, q, flow, n);
        change = 0.0;
        for (int i = 0; i < n; i++) {
            double next = 0.01 * cos(0.002 * i) - 0.002 * flow[i];
            change += fabs(next - q[i]);
            q[i] = 0.5 * (q[i] + next);
        }
    }

    double drag = 0.0, lift = 0.0;
    for (int i = 0; i < n; i++) {
        drag += q[i] * flow[i] * p[i].area;
        lift += q[i] * p[i].z * p[i].area;
    }
    printf("panels: %d, sweeps: %d\n", n, sweeps);
    printf("last change: %.6e\n", change);
    printf("drag: %.8f, lift: %.8f\n", drag, lift);
    free(p);
    free(q);
    free(flow);
    return 0;
}
