#!/bin/sh
# check_sass.sh [BUILD_DIR]: whether the machine code of the kernels is what cuda_kernels/sass_rules.txt says, on every
# architecture of this build. Each of its lines is a test on each of them.
# Needs cuobjdump and nvdisasm, next to NVCC or on PATH: half a minute of one core for all architectures.
set -u
source=${HETCOLL_SRCDIR:-.}
build=${1:-${HETCOLL_BUILDDIR:-.}}
case ${NVCC:-} in */*) PATH=${NVCC%/*}:$PATH ;; esac

if ! command -v cuobjdump >/dev/null || ! command -v nvdisasm >/dev/null; then
    echo "skipped: cuobjdump and nvdisasm are not beside ${NVCC:-nvcc} and not on PATH: take them from the CUDA toolkit" \
        "or the Python packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm"
    exit 77
fi
for fatbin in "$build"/cuda_kernels/reduce.fatbin "$build"/cuda_kernels/fixed_point.fatbin; do
    cuobjdump -res-usage "$fatbin" 2>&1 && cuobjdump -sass "$fatbin"
done | awk -f "$source/config/sass.awk" "$source/cuda_kernels/sass_rules.txt" -
