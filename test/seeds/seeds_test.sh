#!/bin/bash
# seeds_test.sh [FIRST COUNT]: runs of whole communicators from seeds (seeds.cc); without arguments the few of make check.
set -euo pipefail
lib=$PWD/emulated_gpu/lib said=$(mktemp)
export LD_LIBRARY_PATH=$lib EMU_KERNELS=$lib/libhetcoll_emulated_kernels.so EMU_NODE=seeds$$
trap 'rm -f "$said" /dev/shm/emulated_gpu."$(id -u)"."$EMU_NODE".*' EXIT
test/seeds/seeds "${1:-1}" "${2:-150}" 2>"$said" || {
    status=$?
    tail -n 20 "$said"
    echo "what a seed did: cd $PWD; LD_LIBRARY_PATH=$LD_LIBRARY_PATH EMU_KERNELS=$EMU_KERNELS test/seeds/seeds SEED 1 --say"
    exit $status
}
