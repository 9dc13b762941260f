#!/bin/sh
# The output of hetcoll_info topology, and its errors about arguments that it cannot follow.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"

says 0 'gpu0     X   NV2   NV2' --topology "$machines/dgx1v.topology:0,3,4"
says 0 'DGX A100: 8 gpu, 6 nvswitch' --topology "$machines/dgxa100.topology"
says 0 '      mlx5_0  mlx5_1' --topology "$machines/dgxa100.topology" # a table of their own
for machine in dgx1v dgx2 dgxa100 dgxh100 pcie8; do
    "$info" topology "$machines/$machine.topology" >"$work/out" 2>&1 && [ "$(wc -L <"$work/out")" -le 100 ]
    verdict $? "the links of $machine are at most 100 columns wide"
done
says 0 'graph topology {' --topology "$machines/pcie8.topology" --dot
says 0 '</svg>' --topology "$machines/dgx2.topology" --svg
says 2 'write one of topology, explain, '
says 1 'cannot be read (No such file or directory)' --topology "$work/none"
says 1 'there is no GPU 9' --topology "$machines/dgx1v.topology:9"
says 2 'excludes' --topology "$machines/dgx2.topology" --svg --dot
printf 'hetcoll topology 1\ngpu a -\nlink a b nvlink 1 25\n' >"$work/broken"
says 1 "broken:3: 'b' is not the name of a vertex" --topology "$work/broken"

# It reads what it writes: the same fragment as the shipped one, but for the comment.
"$info" --topology "$machines/dgx1v.topology:0,1,4" --write >"$work/fragment" &&
    grep -v '^#' "$machines/dgx1v-014.topology" | cmp - "$work/fragment" >"$work/out" 2>&1
verdict $? 'it writes what it reads'
says 0 'gpu4    50   9.6     X' --topology "$work/fragment"

# The example in the documentation is one.
sed -n '/^hetcoll topology 1/,/^```/p' "$HETCOLL_SRCDIR/docs/topology.md" | grep -v '^```' >"$work/example"
says 0 'gpu0     X   NV2     PIX' --topology "$work/example"

# This machine, which the emulated GPU and its NVML play.
export EMU_NODE="info$$" EMU_LINKS="$machines/dgx1v-014.topology"
says 0 'gpu2   NV2   SYS     X' --topology
says 0 'gpu0     X   NV1   NV2' --topology --measure
EMU_LINKS=$machines/dgxa100.topology
says 0 'link gpu7 nvs0 nvlink 12 25' --topology --write
export CUDA_VISIBLE_DEVICES=
says 0 '(no GPU)' --topology
says 0 'hetcoll topology 1' --topology --write
says 2 '--measure is for this machine' --topology "$machines/pcie8.topology" --measure

sum_up
