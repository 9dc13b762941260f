#!/bin/bash
# arrays.sh: arrays of PyTorch, by each of its allocators, of CuPy, and of the CUDA runtime. A part of check_gpu.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/gpu/mpi_settings.sh
. "$here/mpi_settings.sh"
python=$(command -v "${PYTHON:-python3}") || omit 'there is no python3'
for ranks in 2 4; do
    for library in torch cupy runtime; do
        job $ranks "$python" "$here/arrays.py" $library
    done
    for allocator in expandable_segments:True backend:cudaMallocAsync; do
        job $ranks "$python" "$here/arrays.py" torch $allocator
    done
done
end_jobs
