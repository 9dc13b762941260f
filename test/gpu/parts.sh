# parts.sh: what check_gpu.sh and first_minutes.sh share; they source it in the build folder. A part is a command whose
# output becomes a file of bench/results: the head names the GPU, driver, machine and commit, the last line is its
# result.
# shellcheck shell=bash
left_out=77

# omit WHY: ends the part without a result.
omit()
{
    echo "left out: $1"
    exit $left_out
}
needs() { [ -x "$1" ] || omit "$1 is not built${2:+: $2}"; }

# Sets gpu, the GPU's name as a part of a file's, and emulated: 1 if the emulated GPU stands in for a missing one.
find_gpu()
{
    if [ ! -x test/gpu/which_gpu ]; then
        echo "${0##*/}: $PWD/test/gpu/which_gpu is not built: was this configured --without-cuda?" >&2
        return 1
    fi
    emulated=0
    if ! test/gpu/which_gpu --real >/dev/null 2>&1; then
        emulated=1
        export LD_LIBRARY_PATH=$PWD/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} EMU_HOSTILE=1
        export EMU_KERNELS=$PWD/emulated_gpu/lib/libhetcoll_emulated_kernels.so
    fi
    export HETCOLL_CHECK_GPU_EMULATED=$emulated
    gpu=$(test/gpu/which_gpu | sed -n 's/^# gpu  *\([^:]*\).*/\1/p' | tr -cs 'A-Za-z0-9.\n-' _)
    [ -n "$gpu" ]
}

# run_part PART SECONDS FILE COMMAND...: the command's output on the screen and in the file.
run_part()
{
    local part=$1 seconds=$2 file=$3 status start=$SECONDS
    shift 3
    {
        test/gpu/which_gpu
        echo "# part        $part"
        timeout -k 10 "$seconds" "$@" 2>&1
        status=$?
        case $status in
        0) echo "# result      passed, $((SECONDS - start)) s" ;;
        $left_out) echo '# result      left out, see the line above' ;;
        124 | 137) printf '\n# result      failed: no end within %s s\n' "$seconds" ;;
        *) echo "# result      failed: exit status $status, $((SECONDS - start)) s" ;;
        esac
    } | tee "$file"
}

# sum_up_part PART FILE: its result, and the lines that matter most. Exit status 1 if it failed.
sum_up_part()
{
    local result
    result=$(sed -n 's/^# result  *//p' "$2" | tail -n 1)
    [[ $result != left* ]] || result=$(grep '^left out: ' "$2")
    echo "$1: $result"
    grep -E '^# (target|headline|first_call|own_kernels)' "$2"
    [[ $result != failed* ]]
}
