#!/bin/bash
# seeds_test.sh [FIRST COUNT]: runs of whole communicators from seeds (seeds.cc); without arguments the few of make check.
set -euo pipefail
lib=$PWD/emulated_gpu/lib
export LD_LIBRARY_PATH=$lib EMU_KERNELS=$lib/libhetcoll_emulated_kernels.so
test/seeds/seeds "${1:-1}" "${2:-150}" 2>/tmp/seeds.$$ || {
    status=$?
    tail -n 20 /tmp/seeds.$$
    rm -f /tmp/seeds.$$
    echo "what a seed did: cd $PWD; LD_LIBRARY_PATH=$LD_LIBRARY_PATH EMU_KERNELS=$EMU_KERNELS test/seeds/seeds SEED 1 --say"
    exit $status
}
rm -f /tmp/seeds.$$
