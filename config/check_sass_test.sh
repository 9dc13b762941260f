#!/bin/sh
# check_sass_test.sh: what config/sass.awk says of a kernel that is as it must be, and of others with one thing wrong.
set -u
source=${HETCOLL_SRCDIR:-.}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# says TEXT [SED-COMMAND]: the verdict on the kernel, changed by the command, has the text.
says()
{
    sed "${2:-}" >"$work/listing" <<'END'
arch = sm_80
 Function hetcoll_reduce2_sum_uint32:
  REG:30 STACK:0 SHARED:0 LOCAL:0
	Function : hetcoll_reduce2_sum_uint32
        /*0010*/                   LDG.E.128 R4, desc[UR4][R2.64] ;                /* 0x0000000402047981 */
                                                                                   /* 0x000ea8000c1e1d00 */
        /*0020*/              @!P0 BRA 0x60 ;                                      /* 0x0000000402047981 */
        /*0030*/              @!P0 LDG.E.128 R8, desc[UR4][R12.64+0x10] ;          /* 0x0000000402047981 */
        /*0040*/                   IADD3 R4, P1, R4, R8, RZ ;                      /* 0x0000000402047981 */
        /*0050*/                   STG.E.128 desc[UR4][R2.64], R4 ;                /* 0x0000000402047981 */
        /*0060*/                   EXIT ;                                          /* 0x000000000000794d */
        /*0070*/                   LDG.E.U8 R4, desc[UR4][R2.64] ;                 /* 0x0000000402047981 */
        /*0080*/                   STG.E.U8 desc[UR4][R2.64], R4 ;                 /* 0x0000000402047981 */
END
    printf '%s\n' 'hetcoll_reduce2_* 64 16 16 2' >"$work/rules"
    awk -f "$source/config/sass.awk" "$work/rules" "$work/listing" >"$work/verdict"
    if grep -qF -- "$1" "$work/verdict"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  '$1' is not in the verdict after '${2:-}':"
        cat "$work/verdict"
    fi
}

says 'passed  sm_80 hetcoll_reduce2_*: kernels 1, registers at most 30, loads in flight at least 2'
says 'has 65 registers, more than 64' 's/REG:30/REG:65/'
says 'has 8 bytes of local memory' 's/STACK:0/STACK:8/'
says 'spills: STL.64' 's/IADD3.*;/STL.64 [R1], R6 ;/'
says "loads through the cache that other GPUs' writes do not reach: LDG.E.128.CONSTANT" 's/LDG.E.128/&.CONSTANT/'
says 'has 4-byte loads at most, not of 16 bytes' 's/LDG.E.128/LDG.E/'
says 'has 8-byte stores at most, not of 16 bytes' 's/STG.E.128/STG.E.64/'
says 'has 1 loads in flight, fewer than 2' 's/@!P0 BRA 0x60/FADD R1, R7, R7/'
says 'has 1 loads in flight, fewer than 2' 's/R12.64+0x10/R4.64/'
says 'has 1 loads in flight, fewer than 2' 's/@!P0 BRA 0x60/    BRA 0x60/'
says 'loads in flight at least 2' 's/@!P0 BRA 0x60/BRA.U !UP0, 0x60/'
says 'sm_80 hetcoll_new: no rule' 's/hetcoll_reduce2_sum_uint32/hetcoll_new/'
says 'FAILED  sm_80 hetcoll_reduce2_*: kernels 0' 's/hetcoll_reduce2_sum_uint32/hetcoll_new/'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
