# Cases of run.sh: communicators, contexts and processes that come and go, and calls of Horovod.
# shellcheck shell=bash disable=SC2154,SC2034

for test in many leaked reset requests destroyed ended anew after side before forked untouched; do
    case_ 3 ob1 "$forced" lifecycle $test
done
case_ 2 ucx "$forced" lifecycle many
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" lifecycle requests
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" lifecycle destroyed
case_ 2 ucx "$forced" lifecycle forked
case_ 3 ob1 "$forced" sessions
case_ 2 ob1 "$forced" spawned
case_ 1 ob1 "$forced" spawned
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced" spawned
for test in communicators splits buffers handles; do
    case_ 3 ob1 "$forced" churn $test
done
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" churn communicators
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" churn buffers
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" churn splits
case_ 1 ob1 "$forced" churn buffers
case_ 4 ucx "$forced" churn splits

# What programs bring.
case_ 2 ob1 "$forced" callers contexts
EMU_NUM_DEVICES=3 case_ 3 ob1 "$forced" callers contexts
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with ring)" callers contexts
case_ 3 ob1 "$forced" callers padding
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" callers padding
case_ 3 ob1 "$(with ring) --mca coll_hetcoll_ipc never" callers padding
for level in single funneled serialized multiple; do
    case_ 2 ob1 "$forced" callers level $level
done
message='hetcoll ignores its tuning table and chooses algorithms by its model'
case_ 3 ob1 "$forced" callers tables "$here/../../tools/hetcoll_tune_test.json"
message=

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
