/* For LD_PRELOAD: a GPU device file that HETCOLL_TEST_DEVICE_FILE makes appear and vanish. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int access(const char *path, int mode)
{
    static int (*next)(const char *, int);
    if (0 == strcmp(path, "/dev/nvidiactl")) {
        const int there = NULL != getenv("HETCOLL_TEST_DEVICE_FILE");
        errno = ENOENT;
        return there ? 0 : -1;
    }
    if (NULL == next) {
        *(void **)&next = dlsym(RTLD_NEXT, "access");
    }
    return next(path, mode);
}
