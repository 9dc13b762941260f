#!/bin/bash
# overlap.c on the emulated GPU: every sum is right, queued and where the calls synchronise.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=examples/wsp/environment.sh
. "$here/../wsp/environment.sh"
export EMU_NODE=stream$$ EMU_DELAY_US=100

# loop WANTED RANKS OPTION...
loop()
{
    local wanted=$1 ranks=$2
    shift 2
    timeout -k 5 300 "$mpirun" "$@" -n "$ranks" "$build/examples/stream/overlap" >"$work/out" 2>"$work/errors" </dev/null &&
        grep -qx "10 steps of 6 layers on $ranks ranks, $wanted: 0 elements wrong" "$work/out"
    verdict $? "overlap, $ranks ranks, $*: $wanted"
}
loop queued 2 --mca coll hetcoll
loop queued 3 --mca coll hetcoll --mca coll_hetcoll_ipc never
loop synchronised 1 --mca coll ^hetcoll
PYTHONDONTWRITEBYTECODE=1 python3 - "$here" <<'END'
import ast, sys
for name in ("sum_cupy.py", "train_torch.py"):
    with open(f"{sys.argv[1]}/{name}") as file:
        ast.parse(file.read(), name)
END
verdict $? "the Python examples are Python"
finish
