# The cases of run.sh: which program, at how many ranks, over which PML, with which options. Every
# number of ranks and both PMLs meet every path; not every product of them. The cases are in the files
# below, each of an area; here is what several of them use.
# shellcheck shell=bash disable=SC2154,SC2034
forced="--mca coll hetcoll"
# The option for an algorithm.
with() { echo "$forced --mca coll_hetcoll_algorithm $1"; }
machines=$here/../../topology/machines

# Several nodes on this machine, by words.
nodes_() # nodes_ NODES PML OPTIONS PROGRAM...
{
    local nodes=$1
    shift
    wrapper="$here/on_nodes.sh $nodes" case_ "$(echo "$nodes" | tr , '\n' | grep -c .)" "$@"
}
# And by namespaces: other host names, other shared memory, TCP in between.
hosts_() # hosts_ RANKS HOST:SLOTS,... PML OPTIONS PROGRAM...
{
    local ranks=$1 hosts=$2 pml=$3 options=$4
    shift 4
    options="$options --mca plm_rsh_agent $here/as_host.sh --mca routed direct"
    case_ "$ranks" "$pml" "$options --mca btl self,vader,tcp -H $hosts" "$@"
}
# What a case leaves of a variable is there in the next one, up to the end of its area.
for area in algorithms sums calls failures programs; do
    # shellcheck source=/dev/null
    . "$here/cases_$area.sh"
    also_expected='' must_fail='' message='' launcher='' wrapper=''
done
