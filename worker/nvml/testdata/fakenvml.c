/* A libnvidia-ml.so.1 for tests, built against the binding's own nvml.h so that every layout is the true one.
 * It plays a node of GPUs whose NVLinks go to switches. Environment: FAKE_GPUS, FAKE_LINKS (of each GPU; or -DLINKS),
 * FAKE_DOWN ("GPU:LINK,…": links that are down; or -DDOWN), FAKE_INIT (what nvmlInit returns), FAKE_LOST (a GPU that is gone),
 * FAKE_C2C (whether NVLink-C2C is on; 2: the call fails; not set: a GPU without). -DBUS: the first GPU's PCI bus.
 * With -DOLD it is a driver that lacks most functions. Traffic counters move by 1 MiB at each reading. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include "nvml.h"
#ifndef DOWN
#define DOWN ""
#endif
#ifndef LINKS
#define LINKS 18
#endif
#ifndef BUS
#define BUS 0x1b
#endif

static char devices[64];
static unsigned long long reads;
static int number(const char *name, int otherwise) { const char *s = getenv(name); return s && *s ? atoi(s) : otherwise; }
static int index_of(nvmlDevice_t d) { return (int)(*(char **)&d - devices); } /* the binding makes the handle a struct of one pointer */
static int is_down(int gpu, int link) {
    const char *s = getenv("FAKE_DOWN");
    if (!s) s = DOWN;
    for (int g, l; s && sscanf(s, "%d:%d", &g, &l) == 2; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        if (g == gpu && l == link) return 1;
    return 0;
}
static void bus_id(nvmlPciInfo_t *p, unsigned bus) {
    memset(p, 0, sizeof *p);
    p->bus = bus;
    snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", bus);
}

nvmlReturn_t nvmlInit_v2(void) { return number("FAKE_INIT", 0); }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t r) { return r == NVML_SUCCESS ? "Success" : r == NVML_ERROR_UNKNOWN ? "Unknown Error" : "another error"; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { *n = number("FAKE_GPUS", 8); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
    if ((int)i == number("FAKE_LOST", -1)) return NVML_ERROR_GPU_IS_LOST;
    char *p = devices + i;
    memcpy(d, &p, sizeof p);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) { bus_id(p, BUS + 0x10 * index_of(d)); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned n) { snprintf(s, n, "NVIDIA H100 80GB HBM3"); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *s, unsigned n) { snprintf(s, n, "GPU-00000000-0000-0000-0000-%012d", index_of(d)); return NVML_SUCCESS; }

#ifndef OLD
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) { m->total = 85520809984ull; m->free = m->total; m->used = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) { *major = 9; *minor = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t d, nvmlC2cModeInfo_v1_t *c) {
    int on = number("FAKE_C2C", -1);
    c->isC2cEnabled = on > 0;
    return on == 2 ? NVML_ERROR_UNKNOWN : on < 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t d, unsigned *v) { *v = 1; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned *v) { *v = 5; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned *v) { *v = 16; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned *v) { *v = 16; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *now, nvmlEnableState_t *pending) { *now = *pending = 1; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *v) {
    *v = t == NVML_MEMORY_ERROR_TYPE_CORRECTED && c == NVML_VOLATILE_ECC ? 7 : 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned *corr, unsigned *unc, unsigned *pending, unsigned *failed) {
    *corr = 4; *unc = 2; *pending = 1; *failed = 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, nvmlPageRetirementCause_t c, unsigned *n, unsigned long long *a) { return NVML_ERROR_NOT_SUPPORTED; }
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *v) { *v = 0x1 | 0x40; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t t, unsigned *v) { *v = t == NVML_CLOCK_SM ? 345 : 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t t, unsigned *v) { *v = t == NVML_CLOCK_SM ? 1980 : 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *v) { *v = 71500; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t *v) { return NVML_ERROR_NO_PERMISSION; }
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *n, nvmlProcessInfo_t *p) { *n = 1; p[0].pid = 4242; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *f) {
    if (f->version != nvmlGpuFabricInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memset(f->clusterUuid, 0xab, sizeof f->clusterUuid);
    f->state = NVML_GPU_FABRIC_STATE_COMPLETED;
    f->status = NVML_SUCCESS;
    f->cliqueId = 3;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned l, nvmlEnableState_t *s) {
    if ((int)l >= number("FAKE_LINKS", LINKS)) return NVML_ERROR_INVALID_ARGUMENT;
    *s = !is_down(index_of(d), l);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t d, unsigned l, unsigned *v) { *v = NVML_NVLINK_VERSION_4_0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned l, nvmlIntNvLinkDeviceType_t *t) { *t = NVML_NVLINK_DEVICE_TYPE_SWITCH; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned l, nvmlPciInfo_t *p) { bus_id(p, 7 + l % 4); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned l, nvmlNvLinkErrorCounter_t c, unsigned long long *v) {
    *v = c == NVML_NVLINK_ERROR_DL_REPLAY && l == 5 ? 3 : 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v) {
    reads++;
    for (int i = 0; i < n; i++) {
        v[i].nvmlReturn = NVML_SUCCESS;
        switch (v[i].fieldId) {
        case NVML_FI_DEV_NVLINK_GET_SPEED: v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT; v[i].value.uiVal = 26562; break;
        case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
        case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX: v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG; v[i].value.ullVal = 1024 * reads; break;
        case NVML_FI_DEV_PCIE_COUNT_TX_BYTES: v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT; v[i].value.uiVal = 12345; break;
        case NVML_FI_DEV_PCIE_COUNT_RX_BYTES: v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG; v[i].value.ullVal = 1048576 * reads; break;
        default: v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        }
    }
    return NVML_SUCCESS;
}
#endif
