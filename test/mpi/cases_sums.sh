# Cases of run.sh: sums that are the same bits everywhere, and those of aggregators.
# shellcheck shell=bash disable=SC2154,SC2034

# Sums in the order of the ranks, whatever else is asked for.
same="$forced --mca coll_hetcoll_reproducible 1"
case_ 2 ob1 "$same" reproducible
case_ 3 ucx "$same" reproducible
EMU_NUM_DEVICES=4 case_ 4 ob1 "$same" reproducible
case_ 7 ob1 "$same --mca coll_hetcoll_adapt_chunk 1" reproducible
EMU_NUM_DEVICES=3 case_ 3 ob1 "$same --mca coll_hetcoll_ipc never --mca coll_hetcoll_chunk_bytes 4096" \
    reproducible
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
case_ 4 ob1 "$same --mca coll_hetcoll_algorithm ring" reproducible
message='hetcoll: coll_hetcoll_shares and coll_hetcoll_skew do nothing while'
EMU_NUM_DEVICES=4 case_ 4 ob1 "$same --mca coll_hetcoll_skew 1 --mca coll_hetcoll_shares 1,2,3,4" reproducible
message=
EMU_NUM_DEVICES=5 case_ 5 ob1 "$same --mca coll_hetcoll_algorithm one_shot" reproducible
nodes_ 0,1,1 ob1 "$same --mca coll_hetcoll_algorithm hierarchical" reproducible
also_expected=
nodes_ 0,1,1 ob1 "$forced" reproducible one
nodes_ 0,1 ob1 "$same" reproducible
nodes_ 0,1,0,1 ucx "$same" reproducible
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,2 ob1 "$same" reproducible
EMU_NUM_DEVICES=3 nodes_ 0,0,0,1,1,1,1 ob1 "$same" reproducible
nodes_ 0,0,1,1,2,2 ucx "$same" reproducible
nodes_ 2,1,0,0,1,2,0 ob1 "$same" reproducible
also_expected='hetcoll: a rank cannot use its GPU now'
case_ 3 ob1 "$same" reproducible staged
nodes_ 0,1,1,0 ob1 "$same" reproducible staged
also_expected=

# Sums of floats as fixed-point numbers, by every algorithm: the same bits.
case_ 1 ob1 "$forced" fixed_point
case_ 4 ob1 "$forced" fixed_point
case_ 3 ucx "$forced" fixed_point
EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" fixed_point
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
for algorithm in recursive_doubling rabenseifner ring one_shot two_shot leader tree hierarchical host copy_in \
    ordered; do
    case_ 3 ob1 "$(with $algorithm)" fixed_point
done
also_expected=
nodes_ 0,0,1,1,2 ob1 "$forced" fixed_point
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$(with hierarchical)" fixed_point
case_ 3 ob1 "$forced --mca coll_hetcoll_reproducible 1" fixed_point
also_expected='hetcoll: a rank (cannot use its GPU now|converts to fixed point on the host)'
case_ 3 ob1 "$forced" fixed_point staged
also_expected='hetcoll: MPI_Allreduce failed, the receive buffer is undefined: an element of some rank is no'
case_ 1 ob1 "$forced" fixed_point range
case_ 3 ob1 "$forced" fixed_point range
also_expected=
message='an element of some rank is no number or beyond \+-10922.7, the largest that 3 ranks can add with coll_hetcoll_fixed_point 16: scale' \
    case_ 3 ob1 "$forced" fixed_point once
message='hetcoll adds floats as usual: the ranks of this communicator have different coll_hetcoll_fixed_point' \
    case_ 3 ob1 "$forced" fixed_point differ

# Sums by aggregators, real ones on the loopback device.
if [ -x "$build/hetcoll_aggregator" ]; then
    export HETCOLL_AGGREGATOR=$build/hetcoll_aggregator
    also_expected='^\{"connections": '
    with_() # with_ WHAT RANKS PML OPTIONS PROGRAM...
    {
        launcher="$here/with_aggregators.sh $1"
        shift
        case_ "$@"
        launcher=
    }
    served=$(with in_network)
    with_ one 2 ob1 "$served" in_network
    with_ one 3 ob1 "$served" in_network
    with_ leaves 4 ob1 "$served" in_network
    with_ one 3 ob1 "$served --mca coll_hetcoll_aggregator_window 1 --mca coll_hetcoll_aggregator_copy 65536" \
        in_network
    with_on() # with_on NODES WHAT RANKS PML OPTIONS PROGRAM...
    {
        local wrapper="$here/on_nodes.sh $1"
        shift
        with_ "$@"
    }
    with_on 0,0,1,1 one 4 ob1 "$served" in_network
    with_on 0,0,1,1 leaves 4 ob1 "$served" in_network
    with_on 0,0,0,1,1,1 one 6 ob1 "$served --mca coll_hetcoll_aggregator_copy 100000" in_network
    with_on 0,1,0 one 3 ob1 "$served" in_network
    with_on 0,1,1 one 3 ob1 "$served" in_network
    # A node's vector goes to its aggregator once, as many ranks as it has.
    HETCOLL_TEST_PAYLOAD=8000024 with_on 0,0,1,1 one 4 ob1 "$served" in_network once
    HETCOLL_TEST_PAYLOAD=16000048 with_on 0,1,0,1 one 4 ob1 "$served" in_network once
    also_expected="$also_expected|hetcoll: coll_hetcoll_algorithm in_network cannot run on a communicator of"
    with_ one 3 ob1 "$served" fixed_point
    with_on 0,0,1,1 one 4 ob1 "$served" fixed_point
    with_on 0,0,1,1 one 4 ob1 "$served" nonblocking
    with_ one 3 ob1 "$served" nonblocking
    with_ one 3 ob1 "$served --mca coll_hetcoll_progress_thread 1" nonblocking
    with_ one 2 ob1 "$served" threads
    message='no aggregators on this communicator of [34] ranks from now on, other algorithms serve it: .*aggregator 127'
    with_ one 3 ob1 "$served" in_network killed
    with_ one 3 ob1 "$served --mca coll_hetcoll_aggregator_copy 1M" in_network killed_in_place
    with_ one 3 ob1 "$served" in_network killed_before
    HETCOLL_TEST_KILL=0 with_ leaves 4 ob1 "$served" in_network killed_in_place
    HETCOLL_TEST_KILL=1 with_ leaves 4 ob1 "$served" in_network killed
    with_on 0,0,1,1 one 4 ob1 "$served" in_network killed
    with_on 0,0,1,1 one 4 ob1 "$served --mca coll_hetcoll_aggregator_copy 1M" in_network killed_in_place
    with_on 0,0,1,1 one 4 ob1 "$served" in_network killed_before
    HETCOLL_TEST_KILL=0 with_on 0,0,1,1 leaves 4 ob1 "$served" in_network killed_in_place
    HETCOLL_TEST_KILL=1 with_on 0,0,1,1 leaves 4 ob1 "$served" in_network killed
    with_ nobody 3 ob1 "$forced" in_network none
    with_ other_key 3 ob1 "$forced" in_network none
    message='other algorithms serve it: aggregator \[::1\]:1: UCX carries no data over ::1: name another'
    with_ loopback6 3 ob1 "$forced" in_network none
    message='hetcoll uses no aggregators: the ranks of this communicator have different coll_hetcoll_aggregators'
    with_ one 3 ob1 "$forced" in_network differ
    message='hetcoll uses no aggregators: .*/key'
    with_ open_key 3 ob1 "$forced" in_network none
    message='hetcoll is off.*coll_hetcoll_aggregators: '
    case_ 2 ob1 "$forced --mca coll_hetcoll_aggregators nowhere" all_collectives
    message='' also_expected=''
else
    echo 'skipped aggregators: they are not built'
    skipped=$((skipped + 1))
    message='no aggregators on this communicator of 3 ranks from now on, .*: this hetcoll was built without UCX and OpenSSL' \
        launcher="$here/with_aggregators.sh nobody" case_ 3 ob1 "$forced" in_network none
fi
