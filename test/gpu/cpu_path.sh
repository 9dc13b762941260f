#!/bin/bash
# cpu_path.sh: small vectors in device memory by the processor and by copies: checks results and times them. Part of check_gpu.sh.
set -u
# shellcheck source=test/gpu/mpi_settings.sh
. "$(dirname "$0")/mpi_settings.sh"
job 2 --mca coll_hetcoll_algorithm host "$build/test/mpi/device_allreduce"
for limits in '-1 -1' '0 0' '16384 16384'; do
    read -r reads writes <<<"$limits"
    echo "# limits      read $reads, write $writes (-1: the defaults)"
    timeout -k 5 100 "$mpirun" --mca coll hetcoll --mca coll_hetcoll_algorithm host \
        --mca coll_hetcoll_cpu_read_limit "$reads" --mca coll_hetcoll_cpu_write_limit "$writes" -n 2 \
        "$build/hetcoll_bench" --memory device --sizes 8,256,1K,2K,4K,8K --algorithms auto,persistent --warmup 20 --iterations 2000 </dev/null
done
end_jobs
