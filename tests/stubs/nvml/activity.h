/* What a GPU's processes and pipes did between two looks, and what went wrong. */
#pragma once
#include "world.h"

/* ---- processes ---------------------------------------------------------- */

typedef struct { unsigned pid; uint64_t used_bytes; } ProcessV1;
typedef struct {
    unsigned pid;
    uint64_t used_bytes;
    unsigned gpu_instance, compute_instance;
} ProcessV2;
enum { MAX_PROCESSES = 64 };

/* The scenario's processes of one type (`C`, `G` or `M`, 0: all of them). A file is read anew each
 * time, so that they can come and go. */
static unsigned processes_of(Device d, char type, ProcessV2 *out) {
    const Gpu *g = &world.gpus[d->gpu];
    unsigned count = 0, pid;
    long long mib;
    char line[64], types[8];
    if (d->instance > 0) return 0; /* all of them run on the first instance */
    unsigned where = d->instance < 0 ? UINT32_MAX : 7;
    if (g->own_pid && (!type || type == 'C')) out[count++] = (ProcessV2){(unsigned)g->own_pid, 512 * MIB, where, where};
    FILE *file = *g->process_file ? fopen(g->process_file, "r") : NULL;
    while (file && count < MAX_PROCESSES && fgets(line, sizeof line, file)) {
        mib = 512;
        strcpy(types, "C");
        if (sscanf(line, "%u %lld %7s", &pid, &mib, types) < 1) continue;
        if (type && !strchr(types, type)) continue;
        uint64_t used = mib < 0 ? NOT_AVAILABLE : (uint64_t)mib * MIB;
        out[count++] = (ProcessV2){pid, used, where, where};
    }
    if (file) fclose(file);
    return count;
}

/* NVML's two-step protocol: too small a buffer is answered with the size. */
static Return list_processes(Device d, unsigned *count, void *out, char type, bool first_version) {
    ProcessV2 found[MAX_PROCESSES];
    unsigned room = *count;
    *count = processes_of(d, type, found);
    if (*count > room || (*count && !out)) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        if (first_version) ((ProcessV1 *)out)[i] = (ProcessV1){found[i].pid, found[i].used_bytes};
        else ((ProcessV2 *)out)[i] = found[i];
    }
    return SUCCESS;
}

#define PROCESSES(function, type, first_version)                        \
    Return function(Device device, unsigned *count, void *out) {        \
        ENTER(device);                                                  \
        return list_processes(device, count, out, type, first_version); \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses, 'C', true)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, 'C', false)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 'C', false)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, 'G', true)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G', false)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', false)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, 'M', true)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M', false)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', false)

typedef struct { unsigned pid; uint64_t at_us; unsigned sm, memory, encoder, decoder; } ProcessLoad;

/* The driver samples twice a second and keeps ten seconds; an idle process has no sample. */
Return nvmlDeviceGetProcessUtilization(Device device, ProcessLoad *out, unsigned *count,
                                       unsigned long long since_us) {
    ProcessV2 found[MAX_PROCESSES];
    ENTER_WHOLE(device);
    if (g->instances) return NOT_SUPPORTED;
    unsigned room = *count;
    uint64_t at_us = 0;
    double load = 0;
    long newest = (long)(2 * now_s());
    for (long tick = newest; tick > 0 && tick > newest - 20 && load == 0; tick--) {
        at_us = (uint64_t)(500000 * tick);
        if (at_us <= since_us) break;
        load = step_at(g, 0.5 * (double)tick)->busy_percent;
    }
    *count = load > 0 ? processes_of(device, 0, found) : 0;
    if (!*count) return NOT_FOUND;
    if (*count > room || !out) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        unsigned share = (unsigned)load / *count;
        out[i] = (ProcessLoad){found[i].pid, at_us, share, share / 2, 0, 0};
    }
    return SUCCESS;
}

/* ---- performance monitoring (GPM) --------------------------------------- */

typedef struct { Handle of; double at_s; bool taken; } Sample;
typedef struct {
    unsigned id;
    Return code;
    double value;
    const char *short_name, *long_name, *unit;
} GpmMetric;
typedef struct { unsigned version, count; Sample *first, *second; GpmMetric metrics[]; } GpmRequest;

static int live_samples;
int stub_live_samples(void) { return live_samples; } /* for tests: what was not given back */

Return nvmlGpmQueryDeviceSupport(Device device, unsigned out[2]) { /* version, supported */
    ENTER_WHOLE(device);
    if (out[0] != 1) return INVALID_ARGUMENT;
    out[1] = generation_of(g) >= 9;
    return SUCCESS;
}
Return nvmlGpmSampleAlloc(Sample **out) {
    Return code = refusal_of(__func__, -1);
    if (code) return code;
    *out = calloc(1, sizeof **out);
    live_samples++;
    return *out ? SUCCESS : UNKNOWN;
}
Return nvmlGpmSampleFree(Sample *sample) {
    free(sample);
    live_samples--;
    return SUCCESS;
}
Return nvmlGpmSampleGet(Device device, Sample *out) {
    ENTER_WHOLE(device);
    if (generation_of(g) < 9) return NOT_SUPPORTED;
    *out = (Sample){g->whole, now_s(), true};
    return SUCCESS;
}
Return nvmlGpmMigSampleGet(Device device, unsigned gpu_instance, Sample *out) {
    ENTER_WHOLE(device);
    if (generation_of(g) < 9) return NOT_SUPPORTED;
    if (gpu_instance < 7 || gpu_instance - 7 >= g->instances) return INVALID_ARGUMENT;
    *out = (Sample){g->instance[gpu_instance - 7], now_s(), true};
    return SUCCESS;
}

/* Instance K of N has (K + 1) / N of the whole's figures, so that each has its own. */
static void answer_gpm(const Sample *first, const Sample *second, GpmMetric *m) {
    const Gpu *g = &world.gpus[first->of.gpu];
    int part = first->of.instance, slot = -1;
    char what[16];
    snprintf(what, sizeof what, "gpm:%u", m->id);
    Return code = refusal_of(what, first->of.gpu);
    for (int i = 0; i < GPM_COUNT; i++)
        if (gpm_metrics[i].id == m->id) slot = i;
    if (slot < 0 || (part >= 0 && m->id >= 20)) code = NOT_SUPPORTED;
    m->code = code == UNAVAILABLE ? SUCCESS : code;
    m->value = NAN;
    m->unit = m->id < 20 ? "%" : "MiB/s";
    if (code) return;
    double span_s = second->at_s - first->at_s, share = 1;
    if (part >= 0) share = (part + 1.0) / g->instances;
    double sum = area(g, second->at_s, GPM(slot)) - area(g, first->at_s, GPM(slot));
    /* So close together both samples hold the same counters. */
    m->value = span_s > 0.1 ? share * sum / span_s : 0;
}
Return nvmlGpmMetricsGet(GpmRequest *request) {
    Sample *first = request->first, *second = request->second;
    if (request->version != 1 || !first || !second || !first->taken || !second->taken)
        return INVALID_ARGUMENT;
    if (first->of.gpu != second->of.gpu || first->of.instance != second->of.instance)
        return INVALID_ARGUMENT;
    Return code = check(&first->of, __func__);
    for (unsigned i = 0; !code && i < request->count; i++)
        answer_gpm(first, second, &request->metrics[i]);
    return code;
}

/* ---- events ------------------------------------------------------------- */

typedef struct { bool listens[MAX_GPUS]; int next[MAX_GPUS]; } EventSet;
typedef struct {
    Device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} EventData;

Return nvmlEventSetCreate(EventSet **out) {
    Return code = refusal_of(__func__, -1);
    if (!code) *out = calloc(1, sizeof **out);
    return code;
}
Return nvmlEventSetFree(EventSet *set) { return free(set), SUCCESS; }
Return nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet *set) {
    ENTER_WHOLE(device);
    if (types != 8) return NOT_SUPPORTED;
    int next = 0; /* what was before is not told */
    while (next < g->error_count && g->errors[next].at_s <= now_s()) next++;
    set->listens[device->gpu] = true;
    set->next[device->gpu] = next;
    return SUCCESS;
}
Return nvmlEventSetWait_v2(EventSet *set, EventData *out, unsigned timeout_ms) {
    Return code = refusal_of(__func__, -1);
    if (code) return code;
    for (int i = 0; i < MAX_GPUS; i++) {
        Gpu *g = &world.gpus[i];
        while (set->listens[i] && set->next[i] < g->error_count) {
            const Error *e = &g->errors[set->next[i]];
            if (e->at_s > now_s()) break;
            set->next[i]++;
            if (strcmp(e->kind, "xid")) continue;
            unsigned part = e->instance < 0 ? UINT32_MAX : 7u + (unsigned)e->instance;
            *out = (EventData){&g->whole, 8, e->value, part, UINT32_MAX};
            return SUCCESS;
        }
    }
    if (timeout_ms) usleep(1000 * timeout_ms); // which would sleep for 0 as well
    return TIMEOUT;
}
