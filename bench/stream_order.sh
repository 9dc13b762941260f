#!/bin/bash
# stream_order.sh [BUILD]: what a call in the order of a CUDA stream (docs/streams.md) costs its caller beyond the
# driver's own calls, and how much of a training step's sums overlaps with its backward pass on links of known speed.
# Layers are times of sleep on a stream. Writes a results file to stdout; two minutes. It says nothing about a GPU.
#
# The first layer's sum cannot begin before the layer ends, nor the last one's overlap with any: of 16 layers 15 can, 94 %.
# The thread that serves pending calls keeps a processor busy, so two ranks are all that two processors can show.
# Environment: SCALE of the links.
set -eu
here=$(dirname "$(readlink -f "$0")")
cd "${1:-build}" 2>/dev/null && [ -x bench/stream_bench ] || {
    echo "stream_order.sh: ${1:-build} has no bench/stream_bench: make it there first" >&2
    exit 1
}
build=$PWD
. "$here/job.sh"
use_emulated_links
scale=${SCALE:-0.0015}

# run WORD...: stream_bench on two ranks.
run()
{
    EMU_NODE=stream_order$$ timeout -k 5 170 "$(configured MPIRUN)" --mca coll hetcoll --mca pml ob1 -n 2 \
        ./bench/stream_bench "$@" 2>/dev/null </dev/null
}

echo "# what          calls in the order of a stream, 2 ranks on the emulated GPU; link model, not GPU speed"
header
echo "# cost          median of 200 bursts of 48 calls on a stream that stands; aim: at most 5 us of ours"
echo "#               16 bytes are summed by a meeting, 64 KiB by kernels (bench/stream_bench.cc has the driver calls)"
run cost 200
echo "# links         two GPUs of a DGX-1 with V100, times $scale"
echo "# overlap       (backward pass + sums - both) / the shorter of the two; median of 7 steps; aim: 90 %; at most 94 % can"
echo "# busy          share of all processors while it ran; each rank's thread polls while calls are pending"
export EMU_LINKS="$here/../topology/machines/dgx1v.topology:0,1" EMU_LINK_SCALE=$scale
for layer_us in 6000 12500 25000; do
    before=$(processor_time)
    line=$(run overlap 16 2097152 $layer_us 7)
    echo "$line, busy $(busy_since "$before")"
done
