#!/bin/sh
# Generates from the CUDA headers in directory $2 what the emulated driver needs of them ($1):
#   errors    the names of the error codes
#   versions  in which CUDA release each version of an entry point appeared
#   stubs     C functions for all entry points; weak, so those that are emulated take their place
#   runtime_errors, runtime_stubs   the same of the runtime API
#   runtime_map                     the version of the runtime's symbols
# Works with the headers of CUDA 12 and 13, from the toolkit or from PyPI.
set -eu
export LC_ALL=C
what=$1 include=$2

# Prototypes, what macros rename them to, and (from the function pointer types) what is left.
names() {
    for header in cuda.h cudaGL.h cudaEGL.h cudaVDPAU.h cudaProfiler.h cudaTypedefs.h \
        cudaGLTypedefs.h cudaEGLTypedefs.h cudaVDPAUTypedefs.h; do
        if [ -f "$include/$header" ]; then cat "$include/$header"; fi
    done | sed -nE \
        -e 's/.*CUDAAPI[[:space:]]+(cu[A-Z][A-Za-z0-9_]*)[[:space:]]*\(.*/\1/p' \
        -e 's/^[[:space:]]*#define[[:space:]]+cu[A-Z][A-Za-z0-9_]*[[:space:]]+(cu[A-Z][A-Za-z0-9_]*)[[:space:]]*$/\1/p' \
        -e 's/^[[:space:]]*#define[[:space:]]+cu[A-Z][A-Za-z0-9_]*[[:space:]]+__CUDA_API_PTDS\((cu[A-Z][A-Za-z0-9_]*)\).*/\1\n\1_ptds/p' \
        -e 's/^[[:space:]]*#define[[:space:]]+cu[A-Z][A-Za-z0-9_]*[[:space:]]+__CUDA_API_PTSZ\((cu[A-Z][A-Za-z0-9_]*)\).*/\1\n\1_ptsz/p' \
        -e 's/.*\*PFN_(cu[A-Z][A-Za-z0-9_]*)_v[0-9]+\).*/\1/p' |
        sort -u
}

runtime_names() {
    cat "$include/cuda_runtime_api.h" "$include/cuda_profiler_api.h" | sed -nE \
        -e 's/.*CUDARTAPI[[:space:]]+(cuda[A-Z][A-Za-z0-9_]*)[[:space:]]*\(.*/\1/p' \
        -e 's/^[[:space:]]*#define[[:space:]]+cuda[A-Z][A-Za-z0-9_]*[[:space:]]+(cuda[A-Z][A-Za-z0-9_]*)[[:space:]]*$/\1/p' \
        -e 's/^[[:space:]]*#define[[:space:]]+cuda[A-Z][A-Za-z0-9_]*[[:space:]]+__CUDART_API_PTDS\((cuda[A-Za-z0-9_]*)\).*/\1_ptds/p' \
        -e 's/^[[:space:]]*#define[[:space:]]+cuda[A-Z][A-Za-z0-9_]*[[:space:]]+__CUDART_API_PTSZ\((cuda[A-Za-z0-9_]*)\).*/\1_ptsz/p' |
        sort -u
    echo __cudaLaunchKernel_ptsz
}

case $what in
errors)
    sed -nE 's/^[[:space:]]*(CUDA_ERROR_[A-Z0-9_]+)[[:space:]]*=[[:space:]]*([0-9]+).*/    {\2, "\1"},/p' \
        "$include/cuda.h"
    ;;
versions)
    grep -oE 'PFN_cu[A-Za-z0-9]+_v[0-9]+\b' "$include/cudaTypedefs.h" | sort -u |
        sed -E 's/PFN_(.*)_v([0-9]+)$/\1 \2/' | sort -k1,1 -k2,2n |
        awk '{ list[$1] = list[$1] (list[$1] ? ", " : "") $2 }
             END { for (name in list) printf "    {\"%s\", {%s}},\n", name, list[name] }' | sort
    ;;
stubs)
    echo 'int emulated_gpu_unsupported(const char *name);'
    # They begin as functions of a real driver do, so that UCX's libucm can patch them.
    echo '#if defined(__x86_64__)'
    echo '#define PUSHES __asm__ volatile("" ::: "rbx", "r12", "r13", "r14");'
    echo '#else'
    echo '#define PUSHES'
    echo '#endif'
    echo '#define STUB(name) __attribute__((weak, visibility("default"))) int name(void); \'
    echo '    int name(void) { PUSHES return emulated_gpu_unsupported(#name); }'
    names | sed 's/.*/STUB(&)/'
    ;;
runtime_errors)
    sed -nE 's/^[[:space:]]*(cudaError[A-Za-z0-9]+)[[:space:]]*=[[:space:]]*([0-9]+).*/    {\2, "\1"},/p' \
        "$include/driver_types.h"
    ;;
runtime_stubs)
    echo 'int emulated_runtime_unsupported(const char *name);'
    echo '#define STUB(name) __attribute__((weak, visibility("default"))) int name(void); \'
    echo '    int name(void) { return emulated_runtime_unsupported(#name); }'
    runtime_names | sed 's/.*/STUB(&)/'
    ;;
runtime_map)
    major=$(sed -nE 's/^#define[[:space:]]+CUDART_VERSION[[:space:]]+([0-9]+)[0-9]{3}$/\1/p' \
        "$include/cuda_runtime_api.h")
    echo "libcudart.so.$major { global: cuda*; __cuda*; local: *; };"
    ;;
esac
