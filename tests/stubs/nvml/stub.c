/* A libnvidia-ml.so.1 for machines without a GPU.
 *
 * It answers as NVML does, from a scenario (world.h). Here are the devices and what
 * one call tells of them; what takes two, or a list, is in activity.h.
 */
#include "world.h"

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
    return refusal_of(__func__, -1);
}
Return nvmlSystemGetCudaDriverVersion_v2(int *out) {
    return *out = world.cuda, refusal_of(__func__, -1);
}
Return nvmlSystemGetCudaDriverVersion(int *out) {
    return *out = world.cuda, refusal_of(__func__, -1);
}

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
    char slice[24] = ""; /* 1g.5gb of an A100 of 40 GB, 1g.10gb of an H100 of 80 GB */
    double gib = (double)g->memory_mib / (MAX_INSTANCES + 1) / 1024;
    if (device->instance >= 0) snprintf(slice, sizeof slice, " MIG 1g.%.0fgb", gib);
    snprintf(out, size, "%s%s", g->name, slice);
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
static int generation_of(const Gpu *g) { /* major number of the compute capability */
    return strstr(g->name, "V100") ? 7 : strstr(g->name, "A100") ? 8 : 9;
}
static unsigned links_of(const Gpu *g) {
    static const unsigned links[] = {[7] = 6, [8] = 12, [9] = 18}; /* of the SXM boards */
    if (g->links >= 0) return (unsigned)g->links;
    return strstr(g->name, "PCIe") ? 0 : links[generation_of(g)];
}
Return nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    ENTER(device);
    *major = generation_of(g);
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
NUMBER(nvmlDeviceGetComputeMode, unsigned, ENTER_WHOLE, g->compute_mode)
NUMBER(nvmlDeviceGetDisplayMode, unsigned, ENTER_WHOLE, 0)
NUMBER(nvmlDeviceGetDisplayActive, unsigned, ENTER_WHOLE, 0)
NUMBER(nvmlDeviceGetPerformanceState, unsigned, ENTER_WHOLE, g->p_state)
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
/* Such GPUs are cooled by their server, and the rest is Windows'. */
#define NOT_OFFERED(function) Return function(void) { return NOT_SUPPORTED; }
NOT_OFFERED(nvmlDeviceGetFanSpeed)
NOT_OFFERED(nvmlDeviceGetDriverModel)
NOT_OFFERED(nvmlDeviceGetDriverModel_v2)
typedef unsigned long long Wide;
static Wide energy_mj(const Gpu *g) { /* a superchip's counter takes in its CPU */
    return (Wide)(1000 * (area(g, now_s(), POWER) + g->module_w * now_s()));
}
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
NUMBER(nvmlDeviceGetAccountingMode, unsigned, ENTER_WHOLE, g->accounting)
Return nvmlDeviceGetTotalEccErrors(Device device, unsigned type, unsigned counter, Wide *out) {
    ENTER_WHOLE(device);
    (void)counter;
    *out = errors_of(g, type ? "ecc_uncorrected" : "ecc_corrected");
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
    unsigned links = links_of(g);
    bool by_link = generation_of(g) >= 9; /* how its NVLink errors are counted */
    switch (f->field) {
    case 38:
    case 45:
    case 52:
    case 59: /* all links together */
        if (by_link || !links) f->code = NOT_SUPPORTED;
        f->value.as_wide = f->field == 52 ? errors_of(g, "nvlink") : 0;
        break;
    case 161:
    case 162:
    case 163: /* the link that the scope names; all errors are the last one's */
        if (!by_link) f->code = NOT_SUPPORTED;
        else if (f->scope >= links) f->code = INVALID_ARGUMENT;
        f->value.as_wide =
            f->field == 161 && f->scope + 1 == links ? errors_of(g, "nvlink") : 0;
        break;
    case 91: f->value.as_wide = links; break;
    case 83: f->value.as_wide = energy_mj(g); break;
    case 185:
    case 186:
        f->type = 1; /* unsigned int */
        f->value.as_uint =
            (unsigned)(1000 * (step_now(g)->power_w + (f->scope == 1 ? g->module_w : 0)));
        break;
    case 197: f->value.as_wide = (Wide)(SEND_PER_PERCENT * area(g, now_s(), BUSY)); break;
    case 198: f->value.as_wide = (Wide)(RECEIVE_PER_PERCENT * area(g, now_s(), BUSY)); break;
    default: f->code = NOT_SUPPORTED;
    }
}
Return nvmlDeviceGetFieldValues(Device device, int count, Field *fields) {
    ENTER_WHOLE(device);
    for (int i = 0; i < count; i++) answer_field(g, &fields[i]);
    return SUCCESS;
}

#include "activity.h"
