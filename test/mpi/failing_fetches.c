/* For LD_PRELOAD: PMIx_Get, of which the first HETCOLL_TEST_FAILING_FETCHES that ask another
 * process for what hetcoll has published fail: with -1 all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name { /* pmix_proc_t */
    char nspace[256];
    uint32_t rank;
};

__attribute__((visibility("default"))) int PMIx_Get(const struct name *of, const char *key,
                                                    const void *info, size_t count, void **value)
{
    static int (*next)(const struct name *, const char *, const void *, size_t, void **);
    static long left;
    if (NULL == next) {
        const char *text = getenv("HETCOLL_TEST_FAILING_FETCHES");
        left = NULL == text ? 0 : atol(text);
        *(void **)&next = dlsym(RTLD_NEXT, "PMIx_Get");
    }
    if (0 != left && NULL != strstr(key, "coll.hetcoll")) {
        --left;
        return -24; /* PMIX_ERR_TIMEOUT */
    }
    return next(of, key, info, count, value);
}
