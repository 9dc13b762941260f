#!/bin/bash
# in_network.sh: sums by aggregators, real ones on the loopback device.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

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
    # Chosen by price behind a network as slow as the aggregator's links, as hetcoll_info says.
    export HETCOLL_BUILDDIR=$build
    slow=$work/slow.topology
    sed 's/network 1 12.5/network 1 0.1/' "$machines/p100.topology" >"$slow"
    EMU_LINKS=$slow with_on 0,1,2 one 3 ob1 "$forced --mca coll_hetcoll_topology_file $slow" \
        explained "$slow" 3 --aggregators 1
    EMU_LINKS=$slow with_on 0,0,1,1 one 4 ob1 "$forced --mca coll_hetcoll_topology_file $slow" \
        explained "$slow" 2 --aggregators 1 --ranks-per-gpu 2
    if grep -q 'define HETCOLL_WITH_UCX 1' "$build/hetcoll_config.h"; then
        with_ rdma 3 ob1 "$served" in_network
        with_on 0,0,1,1 rdma 4 ob1 "$served" in_network
        with_ rdma 3 ob1 "$served" nonblocking
        message='hetcoll: aggregators: no RDMA, vectors go over TLS: the aggregator offers no fitting device' \
            with_ one 3 ob1 "$served --mca coll_hetcoll_aggregator_rdma tcp/lo" in_network
        message='no aggregators on this communicator of 3 ranks from now on, other algorithms serve it: .*aggregator 127' \
            with_ rdma 3 ob1 "$served" in_network killed
    fi
    message='no aggregators on this communicator of [34] ranks from now on, other algorithms serve it: .*aggregator 127'
    with_ one 3 ob1 "$served" in_network killed
    with_ one 3 ob1 "$served --mca coll_hetcoll_aggregator_copy 1M" in_network killed_in_place
    other_algorithm=any with_ one 3 ob1 "$served" in_network killed_before
    HETCOLL_TEST_KILL=0 with_ leaves 4 ob1 "$served" in_network killed_in_place
    HETCOLL_TEST_KILL=1 with_ leaves 4 ob1 "$served" in_network killed
    with_on 0,0,1,1 one 4 ob1 "$served" in_network killed
    with_on 0,0,1,1 one 4 ob1 "$served --mca coll_hetcoll_aggregator_copy 1M" in_network killed_in_place
    other_algorithm=any with_on 0,0,1,1 one 4 ob1 "$served" in_network killed_before
    HETCOLL_TEST_KILL=0 with_on 0,0,1,1 leaves 4 ob1 "$served" in_network killed_in_place
    HETCOLL_TEST_KILL=1 with_on 0,0,1,1 leaves 4 ob1 "$served" in_network killed
    with_ nobody 3 ob1 "$forced" in_network none
    with_ other_key 3 ob1 "$forced" in_network none
    message='hetcoll uses no aggregators: the ranks of this communicator have different coll_hetcoll_aggregators'
    with_ one 3 ob1 "$forced" in_network differ
    message='hetcoll uses no aggregators: .*/key'
    with_ open_key 3 ob1 "$forced" in_network none
    message='hetcoll uses no aggregators: .* cannot be loaded: /[^ ]*/hetcoll_aggregators.so: .*: install hetcoll again, or'
    with_ no_file 3 ob1 "$forced" in_network none
    message='' also_expected=''
else
    skip_ 'aggregators: they are not built'
    message='no aggregators on this communicator of 3 ranks from now on, .*: this hetcoll was built without OpenSSL' \
        launcher="$here/with_aggregators.sh nobody" case_ 3 ob1 "$forced" in_network none
fi

end_cases
