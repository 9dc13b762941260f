#!/bin/bash
# different_calls.sh: ranks that do not call the same, and what ranks may call differently.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# One line of one rank for each mistake, which shows both calls.
says='hetcoll: the ranks of communicator [0-9]+ do not call the same: rank'
message="$says 0 calls MPI_Allreduce of 2 int32 \(8 bytes\), sum, rank [12] calls MPI_Allreduce of 1 int32 \(4 bytes\), sum, in call number 1: MPI_ERR_COUNT"
case_ 2 ob1 "$forced" different_calls one count
case_ 3 ucx "$forced" different_calls one count
nodes_ 0,1 ob1 "$forced" different_calls one count
nodes_ 0,0,1 ob1 "$forced" different_calls one count
message="$says 0 calls MPI_Allreduce of 2 int32 \(8 bytes\), sum, rank 2 calls MPI_Allreduce of 100000 int32 \(400000 bytes\), sum, in"
case_ 3 ob1 "$forced" different_calls one count_beyond_small
nodes_ 0,0,1 ob1 "$forced" different_calls one count_beyond_small
message="$says [0-9] calls MPI_Allreduce of 2 float64 \(16 bytes\), sum, rank 4 calls MPI_Allreduce of 32 bytes, an unknown type, in call number 1: MPI_ERR_TYPE"
nodes_ 0,1,2,3,4 ob1 "$forced" different_calls one unknown_type
message="$says 2 calls MPI_Allreduce of 2 int32 \(8 bytes\), sum, rank 3 calls MPI_Allreduce of 2 int32 \(8 bytes\), max, in call number 1: MPI_ERR_OP"
nodes_ 0,0,1,1 ucx "$forced" different_calls one op
message=

also_expected=$says
case_ 2 ob1 "$forced" different_calls mistakes 40
case_ 4 ob1 "$forced" different_calls mistakes 24
EMU_NUM_DEVICES=3 case_ 3 ucx "$forced" different_calls mistakes 24
nodes_ 0,0,1,1 ob1 "$forced" different_calls mistakes 24
nodes_ 0,1,2 ob1 "$forced" different_calls mistakes 24
nodes_ 0,1,1,2,2 ucx "$forced" different_calls mistakes 16
also_expected=

for ranks in 2 3 4; do
    case_ "$ranks" ob1 "$forced" different_calls legal
done
nodes_ 0,0,1,1 ob1 "$forced" different_calls legal
nodes_ 0,1,2 ucx "$forced" different_calls legal

end_cases
