#!/bin/bash
# adapters.sh: part of a vector through the node's network adapters, by UCX's TCP over the loopback interface. That
# takes a UCX with CUDA (test/clients/get_ucx.sh): cases that need it are skipped without.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# Three GPUs of a DGX-1 that have no ring of NVLinks, with an adapter that this machine has.
links=$work/lo.topology
sed -e 's/^nic mlx5_0 .*/nic lo -/' -e 's/^link mlx5_0 /link lo /' -e 's/^link mlx5_2 plx2 /link lo plx2 /' \
    -e '/mlx5_/d' "$machines/dgx1v-014.topology" >"$links"
by="--mca coll_hetcoll_topology_file $links --mca coll_hetcoll_adapters"
export EMU_LINKS=$links

# Not where they cannot serve: then a line says why, and all else is as without them.
not_used='hetcoll: coll_hetcoll_adapters is not used'
message="$not_used, rank 0 cannot: this UCX was built without CUDA"
also_expected="$not_used, rank [12] cannot: this UCX was built without CUDA"
case_ 3 ob1 "$(with tree) $by tcp" adapters unused
also_expected=''
message="$not_used on a communicator of 3 ranks: not all of its GPUs have an adapter in their topology"
EMU_LINKS=$machines/dgx1v-014.topology case_ 3 ob1 "$(with tree) --mca coll_hetcoll_adapters tcp" adapters unused
message="$not_used on a communicator of 4 ranks: its ranks are on several nodes"
other_algorithm=any
nodes_ 0,0,1,1 ob1 "$forced $by tcp" adapters unused
other_algorithm=''
message='hetcoll uses no network adapters on a node: the ranks of this communicator have different'
wrapper="$here/on_rank.sh 1 OMPI_MCA_coll_hetcoll_adapters=udp"
case_ 3 ob1 "$(with tree) --mca coll_hetcoll_topology_file $links" adapters unused
wrapper='' message=''

for ucx in "$build"/clients/ucx-*/libucx/lib; do :; done
if [ ! -d "$ucx" ]; then
    echo "skipped adapters used: no UCX with CUDA in $build/clients; test/clients/get_ucx.sh takes one from PyPI"
    skipped=$((skipped + 1))
    end_cases
fi
export LD_LIBRARY_PATH="$emulated:$ucx:$LD_LIBRARY_PATH"
case_ 3 ob1 "$(with tree) $by tcp" adapters used
case_ 3 ucx "$(with tree) $by tcp" adapters used
EMU_DELAY_US=30 case_ 3 ob1 "$(with tree) $by tcp" adapters used
case_ 3 ob1 "$(with tree) $by tcp --mca coll_hetcoll_progress_thread 1" adapters used
case_ 3 ob1 "$(with tree) $by tcp --mca coll_hetcoll_accumulate element --mca coll_hetcoll_chunk_bytes 64K" adapters used
also_expected="hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of"
also_expected="$also_expected|$not_used on a communicator of [12] ranks: packed trees do not serve these GPUs"
case_ 3 ob1 "$(with tree) $by tcp" algorithms tree 4194307
message="$not_used, rank 0 cannot: UCX has no transport 'nonsense'"
also_expected="$not_used, rank [12] cannot: UCX has no transport 'nonsense'"
case_ 3 ob1 "$(with tree) $by nonsense" adapters unused

end_cases
