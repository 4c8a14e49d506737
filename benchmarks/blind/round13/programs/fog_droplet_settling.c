/* Fog droplets settle, evaporate and are lifted by gusts over a cold meadow. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DROPLETS 300000
#define STEPS 600

static float height[DROPLETS];
static float velocity[DROPLETS];
static float radius[DROPLETS];

static void seed(void)
{
    unsigned int s = 2463534242u;
    for (int i = 0; i < DROPLETS; i++) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        height[i] = 40.0f * (s & 0xffff) / 65535.0f;
        radius[i] = 4.0f + 16.0f * ((s >> 16) & 0xff) / 255.0f;
        velocity[i] = 0.0f;
    }
}

static double advance(double t, float dt)
{
    double water = 0.0;
    float gust = 0.02f * (float)sin(0.7 * t);
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : water)
    for (int i = 0; i < DROPLETS; i++) {
        float r = radius[i];
        float terminal = 1.2e-4f * r * r;
        float humid = 1.0f - 0.1f * expf(-height[i] * 0.08f);
        velocity[i] += dt * (terminal - velocity[i]) * 4.0f;
        height[i] += dt * (gust * sqrtf(height[i] + 0.01f) - velocity[i]);
        if (height[i] < 0.0f)
            height[i] = 40.0f;
        r -= dt * 0.002f * (1.0f - humid) / r;
        radius[i] = r < 2.0f ? 20.0f : r;
        water += (double)(r * r * r);
    }
    return water;
}

int main(void)
{
    double water = 0.0, mean = 0.0;
    seed();
    for (int step = 0; step < STEPS; step++) {
        water = advance(step * 0.05, 0.05f);
        if (step % 200 == 0)
            printf("step %4d: liquid water index %.0f\n", step, water / DROPLETS);
    }
    for (int i = 0; i < DROPLETS; i++)
        mean += height[i];
    printf("mean height %.2f m, liquid water index %.0f\n", mean / DROPLETS, water / DROPLETS);
    return 0;
}
