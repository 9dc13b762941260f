#!/bin/bash
# component.sh: the component in Open MPI, on device memory: the MPI tests that a GPU can run. A part of check_gpu.sh.
set -u
# shellcheck source=test/gpu/mpi_settings.sh
. "$(dirname "$0")/mpi_settings.sh"
programs=$build/test/mpi
for ranks in 2 4; do
    for test in device_allreduce streams other_memory mixed_memory own_collectives; do
        job $ranks "$programs/$test"
    done
done
for stream in blocking nonblocking; do
    job 2 "$programs/foreign_kernel" $stream
done
job 2 "$programs/staged_collectives"
job 2 "$programs/nonblocking"
for test in buffers communicators splits handles; do
    job 3 "$programs/churn" $test
done
for test in many leaked reset requests destroyed reused; do
    job 3 "$programs/lifecycle" $test
done
end_jobs
