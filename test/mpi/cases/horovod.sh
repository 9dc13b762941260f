#!/bin/bash
# horovod.sh: the calls of trainings with Horovod, played by its one background thread (R21).
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# R21: the calls of trainings with Horovod, played by its one background thread, launched as it launches.
# Without a GPU, and without hetcoll, on host memory.
horovod="-mca btl ^openib -bind-to none"
traces=$here/../../bench/traces
replay=../../bench/horovod_replay
for trace in resnet50_float resnet50_half resnet50_float_50ms bert_large_like; do
    case_ 2 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 256 \
        "$traces/horovod_$trace.csv"
done
for trace in digits_float digits_half; do
    EMU_NUM_DEVICES=2 case_ 2 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 4 \
        "$traces/horovod_$trace.csv"
done
EMU_NUM_DEVICES=4 case_ 4 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 64 \
    "$traces/horovod_resnet50_half.csv"
EMU_NUM_DEVICES=3 case_ 3 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 1024 \
    "$traces/horovod_every_collective.csv"
case_ 2 ob1 "$horovod $forced --mca coll_hetcoll_recognize_ops 0" $replay --check --shrink 1024 \
    "$traces/horovod_resnet50_half.csv"
case_ 2 ob1 "$horovod --mca coll ^hetcoll" $replay --check --host --shrink 1024 \
    "$traces/horovod_resnet50_half.csv"

end_cases
