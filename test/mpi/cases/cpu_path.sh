#!/bin/bash
# cpu_path.sh: small vectors in device memory that the processor reads and writes itself.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

export EMU_GDR=1
host=$(with host)
case_ 2 ob1 "$host" cpu_path sizes all
case_ 4 ob1 "$host" cpu_path sizes all
nodes_ 0,0,1 ob1 "$forced" cpu_path sizes all
EMU_COHERENT=1 case_ 2 ob1 "$host --mca coll_hetcoll_cpu_read_limit 2048" cpu_path sizes all
EMU_GDR_ORDERING=100 case_ 2 ob1 "$host" cpu_path sizes all
case_ 2 ob1 "$host --mca coll_hetcoll_streams independent" cpu_path sizes all
case_ 2 ob1 "$host --mca coll_hetcoll_pointer_cache off" cpu_path sizes all
case_ 2 ob1 "$host --mca coll_hetcoll_cpu_read_limit 0 --mca coll_hetcoll_cpu_write_limit 0" cpu_path sizes none
# A dma-buf in place of GDRCopy, and neither.
EMU_GDR_FAIL=gdr_open:*:2 EMU_DRIVER_VERSION=13030 case_ 2 ob1 "$host" cpu_path sizes all
EMU_GDR_FAIL=gdr_open:*:2 case_ 2 ob1 "$host" cpu_path sizes none
# Some ranks only: what a rank does is nobody else's business.
EMU_FAIL_RANK=1 EMU_GDR_FAIL=gdr_open:*:2 case_ 3 ob1 "$host" cpu_path sizes 'not 1'
EMU_FAIL_RANK=0 EMU_GDR_FAIL=gdr_map:*:22 nodes_ 0,1,1 ob1 "$forced" cpu_path sizes 'not 0'
# A mapping of something else: one line, right results.
message="hetcoll: the processor's mapping of device memory does not show what the GPU has"
EMU_FAIL_RANK=1 EMU_GDR_FAIL=gdr_map:1:copy case_ 3 ob1 "$host" cpu_path sizes 'not 1'
EMU_FAIL_RANK=0 EMU_GDR_FAIL=gdr_map:1:private case_ 2 ob1 "$host" cpu_path sizes 'not 0'
message=

case_ 2 ob1 "$forced" cpu_path chosen
case_ 2 ob1 "$host" cpu_path reuse
nodes_ 0,1,1 ob1 "$forced" cpu_path reuse
EMU_GDR_FAIL=gdr_open:*:2 EMU_DRIVER_VERSION=13030 case_ 2 ob1 "$host" cpu_path reuse
case_ 2 ob1 "$host" cpu_path requests
case_ 3 ob1 "$host --mca coll_hetcoll_progress_thread 1" cpu_path requests
case_ 2 ob1 "$host" cpu_path faults
case_ 3 ob1 "$host" cpu_path faults
# Every driver call that such a call makes, too.
also_expected='.'
case_ 2 ob1 "$host" faults small
also_expected=

case_ 3 ob1 "$host" steady_state
case_ 2 ob1 "$host" streams
case_ 3 ob1 "$host" foreign_kernel
case_ 2 ob1 "$host" threads
case_ 2 ob1 "$host" lifecycle destroyed
case_ 2 ob1 "$host" lifecycle reused
case_ 2 ob1 "$host" lifecycle ended

end_cases
