#!/bin/bash
# runtime_api.sh: programs of the CUDA runtime API, by gcc and by nvcc.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for ranks in 1 2 4; do
    case_ $ranks ob1 "$forced" runtime_api
done
EMU_NUM_DEVICES=3 EMU_DELAY_US=3000 case_ 3 ob1 "$forced" runtime_api
EMU_KERNELS=$EMU_KERNELS:$programs/.libs/runtime_kernels_on_host.so EMU_DELAY_US=3000 EMU_NUM_DEVICES=2 \
    case_ 2 ob1 "$forced" runtime_kernels
message='there is no host-compiled kernel _Z4fillPdid in EMU_KERNELS'
case_ 1 ob1 "$forced" runtime_kernels without
message=

end_cases
