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
message="$not_used: not all GPUs of the node have an adapter in its topology"
EMU_LINKS=$machines/dgx1v-014.topology case_ 3 ob1 "$(with tree) --mca coll_hetcoll_adapters tcp" adapters unused
message='' other_algorithm=any
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
also_expected='hetcoll: a call on a CUDA stream is not queued, it synchronises instead'
case_ 3 ob1 "$(with tree) $by tcp" adapters used
case_ 3 ucx "$(with tree) $by tcp" adapters used
EMU_DELAY_US=30 case_ 3 ob1 "$(with tree) $by tcp" adapters used
case_ 3 ob1 "$(with tree) $by tcp --mca coll_hetcoll_progress_thread 1" adapters used
case_ 3 ob1 "$(with tree) $by tcp --mca coll_hetcoll_accumulate element --mca coll_hetcoll_chunk_bytes 64K" adapters used
case_ 3 ob1 "$(with tree) $by tcp --mca coll_hetcoll_queued_calls all" adapters used
also_expected=''
# Contexts that are destroyed, or reset: what UCX has in them is lost, and nobody counts it.
wrapper='env -u EMU_LEAKS_FILE'
for end in destroyed reused; do
    EMU_HOSTILE=1 case_ 3 ob1 "$(with tree) $by tcp" lifecycle $end
done
wrapper=''
EMU_HOSTILE=1 case_ 3 ob1 "$(with tree) $by tcp" lifecycle many
must_fail='signal 9'
case_ 3 ob1 "$(with tree) $by tcp" aborts killed_within
must_fail=''
also_expected="hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of"
case_ 3 ob1 "$(with tree) $by tcp" algorithms tree 4194307
# A UCX that was built with CUDA and does not see what is allocated, as its library for that needs another one.
mkdir -p "$work/ucx/lib/ucx"
cp -L "$ucx"/*.so.0 "$work/ucx/lib" && cp -L "$ucx"/ucx/*.so.0 "$work/ucx/lib/ucx"
message="$not_used, rank 0 cannot: this UCX takes device memory for the host's"
also_expected="$not_used, rank [12] cannot: this UCX takes device memory for the host's"
LD_LIBRARY_PATH="$emulated:$work/ucx/lib:$LD_LIBRARY_PATH" UCX_MODULE_DIR=$work/ucx/lib/ucx \
    case_ 3 ob1 "$(with tree) $by tcp" adapters unused
message="$not_used, rank 0 cannot: UCX has no transport 'nonsense'"
also_expected="$not_used, rank [12] cannot: UCX has no transport 'nonsense'"
case_ 3 ob1 "$(with tree) $by nonsense" adapters unused

end_cases
