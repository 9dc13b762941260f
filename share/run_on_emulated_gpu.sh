#!/bin/sh
# run COMMAND...: runs it on the emulated GPU next to this file, without a GPU or a driver of one:
#   run mpirun --oversubscribe -n 4 hetcoll_bench --demo
# It shows that results are right, and says nothing of speed.
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd) || exit 1
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
export EMU_KERNELS="$here/libhetcoll_emulated_kernels.so"
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
