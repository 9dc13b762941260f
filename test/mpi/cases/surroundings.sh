#!/bin/bash
# surroundings.sh: programs that change the environment after MPI_Init, as mpi4py's do, on some ranks or all;
# and a runtime that does not say what other ranks have published, or an Open MPI that cannot keep it.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for ranks in 2 3; do
    case_ $ranks ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES -1 odd host
    case_ $ranks ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES '' odd mixed
done
case_ 2 ucx "$forced" surroundings CUDA_VISIBLE_DEVICES -1 all host
nodes_ 0,0,1 ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES -1 odd mixed
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES 1 odd device

# Empty when the job starts, on one rank or all, and set later.
wrapper="$here/on_rank.sh 1 CUDA_VISIBLE_DEVICES="
for where in host mixed device; do
    case_ 2 ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES 0 odd $where
done
wrapper=''
CUDA_VISIBLE_DEVICES='' case_ 3 ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES 0 all device
CUDA_VISIBLE_DEVICES='' case_ 2 ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES - all device
CUDA_VISIBLE_DEVICES=-1 case_ 2 ob1 "$forced" surroundings CUDA_VISIBLE_DEVICES 0 odd host

# One rank is not told what the others have published: for some tries, or for good.
fetches="LD_PRELOAD=$build/test/mpi/failing_fetches.so"
for failing in 1 2; do
    wrapper="$here/on_rank.sh 1 HETCOLL_TEST_FAILING_FETCHES=$failing env $fetches"
    case_ 2 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all host
    case_ 3 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all device
done
must_fail='hetcoll: the job ends: rank 1 of communicator [0-9]+ cannot be told what rank 0 has published .* 3 times'
wrapper="$here/on_rank.sh 1 HETCOLL_TEST_FAILING_FETCHES=-1 env $fetches"
case_ 2 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all host
case_ 3 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all device
must_fail=''
# One rank cannot make the table of what the others have published: it asks each time.
wrapper="$here/on_rank.sh 1 LD_PRELOAD=$build/test/mpi/failing_tables.so"
message='^note hetcoll has no table'
case_ 2 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all host
case_ 3 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all device
message=''
# A rank where hetcoll is off, or not installed: that is known.
also_expected='hetcoll: communicator of 2 ranks: Allreduce on any memory'
wrapper="$here/on_rank.sh 1 OMPI_MCA_coll_hetcoll_enable=0"
case_ 2 ob1 "$forced" surroundings HETCOLL_TEST_NOTHING - all host
wrapper="$here/on_rank.sh 1 OMPI_MCA_mca_base_component_path=$components"
case_ 2 ob1 "" surroundings HETCOLL_TEST_NOTHING - all host
also_expected=''

# The device file appears, as the driver makes it at its first call, or vanishes. There is no driver here.
LD_LIBRARY_PATH=''
wrapper="env LD_PRELOAD=$build/test/mpi/device_files.so"
case_ 2 ob1 "$forced" surroundings HETCOLL_TEST_DEVICE_FILE 1 odd host
HETCOLL_TEST_DEVICE_FILE=1 case_ 2 ob1 "$forced" surroundings HETCOLL_TEST_DEVICE_FILE - odd host
HETCOLL_TEST_DEVICE_FILE=1 case_ 3 ob1 "$forced" surroundings HETCOLL_TEST_DEVICE_FILE - all host

end_cases
