#!/bin/sh
# ptx_test.sh: ptx_test.py, with the kernels as this build's nvcc compiles them.
set -u
source=${HETCOLL_SRCDIR:-.}
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
set --
if [ -n "${NVCC:-}" ]; then
    for host in ${CXX:-g++}; do
        case $host in *ccache | *distcc) ;; *) break ;; esac
    done
    "$NVCC" -ptx -arch=compute_80 -ccbin "$host" -std=c++17 -O3 -I"$source" -o "$work/kernels.ptx" \
        "$source/cuda_kernels/fixed_point.cu" || exit 1
    set -- "$work/kernels.ptx"
else
    echo "no nvcc: the kernels as compiled are not looked at"
fi
python3 "$source/test/model/ptx_test.py" "$@"
