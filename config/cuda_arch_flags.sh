#!/bin/sh
# Prints nvcc's -gencode flags for the kernels' fatbin.
# Usage: cuda_arch_flags.sh NVCC [LIST], LIST as in --with-cuda-arch=80,90 (sm_80 and 8.0 are fine too).
#
# Without a list: machine code for every architecture from sm_60 up that this nvcc supports, less the
# boards that no cluster has (the SoCs: Tegra X2, Xavier, Orin and Thor), and PTX of the lowest and of
# the highest one. The driver compiles the former for those boards when it loads the kernels, and the
# latter for GPUs newer than this nvcc. With a list: exactly that, and PTX of its highest.
#
# The machine code of several architectures is made of the same PTX where the sources are the same for them: most of the
# time goes into PTX. `steps` are the architectures from which on the sources differ: what cuda_kernels/ compares with
# HETCOLL_GPU_ARCH and __CUDA_ARCH__ (config/cuda_arch_flags_test.sh).
#
# From CUDA 13 on the fatbin is compressed for size (20 MB to 1.2 MB): that needs a driver of CUDA 12.4
# or newer, and machine code of CUDA 13 needs a newer one anyway. Older toolkits keep their default,
# which every driver reads.
set -eu

nvcc=$1
list=${2-}
embedded=' 62 72 87 88 101 110 '
steps='60 70 80 89 90'

known=$("$nvcc" --list-gpu-code | sed -n 's/^sm_\([0-9]*\)$/\1/p' | sort -n)
if [ -z "$known" ]; then
    echo "$nvcc --list-gpu-code names no architecture: this nvcc is older than CUDA 11.5, take a newer one" >&2
    exit 1
fi

# ptx_of ARCH: the lowest architecture with the same sources.
ptx_of() {
    from=0
    for step in $steps; do
        [ "$step" -gt "$1" ] || from=$step
    done
    for ptx in $known; do
        [ "$ptx" -lt "$from" ] || break
    done
    echo "$ptx"
}

flags=
lowest=
highest=
add() {
    highest=$(ptx_of "$1")
    lowest=${lowest:-$highest}
    flags="$flags -gencode=arch=compute_$highest,code=sm_$1"
}

if [ -n "$list" ]; then
    for name in $(echo "$list" | tr ',;' '  ' | sed 's/sm_//g; s/compute_//g; s/\.//g'); do
        case $name in
        [0-9][0-9] | [0-9][0-9][0-9]) echo "$name" ;;
        *)
            echo "--with-cuda-arch: '$name' is not an architecture, write a list such as 80,90" >&2
            exit 1
            ;;
        esac
    done >/dev/null
    wanted=$(echo "$list" | tr ',; ' '\n\n\n' | sed 's/sm_//; s/compute_//; s/\.//; /^$/d' | sort -nu)
    for arch in $wanted; do
        if ! echo "$known" | grep -qx "$arch"; then
            echo "--with-cuda-arch: $nvcc does not support sm_$arch, it supports $(echo $known)" >&2
            exit 1
        fi
        add "$arch"
    done
else
    for arch in $known; do
        case $embedded in
        *" $arch "*) ;;
        *) [ "$arch" -lt 60 ] || add "$arch" ;;
        esac
    done
    flags="-gencode=arch=compute_$lowest,code=compute_$lowest$flags"
fi
release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
[ "${release:-0}" -lt 13 ] || flags="$flags --compress-mode=size"
echo $flags "-gencode=arch=compute_$highest,code=compute_$highest"
