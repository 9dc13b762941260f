#!/bin/bash
# train.py reaches the loss of distance 0 with distances up to 4, within 1 %, ends with the same weights on
# all ranks, and deterministic runs end with the same weights however late steps are. PYTHON: one with PyTorch.
set -u
python=${PYTHON:-/usr/bin/python3}
if [ -n "${HETCOLL_SANITIZER:-}" ]; then
    echo "skipped: this Python is not built with sanitizers"
    exit 77
fi
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skipped: $python has no PyTorch (Debian: python3-torch); PYTHON names another one"
    exit 77
fi
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=examples/wsp/environment.sh
. "$here/environment.sh"
export HETCOLL_WSP_LIBRARY="$build/.libs/libhetcoll_wsp.so.0" PYTHONDONTWRITEBYTECODE=1
ranks=2

# train OPTION...
train()
{
    timeout -k 5 900 "$mpirun" --mca coll ^hetcoll -n $ranks "$python" "$here/train.py" --steps 300 "$@" \
        >"$work/out" 2>"$work/errors" </dev/null
}
checksums() { sed -n 's/^checksum //p' "$work/out" | sort -u; }

(cd "$here" && "$python" -c 'import hetcoll_wsp; hetcoll_wsp.size()') >"$work/out" 2>"$work/errors"
grep -q 'call hetcoll_wsp.init() first' "$work/errors"
verdict $? "a program that forgets init() is told so"
train --distance 0
first=$(loss)
for distance in 1 2 4; do
    train --distance $distance --jitter-ms 3 && near "$(loss)" "$first"
    verdict $? "distance $distance: loss $(loss), against $first"
    [ "$(checksums | wc -l)" -eq 1 ]
    verdict $? "the weights $(checksums) on all ranks"
done
train --distance 3 --steps-per-wave 2 --deterministic
first=$(checksums)
train --distance 3 --steps-per-wave 2 --deterministic --jitter-ms 6 && [ -n "$first" ] && [ "$(checksums)" = "$first" ]
verdict $? "deterministic: the weights $first again, with other delays"
finish
