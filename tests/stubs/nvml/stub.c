/* A libnvidia-ml.so.1 for machines without a GPU.
 *
 * It answers as NVML does, from a scenario file named by TEHO_STUB_NVML (its
 * language is in README.md). A trace gives each GPU's load as steps that hold
 * until the next one; the energy and PCIe counters are the exact integrals of
 * those steps, so a test can compute every figure that a reader should see.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_GPUS = 16, MAX_INSTANCES = 7, MAX_STEPS = 512, MAX_REFUSALS = 64 };
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

typedef int Return;
typedef struct { int gpu, instance; } Handle; /* instance -1: the whole GPU */
typedef Handle *Device;

typedef struct {
    double at_s, busy_percent, used_mib, power_w, clock_mhz, temperature_c;
    long long throttle;
} Step;

typedef struct {
    char name[256], uuid[48], process_file[256];
    pid_t own_pid;
    unsigned instances, reserved_mib;
    uint64_t memory_mib;
    double power_limit_w, lost_at_s;
    Handle whole, instance[MAX_INSTANCES];
    Step steps[MAX_STEPS];
    int step_count;
} Gpu;

typedef struct { char what[80]; int gpu; Return code; } Refusal; /* gpu -1: all */

static struct {
    bool loop;
    unsigned gpu_count, users; /* of nvmlInit */
    Return init_code;
    double epoch_s, end_s;
    char driver[32];
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

static double busy_of(const Step *s) { return s->busy_percent; }
static double power_of(const Step *s) { return s->power_w; }

/* Integral of one column from 0 to t_s, within one pass through the trace. */
static double area_once(const Gpu *g, double t_s, double (*column)(const Step *)) {
    double sum = 0;
    for (int i = 0; i < g->step_count && g->steps[i].at_s < t_s; i++) {
        bool last = i + 1 == g->step_count;
        double until = last || g->steps[i + 1].at_s > t_s ? t_s : g->steps[i + 1].at_s;
        sum += column(&g->steps[i]) * (until - g->steps[i].at_s);
    }
    return sum;
}

static double area(const Gpu *g, double t_s, double (*column)(const Step *)) {
    if (!world.loop || world.end_s <= 0) return area_once(g, t_s, column);
    double passes = (double)(long)(t_s / world.end_s);
    return passes * area_once(g, world.end_s, column) +
           area_once(g, t_s - passes * world.end_s, column);
}

static const Step *step_now(const Gpu *g) {
    static const Step idle = {.power_w = 60, .clock_mhz = 345, .temperature_c = 30};
    double t_s = now_s();
    if (world.loop && world.end_s > 0) t_s -= world.end_s * (double)(long)(t_s / world.end_s);
    const Step *found = &idle;
    for (int i = 0; i < g->step_count && g->steps[i].at_s <= t_s; i++) found = &g->steps[i];
    return found;
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
    memset(&world, 0, sizeof world);
    strcpy(world.driver, "550.54.15");
    world.gpu_count = 1;
    world.epoch_s = monotonic_s();
    for (unsigned i = 0; i < MAX_GPUS; i++) {
        Gpu *g = &world.gpus[i];
        *g = (Gpu){.name = "NVIDIA H100 80GB HBM3", .memory_mib = 81559, .reserved_mib = 512,
                   .power_limit_w = 700, .lost_at_s = -1, .whole = {(int)i, -1}};
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
    else if (!strcmp(key, "processes") && !strcmp(value, "self")) g->own_pid = getpid();
    else if (!strcmp(key, "processes") && !strcmp(value, "parent")) g->own_pid = getppid();
    else if (!strcmp(key, "processes") && !strncmp(value, "file ", 5))
        snprintf(g->process_file, sizeof g->process_file, "%s", value + 5);
    else fprintf(stderr, "stub nvml: unknown key '%s %s'\n", key, value);
}

static void read_line(const char *line) {
    char key[80], who[16], value[256];
    Step s = {.clock_mhz = 1980, .temperature_c = 45};
    if (sscanf(line, "%lf %15s %lf %lf %lf %lf %lf %lli", &s.at_s, who, &s.busy_percent,
               &s.used_mib, &s.power_w, &s.clock_mhz, &s.temperature_c, &s.throttle) >= 5) {
        for (int i = 0; i < MAX_GPUS; i++) {
            Gpu *g = &world.gpus[i];
            if ((*who == '*' || atoi(who) == i) && g->step_count < MAX_STEPS)
                g->steps[g->step_count++] = s;
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

/* ---- library and system ------------------------------------------------- */

Return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    Return code = world.users ? SUCCESS : read_scenario();
    if (!code) world.users++;
    return code;
}
Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Return nvmlInit(void) { return nvmlInitWithFlags(0); }
Return nvmlShutdown(void) {
    if (!world.users) return UNINITIALIZED;
    world.users--;
    return SUCCESS;
}

const char *nvmlErrorString(Return code) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) return codes[i].words;
    return code == SUCCESS ? "Success" : "Unknown Error";
}

Return nvmlSystemGetDriverVersion(char *out, unsigned size) {
    snprintf(out, size, "%s", world.driver);
    return SUCCESS;
}
Return nvmlSystemGetCudaDriverVersion_v2(int *out) { return *out = 12040, SUCCESS; }
Return nvmlSystemGetCudaDriverVersion(int *out) { return *out = 12040, SUCCESS; }

/* ---- devices and what stands on their label ----------------------------- */

Return nvmlDeviceGetCount_v2(unsigned *count) {
    if (!world.users) return UNINITIALIZED;
    Return code = refusal_of(__func__, -1);
    *count = world.gpu_count;
    return code;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *out) {
    if (!world.users) return UNINITIALIZED;
    if (index >= world.gpu_count) return INVALID_ARGUMENT;
    *out = &world.gpus[index].whole;
    return check(*out, __func__);
}

static void uuid_of(Device d, char *out) {
    if (d->instance < 0) strcpy(out, world.gpus[d->gpu].uuid);
    else write_uuid(out, "MIG", (unsigned)d->gpu, (unsigned)d->instance + 1);
}

Return nvmlDeviceGetHandleByUUID(const char *uuid, Device *out) {
    char candidate[48];
    for (unsigned i = 0; i < world.gpu_count; i++) {
        Gpu *g = &world.gpus[i];
        for (int k = -1; k < (int)g->instances; k++) {
            *out = k < 0 ? &g->whole : &g->instance[k];
            uuid_of(*out, candidate);
            if (!strcmp(candidate, uuid)) return check(*out, __func__);
        }
    }
    return NOT_FOUND;
}

Return nvmlDeviceGetUUID(Device device, char *out, unsigned size) {
    char uuid[48];
    ENTER(device);
    uuid_of(device, uuid);
    snprintf(out, size, "%s", uuid);
    return SUCCESS;
}
Return nvmlDeviceGetName(Device device, char *out, unsigned size) {
    ENTER(device);
    snprintf(out, size, "%s%s", g->name, device->instance < 0 ? "" : " MIG 1g.5gb");
    return SUCCESS;
}
Return nvmlDeviceGetSerial(Device device, char *out, unsigned size) {
    ENTER_WHOLE(device);
    snprintf(out, size, "16500%08d", device->gpu);
    return SUCCESS;
}

typedef struct {
    char legacy_id[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

static unsigned bus_of(int gpu) { return 0x07u + 0x10u * (unsigned)gpu; }

Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo *out) {
    ENTER_WHOLE(device);
    *out = (PciInfo){.bus = bus_of(device->gpu), .pci_device_id = 0x233010de};
    snprintf(out->legacy_id, sizeof out->legacy_id, "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return SUCCESS;
}
Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device *out) {
    unsigned domain = 0, bus = 0;
    sscanf(bus_id, "%x:%x", &domain, &bus);
    for (unsigned i = 0; i < world.gpu_count; i++)
        if (bus_of((int)i) == bus) return *out = &world.gpus[i].whole, check(*out, __func__);
    return NOT_FOUND;
}
Return nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    ENTER(device);
    *major = strstr(g->name, "V100") ? 7 : strstr(g->name, "A100") ? 8 : 9;
    *minor = 0;
    return SUCCESS;
}

/* An answer of one number; `entry` is ENTER or ENTER_WHOLE. */
#define NUMBER(function, type, entry, value)       \
    Return function(Device device, type *out) {    \
        entry(device);                             \
        *out = (type)(value);                      \
        return SUCCESS;                            \
    }
NUMBER(nvmlDeviceGetIndex, unsigned, ENTER, device->instance < 0 ? device->gpu : device->instance)
/* Not the index: a reader that takes the one for the other is found out. */
NUMBER(nvmlDeviceGetMinorNumber, unsigned, ENTER_WHOLE, (int)world.gpu_count - 1 - device->gpu)
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, ENTER_WHOLE, 1)
NUMBER(nvmlDeviceGetComputeMode, unsigned, ENTER_WHOLE, 0)
NUMBER(nvmlDeviceGetDisplayMode, unsigned, ENTER_WHOLE, 0)
NUMBER(nvmlDeviceGetDisplayActive, unsigned, ENTER_WHOLE, 0)
NUMBER(nvmlDeviceGetPerformanceState, unsigned, ENTER_WHOLE, 0)
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, ENTER_WHOLE, 1000 * g->power_limit_w)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, ENTER_WHOLE, 1000 * g->power_limit_w)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, ENTER_WHOLE, 1000 * g->power_limit_w)

/* ---- MIG ---------------------------------------------------------------- */

Return nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
    ENTER_WHOLE(device);
    if (strstr(g->name, "V100")) return NOT_SUPPORTED;
    *current = *pending = g->instances > 0;
    return SUCCESS;
}
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, ENTER, g->instances ? MAX_INSTANCES : 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, ENTER, device->instance >= 0)
Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *out) {
    ENTER(device);
    if (index >= g->instances) return NOT_FOUND;
    *out = &world.gpus[device->gpu].instance[index];
    return SUCCESS;
}
Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device *out) {
    ENTER(device);
    *out = &world.gpus[device->gpu].whole;
    return SUCCESS;
}
Return nvmlDeviceGetGpuInstanceId(Device device, unsigned *out) {
    ENTER(device);
    if (device->instance < 0) return NOT_SUPPORTED;
    *out = 7u + (unsigned)device->instance; /* as an A100 numbers its 1g slices */
    return SUCCESS;
}
Return nvmlDeviceGetComputeInstanceId(Device device, unsigned *out) {
    ENTER(device);
    if (device->instance < 0) return NOT_SUPPORTED;
    *out = 0;
    return SUCCESS;
}

/* ---- load --------------------------------------------------------------- */

typedef struct { uint64_t total, free, used; } Memory;
typedef struct { unsigned version; uint64_t total, reserved, free, used; } MemoryV2;

static MemoryV2 memory_of(Device d) {
    const Gpu *g = &world.gpus[d->gpu];
    uint64_t parts = d->instance < 0 ? 1 : MAX_INSTANCES + 1;
    MemoryV2 m = {.total = g->memory_mib * MIB / parts, .reserved = g->reserved_mib * MIB / parts};
    m.used = (uint64_t)(step_now(g)->used_mib * (double)MIB) / parts;
    m.free = m.total - m.reserved - m.used;
    return m;
}
Return nvmlDeviceGetMemoryInfo(Device device, Memory *out) {
    ENTER(device);
    MemoryV2 m = memory_of(device);
    *out = (Memory){m.total, m.free, m.used + m.reserved}; /* the old call counts the reserve */
    return SUCCESS;
}
Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2 *out) {
    ENTER(device);
    unsigned version = out->version;
    *out = memory_of(device);
    out->version = version;
    return SUCCESS;
}
Return nvmlDeviceGetBAR1MemoryInfo(Device device, Memory *out) {
    ENTER(device);
    *out = (Memory){65536 * MIB, 65535 * MIB, MIB};
    return SUCCESS;
}
Return nvmlDeviceGetUtilizationRates(Device device, unsigned out[2]) {
    ENTER_WHOLE(device);
    if (g->instances) return NOT_SUPPORTED; /* as the driver answers in MIG mode */
    out[0] = (unsigned)step_now(g)->busy_percent;
    out[1] = out[0] / 2;
    return SUCCESS;
}
#define NO_CODEC(function)                                                     \
    Return function(Device device, unsigned *busy_percent, unsigned *period_us) { \
        ENTER_WHOLE(device);                                                   \
        return *busy_percent = 0, *period_us = 167000, SUCCESS;                \
    }
NO_CODEC(nvmlDeviceGetEncoderUtilization)
NO_CODEC(nvmlDeviceGetDecoderUtilization)
Return nvmlDeviceGetClockInfo(Device device, unsigned type, unsigned *out) {
    ENTER(device);
    *out = type == 2 ? 2619 : (unsigned)step_now(g)->clock_mhz;
    return SUCCESS;
}
Return nvmlDeviceGetMaxClockInfo(Device device, unsigned type, unsigned *out) {
    ENTER(device);
    *out = type == 2 ? 2619 : 1980;
    return SUCCESS;
}
Return nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *out) {
    ENTER_WHOLE(device);
    if (sensor) return INVALID_ARGUMENT;
    *out = (unsigned)step_now(g)->temperature_c;
    return SUCCESS;
}
Return nvmlDeviceGetTemperatureV(Device device, unsigned inout[3]) { /* version, sensor, value */
    ENTER_WHOLE(device);
    inout[2] = (unsigned)step_now(g)->temperature_c;
    return SUCCESS;
}
/* Such GPUs are cooled by their server, and the rest is Windows' or has no errors to count. */
#define NOT_OFFERED(function) Return function(void) { return NOT_SUPPORTED; }
NOT_OFFERED(nvmlDeviceGetFanSpeed)
NOT_OFFERED(nvmlDeviceGetDriverModel)
NOT_OFFERED(nvmlDeviceGetDriverModel_v2)
NOT_OFFERED(nvmlDeviceGetTotalEccErrors)
typedef unsigned long long Wide;
static Wide energy_mj(const Gpu *g) { return (Wide)(1000 * area(g, now_s(), power_of)); }
NUMBER(nvmlDeviceGetTotalEnergyConsumption, Wide, ENTER_WHOLE, energy_mj(g))
NUMBER(nvmlDeviceGetPowerUsage, unsigned, ENTER_WHOLE, 1000 * step_now(g)->power_w)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, Wide, ENTER_WHOLE, step_now(g)->throttle)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, Wide, ENTER_WHOLE, step_now(g)->throttle)
Return nvmlDeviceGetPcieThroughput(Device device, unsigned counter, unsigned *out) { /* KB/s */
    ENTER_WHOLE(device);
    double each = counter == 0 ? SEND_PER_PERCENT : RECEIVE_PER_PERCENT;
    *out = (unsigned)(each * step_now(g)->busy_percent / 1000);
    return SUCCESS;
}

typedef struct {
    uint32_t field, scope;
    int64_t timestamp_us, latency_us;
    unsigned type;
    Return code;
    union { double as_double; unsigned as_uint; Wide as_wide; } value;
} Field;

static void answer_field(const Gpu *g, Field *f) {
    char what[16];
    snprintf(what, sizeof what, "field:%u", f->field);
    Return code = refusal_of(what, g->whole.gpu);
    f->timestamp_us = (int64_t)(1e6 * now_s());
    f->latency_us = 0;
    f->type = 3; /* unsigned long long */
    f->code = code == UNAVAILABLE ? SUCCESS : code;
    f->value.as_wide = NOT_AVAILABLE;
    if (code) return;
    switch (f->field) {
    case 83: f->value.as_wide = energy_mj(g); break;
    case 185:
    case 186:
        f->type = 1; /* unsigned int */
        f->value.as_uint = (unsigned)(1000 * step_now(g)->power_w);
        break;
    case 197: f->value.as_wide = (Wide)(SEND_PER_PERCENT * area(g, now_s(), busy_of)); break;
    case 198: f->value.as_wide = (Wide)(RECEIVE_PER_PERCENT * area(g, now_s(), busy_of)); break;
    default: f->code = NOT_SUPPORTED;
    }
}
Return nvmlDeviceGetFieldValues(Device device, int count, Field *fields) {
    ENTER_WHOLE(device);
    for (int i = 0; i < count; i++) answer_field(g, &fields[i]);
    return SUCCESS;
}

/* ---- processes ---------------------------------------------------------- */

typedef struct { unsigned pid; uint64_t used_bytes; } ProcessV1;
typedef struct {
    unsigned pid;
    uint64_t used_bytes;
    unsigned gpu_instance, compute_instance;
} ProcessV2;
enum { MAX_PROCESSES = 64 };

/* The scenario's processes: a file is read anew each time, so that they can come and go. */
static unsigned processes_of(Device d, ProcessV2 *out) {
    const Gpu *g = &world.gpus[d->gpu];
    unsigned count = 0, pid;
    long long mib;
    char line[64];
    if (d->instance > 0) return 0; /* all of them run on the first instance */
    unsigned where = d->instance < 0 ? UINT32_MAX : 7;
    if (g->own_pid) out[count++] = (ProcessV2){(unsigned)g->own_pid, 512 * MIB, where, where};
    FILE *file = *g->process_file ? fopen(g->process_file, "r") : NULL;
    while (file && count < MAX_PROCESSES && fgets(line, sizeof line, file)) {
        mib = 512;
        if (sscanf(line, "%u %lld", &pid, &mib) < 1) continue;
        uint64_t used = mib < 0 ? NOT_AVAILABLE : (uint64_t)mib * MIB;
        out[count++] = (ProcessV2){pid, used, where, where};
    }
    if (file) fclose(file);
    return count;
}

/* NVML's two-step protocol: too small a buffer is answered with the size. */
static Return list_processes(Device d, unsigned *count, void *out, bool first_version) {
    ProcessV2 found[MAX_PROCESSES];
    unsigned room = *count;
    *count = processes_of(d, found);
    if (*count > room || (*count && !out)) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        if (first_version) ((ProcessV1 *)out)[i] = (ProcessV1){found[i].pid, found[i].used_bytes};
        else ((ProcessV2 *)out)[i] = found[i];
    }
    return SUCCESS;
}

#define PROCESSES(function, first_version)                              \
    Return function(Device device, unsigned *count, void *out) {        \
        ENTER(device);                                                  \
        return list_processes(device, count, out, first_version);       \
    }
#define NO_PROCESSES(function)                                          \
    Return function(Device device, unsigned *count, void *out) {        \
        ENTER(device);                                                  \
        return (void)out, *count = 0, SUCCESS;                          \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses, true)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, false)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, false)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

typedef struct { unsigned pid; uint64_t at_us; unsigned sm, memory, encoder, decoder; } ProcessLoad;

Return nvmlDeviceGetProcessUtilization(Device device, ProcessLoad *out, unsigned *count,
                                   unsigned long long since) {
    ProcessV2 found[MAX_PROCESSES];
    (void)since;
    ENTER_WHOLE(device);
    unsigned room = *count;
    *count = processes_of(device, found);
    if (*count > room || !out) return *count ? INSUFFICIENT_SIZE : SUCCESS;
    for (unsigned i = 0; i < *count; i++) {
        unsigned share = (unsigned)step_now(g)->busy_percent / *count;
        out[i] = (ProcessLoad){found[i].pid, (uint64_t)(1e6 * now_s()), share, share / 2, 0, 0};
    }
    return SUCCESS;
}
