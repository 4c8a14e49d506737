/* What the stub knows of its GPUs: the scenario file named by TEHO_STUB_NVML (its
 * language is in README.md), the time, and who is refused what. A trace gives each
 * GPU's load as steps that hold until the next one; the energy and PCIe counters are
 * the exact integrals of those steps, and GPM's figures their means, so a test can
 * compute every figure that a reader should see.
 */
#pragma once
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_GPUS = 16, MAX_INSTANCES = 7, MAX_ERRORS = 64, MAX_REFUSALS = 64 };
enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
    NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10,
    FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15, LIB_RM_VERSION_MISMATCH = 18, NO_DATA = 21,
    UNKNOWN = 999,
    UNAVAILABLE = -1, /* not an NVML code: a field answers NVML_VALUE_NOT_AVAILABLE */
};
static const uint64_t MIB = 1024 * 1024;
static const uint64_t NOT_AVAILABLE = UINT64_MAX;

/* PCIe traffic follows the load: bytes/s for each percent of busy time. */
static const double RECEIVE_PER_PERCENT = 10e6, SEND_PER_PERCENT = 2e6;

/* GPM's metrics by NVML's number, and what each is for one percent of busy time where the
 * trace does not tell: %, but MiB/s from 20 on. */
static const struct { unsigned id; double per_percent; } gpm_metrics[] = {
    {2, 0.8}, {3, 0.4}, {4, 0.2}, {5, 0.5}, {10, 0.45}, {11, 0.01}, {12, 0.1}, {13, 0.05},
    {20, 2e6 / 1048576}, {21, 10e6 / 1048576}, {60, 40}, {61, 30},
};
enum { GPM_COUNT = sizeof gpm_metrics / sizeof *gpm_metrics };

typedef int Return;
typedef struct { int gpu, instance; } Handle; /* instance -1: the whole GPU */
typedef Handle *Device;

typedef struct {
    double at_s, busy_percent, used_mib, power_w, clock_mhz, temperature_c;
    long long throttle;
    double gpm[GPM_COUNT];
} Step;

/* Something that went wrong at one time: `xid`, or a counter and how much is added to it. */
typedef struct { double at_s; char kind[20]; unsigned long long value; int instance; } Error;

typedef struct {
    char name[256], uuid[48], process_file[256];
    pid_t own_pid;
    unsigned instances, reserved_mib;
    int links; /* -1: as the product has them */
    bool accounting;
    unsigned p_state, compute_mode;
    uint64_t memory_mib;
    double power_limit_w, module_w, lost_at_s;
    Handle whole, instance[MAX_INSTANCES];
    Step *steps;
    int step_count, error_count;
    Error errors[MAX_ERRORS];
} Gpu;

typedef struct { char what[80]; int gpu; Return code; } Refusal; /* gpu -1: all */

static struct {
    bool loop;
    unsigned gpu_count, users; /* of nvmlInit */
    Return init_code;
    double epoch_s, end_s;
    char driver[32];
    int cuda; /* as NVML numbers it: 12040 is 12.4 */
    int refusal_count;
    Refusal refusals[MAX_REFUSALS];
    Gpu gpus[MAX_GPUS];
} world;

/* ---- time and traces ---------------------------------------------------- */

static double monotonic_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds since the scenario began; TEHO_STUB_NVML_NOW stops the clock there. */
static double now_s(void) {
    const char *fixed = getenv("TEHO_STUB_NVML_NOW");
    return fixed ? atof(fixed) : monotonic_s() - world.epoch_s;
}

#define BUSY offsetof(Step, busy_percent)
#define POWER offsetof(Step, power_w)
#define GPM(i) (offsetof(Step, gpm) + (i) * sizeof(double))

/* Integral of one column from 0 to t_s, within one pass through the trace. */
static double area_once(const Gpu *g, double t_s, size_t column) {
    double sum = 0;
    for (int i = 0; i < g->step_count && g->steps[i].at_s < t_s; i++) {
        bool last = i + 1 == g->step_count;
        double until = last || g->steps[i + 1].at_s > t_s ? t_s : g->steps[i + 1].at_s;
        const double *value = (const double *)((const char *)&g->steps[i] + column);
        sum += *value * (until - g->steps[i].at_s);
    }
    return sum;
}

static double area(const Gpu *g, double t_s, size_t column) {
    if (!world.loop || world.end_s <= 0) return area_once(g, t_s, column);
    double passes = (double)(long)(t_s / world.end_s);
    return passes * area_once(g, world.end_s, column) +
           area_once(g, t_s - passes * world.end_s, column);
}

static const Step *step_at(const Gpu *g, double t_s) {
    static const Step idle = {.power_w = 60, .clock_mhz = 345, .temperature_c = 30};
    if (world.loop && world.end_s > 0) t_s -= world.end_s * (double)(long)(t_s / world.end_s);
    const Step *found = &idle;
    for (int i = 0; i < g->step_count && g->steps[i].at_s <= t_s; i++) found = &g->steps[i];
    return found;
}
static const Step *step_now(const Gpu *g) { return step_at(g, now_s()); }

/* What has been counted of one kind of error until now. */
static unsigned long long errors_of(const Gpu *g, const char *kind) {
    unsigned long long sum = 0;
    for (int i = 0; i < g->error_count; i++)
        if (!strcmp(g->errors[i].kind, kind) && g->errors[i].at_s <= now_s())
            sum += g->errors[i].value;
    return sum;
}

/* ---- the scenario file -------------------------------------------------- */

static const struct { Return code; const char *name, *words; } codes[] = {
    {UNINITIALIZED, "UNINITIALIZED", "Uninitialized"},
    {INVALID_ARGUMENT, "INVALID_ARGUMENT", "Invalid Argument"},
    {NOT_SUPPORTED, "NOT_SUPPORTED", "Not Supported"},
    {NO_PERMISSION, "NO_PERMISSION", "Insufficient Permissions"},
    {NOT_FOUND, "NOT_FOUND", "Not Found"},
    {DRIVER_NOT_LOADED, "DRIVER_NOT_LOADED", "Driver Not Loaded"},
    {TIMEOUT, "TIMEOUT", "Timeout"},
    {FUNCTION_NOT_FOUND, "FUNCTION_NOT_FOUND", "Function Not Found"},
    {GPU_IS_LOST, "GPU_IS_LOST", "GPU is lost"},
    {LIB_RM_VERSION_MISMATCH, "LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch"},
    {NO_DATA, "NO_DATA", "No data"},
    {UNAVAILABLE, "UNAVAILABLE", "-"},
};

static Return code_named(const char *name) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(name, codes[i].name)) return codes[i].code;
    return UNKNOWN;
}

/* Valid-looking and always the same; nvml_stub.py computes them likewise. */
static void write_uuid(char *out, const char *kind, unsigned gpu, unsigned instance) {
    uint32_t mixed = (gpu * 16 + instance + 1) * 2654435761u;
    sprintf(out, "%s-%08x-7465-686f-%04x-%012x", kind, mixed, 0x8000 + gpu, instance);
}

static void reset_world(void) {
    for (int i = 0; i < MAX_GPUS; i++) free(world.gpus[i].steps);
    memset(&world, 0, sizeof world);
    strcpy(world.driver, "550.54.15");
    world.cuda = 12040;
    world.gpu_count = 1;
    world.epoch_s = monotonic_s();
    for (unsigned i = 0; i < MAX_GPUS; i++) {
        Gpu *g = &world.gpus[i];
        *g = (Gpu){.name = "NVIDIA H100 80GB HBM3", .memory_mib = 81559, .reserved_mib = 512,
                   .links = -1, .power_limit_w = 700, .lost_at_s = -1, .whole = {(int)i, -1}};
        write_uuid(g->uuid, "GPU", i, 0);
        for (int k = 0; k < MAX_INSTANCES; k++) g->instance[k] = (Handle){(int)i, k};
    }
}

static void read_gpu_line(Gpu *g, const char *key, const char *value) {
    if (!strcmp(key, "name")) snprintf(g->name, sizeof g->name, "%s", value);
    else if (!strcmp(key, "memory_mib")) g->memory_mib = strtoull(value, NULL, 10);
    else if (!strcmp(key, "power_limit_w")) g->power_limit_w = atof(value);
    else if (!strcmp(key, "mig")) g->instances = (unsigned)atoi(value);
    else if (!strcmp(key, "lost")) g->lost_at_s = atof(value);
    else if (!strcmp(key, "nvlinks")) g->links = atoi(value);
    else if (!strcmp(key, "module_w")) g->module_w = atof(value);
    else if (!strcmp(key, "p_state")) g->p_state = (unsigned)atoi(value);
    else if (!strcmp(key, "compute_mode")) g->compute_mode = (unsigned)atoi(value);
    else if (!strcmp(key, "accounting")) g->accounting = !strcmp(value, "on");
    else if (!strcmp(key, "processes") && !strcmp(value, "self")) g->own_pid = getpid();
    else if (!strcmp(key, "processes") && !strcmp(value, "parent")) g->own_pid = getppid();
    else if (!strcmp(key, "processes") && !strncmp(value, "file ", 5))
        snprintf(g->process_file, sizeof g->process_file, "%s", value + 5);
    else fprintf(stderr, "stub nvml: unknown key '%s %s'\n", key, value);
}

static void add_step(Gpu *g, const Step *s) {
    g->steps = realloc(g->steps, (size_t)(g->step_count + 1) * sizeof *s);
    if (!g->steps) abort();
    g->steps[g->step_count++] = *s;
}

/* A step's own GPM figures, `ID=VALUE` each, in place of what follows from the load. */
static void read_gpm(Step *s, char *pairs) {
    for (int i = 0; i < GPM_COUNT; i++) s->gpm[i] = gpm_metrics[i].per_percent * s->busy_percent;
    for (char *pair = strtok(pairs, " "); pair; pair = strtok(NULL, " ")) {
        unsigned id = 0;
        double value = 0;
        bool known = false;
        if (sscanf(pair, "%u=%lf", &id, &value) == 2)
            for (int i = 0; i < GPM_COUNT; i++)
                if (gpm_metrics[i].id == id) s->gpm[i] = value, known = true;
        if (!known) fprintf(stderr, "stub nvml: unknown GPM figure '%s'\n", pair);
    }
}

/* Cuts a line before its first `ID=VALUE`, and returns the rest. */
static char *cut_gpm(char *line) {
    char *pair = strchr(line, '='), *end = line + strlen(line);
    if (!pair) return end;
    while (pair > line && pair[-1] != ' ') pair--;
    if (pair > line) pair[-1] = '\0';
    return pair;
}

static void read_line(char *line) {
    char key[80], who[16], value[256];
    Step s = {.clock_mhz = 1980, .temperature_c = 45};
    Error e = {.instance = -1};
    char *gpm = cut_gpm(line);
    if (sscanf(line, "%lf %15s %lf %lf %lf %lf %lf %lli", &s.at_s, who, &s.busy_percent,
               &s.used_mib, &s.power_w, &s.clock_mhz, &s.temperature_c, &s.throttle) >= 5) {
        read_gpm(&s, gpm);
        for (int i = 0; i < MAX_GPUS; i++)
            if (*who == '*' || atoi(who) == i) add_step(&world.gpus[i], &s);
    } else if (sscanf(line, "error %lf %15s %19s %llu %d", &e.at_s, who, e.kind, &e.value,
                      &e.instance) >= 4) {
        for (int i = 0; i < MAX_GPUS; i++) {
            Gpu *g = &world.gpus[i];
            if ((*who == '*' || atoi(who) == i) && g->error_count < MAX_ERRORS)
                g->errors[g->error_count++] = e;
        }
    } else if (sscanf(line, "fail %79s %15s %255s", key, who, value) == 3) {
        if (world.refusal_count == MAX_REFUSALS) return;
        Refusal *r = &world.refusals[world.refusal_count++];
        *r = (Refusal){.gpu = *who == '*' ? -1 : atoi(who), .code = code_named(value)};
        snprintf(r->what, sizeof r->what, "%s", key);
    } else if (sscanf(line, "gpus %u", &world.gpu_count) == 1) {
        if (world.gpu_count > MAX_GPUS) world.gpu_count = MAX_GPUS;
    } else if (sscanf(line, "init %255s", value) == 1) world.init_code = code_named(value);
    else if (sscanf(line, "epoch %lf", &world.epoch_s) == 1) return;
    else if (sscanf(line, "end %lf", &world.end_s) == 1) return;
    else if (sscanf(line, "driver %31s", world.driver) == 1) return;
    else if (sscanf(line, "cuda %d", &world.cuda) == 1) return;
    else if (!strcmp(line, "replay loop")) world.loop = true;
    else if (!strcmp(line, "replay once")) world.loop = false;
    else if (sscanf(line, "%79s %15s %255[^\n]", key, who, value) == 3) {
        for (int i = 0; i < MAX_GPUS; i++)
            if (*who == '*' || atoi(who) == i) read_gpu_line(&world.gpus[i], key, value);
    } else fprintf(stderr, "stub nvml: unknown line '%s'\n", line);
}

static Return read_scenario(void) {
    const char *path = getenv("TEHO_STUB_NVML"), *epoch = getenv("TEHO_STUB_NVML_EPOCH");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    reset_world();
    if (!file) return DRIVER_NOT_LOADED;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\r\n")] = '\0';
        size_t length = strlen(line);
        while (length && line[length - 1] == ' ') line[--length] = '\0';
        if (length) read_line(line);
    }
    fclose(file);
    if (epoch) world.epoch_s = atof(epoch);
    return world.init_code;
}

/* ---- who may ask what --------------------------------------------------- */

static Return refusal_of(const char *what, int gpu) {
    for (int i = 0; i < world.refusal_count; i++) {
        const Refusal *r = &world.refusals[i];
        if ((r->gpu == -1 || r->gpu == gpu) && !strcmp(r->what, what)) return r->code;
    }
    return SUCCESS;
}

static Return check(Device device, const char *function) {
    if (!world.users) return UNINITIALIZED;
    if (!device) return INVALID_ARGUMENT;
    const Gpu *g = &world.gpus[device->gpu];
    if (g->lost_at_s >= 0 && now_s() >= g->lost_at_s) return GPU_IS_LOST;
    return refusal_of(function, device->gpu);
}

/* Opens every device function: leaves with the error that the scenario wants. */
#define ENTER(device)                            \
    Return code_ = check(device, __func__);      \
    if (code_) return code_;                     \
    const Gpu *g = &world.gpus[(device)->gpu];   \
    (void)g

/* The same for what a MIG instance does not have. */
#define ENTER_WHOLE(device) \
    ENTER(device);          \
    if ((device)->instance >= 0) return NOT_SUPPORTED
