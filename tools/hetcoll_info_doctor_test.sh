#!/bin/bash
# hetcoll_info doctor: what it finds where all is well, and in the situations that it is for.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"
export OMPI_MCA_mca_base_component_path="$HETCOLL_BUILDDIR/component:$OMPI_COMPONENTS"
export OMPI_MCA_btl_vader_single_copy_mechanism=none EMU_NODE="doctor$$"
component="$HETCOLL_BUILDDIR/component"
mpirun=(--mpirun "$MPIRUN" --component "$component")

# All is well.
says 0 "component      $component/mca_coll_hetcoll.so, found by 2 ranks of mpirun" --doctor component "${mpirun[@]}"
says 0 'note   driver         the emulated GPU, CUDA ' --doctor gpus
says 0 'ok     kernels        built by CUDA ' --doctor gpus
says 0 'ok     kernels        built by CUDA ' --doctor shm,kernels
! grep -q component "$work/out"
verdict $? 'the name of a line asks for its check, and for no other'
says 0 'ok     shm            /dev/shm has ' --doctor shm
says 0 'hetcoll_info: nothing is wrong' --doctor component,gpus,shm "${mpirun[@]}"
"$info" --doctor "${mpirun[@]}" >"$work/out" 2>&1
checks=$(sed -n 's/^\(ok\|note\|wrong\) *\([a-z_]*\) .*/\2/p' "$work/out" | tr '\n' ' ')
[ "$checks" = 'open_mpi dlopen component parameters driver kernels peers shm locked_memory ucx table ' ]
verdict $? "it looks at $checks"
if command -v python3 >/dev/null; then
    "$info" --doctor gpus,table --json >"$work/out" &&
        python3 "$HETCOLL_SRCDIR/tools/schema_check.py" "$HETCOLL_SRCDIR/tools/schema" "$work/out" >"$work/schema" 2>&1
    verdict $? 'its JSON is as the schema says'
fi
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
# shellcheck disable=SC2086
timeout -k 5 120 "$MPIRUN" $root -n 1 "$info" --doctor component "${mpirun[@]}" >"$work/out" 2>&1 </dev/null &&
    grep -q 'found by this rank' "$work/out"
verdict $? 'within a job the rank itself looks'

# Settings of the environment.
OMPI_MCA_coll_hetcoll_chunk_bytes=64K says 0 'ok     parameters     coll_hetcoll_chunk_bytes' --doctor parameters
OMPI_MCA_coll_hetcoll_algorithm=rings says 1 "wrong  parameters     coll_hetcoll_algorithm 'rings' is unknown, write " --doctor parameters
OMPI_MCA_coll_hetcoll_accumulate=flaot says 1 'MPI_Init fails' --doctor parameters
OMPI_MCA_coll_hetcoll_fixed_point=8x OMPI_MCA_coll_hetcoll_ring=1 says 1 'hetcoll_info: 2 things are wrong' --doctor parameters
grep -q '^wrong  parameters     there is no coll_hetcoll_ring' "$work/out"
verdict $? 'and names the name'

# Settings of a parameter file, which jobs read as well; who set them.
mkdir -p "$work/home/.openmpi"
params=$work/home/.openmpi/mca-params.conf
file() # LINE STATUS TEXT ARGUMENT...: with that line in the user's file
{
    printf '# coll_hetcoll_none = 1\n%s\n' "$1" >"$params"
    HOME=$work/home says "$2" "$3" "${@:4}" "${mpirun[@]}"
}
file 'coll_hetcoll_chunk_bytes = 64K' 0 "ok     parameters     coll_hetcoll_chunk_bytes (by $params:2)" --doctor parameters
file '  coll_hetcoll_prioritty=96' 1 'wrong  parameters     there is no coll_hetcoll_prioritty' --doctor parameters
grep -q "it is set in $params:2; jobs run without it" "$work/out"
verdict $? 'and says where'
file 'hetcoll_algorithm = ring' 1 'there is no hetcoll_algorithm' --doctor parameters
file 'coll_hetcoll_algorithm = rings' 1 "coll_hetcoll_algorithm 'rings' is unknown" --doctor parameters
export OMPI_MCA_coll_hetcoll_algorithm=ring
file 'coll_hetcoll_algorithm = rings' 0 'coll_hetcoll_algorithm (by environment)' --doctor parameters
unset OMPI_MCA_coll_hetcoll_algorithm
file 'coll = ^hetcoll' 1 "the parameter coll is '^hetcoll' (by file ($params:2))" --doctor component
file 'coll_hetcoll_enable = 0' 0 "see coll_hetcoll_enable (by file ($params:2))" --doctor component
file "coll_hetcoll_tuning_table = $work/none" 1 'none: cannot be opened' --doctor table
file 'coll_hetcoll_priority = 5' 1 "coll_hetcoll_priority is 5 (by file ($params:2)) and less than others: tuned has 30" \
    --doctor component

# Another component has a higher priority, whoever says so, unless it takes no part.
OMPI_MCA_coll_hetcoll_priority=5 says 1 'priority is 5 (by environment) and less than others: tuned has 30, basic has 10' \
    --doctor component "${mpirun[@]}"
OMPI_MCA_coll_han_priority=99 says 1 'and less than others: han has 99 (by environment)' --doctor component "${mpirun[@]}"
OMPI_MCA_coll_hetcoll_priority=5 OMPI_MCA_coll='^tuned,basic,hcoll,ucc,cuda' says 0 'found by 2 ranks' \
    --doctor component "${mpirun[@]}"

# Jobs that run without hetcoll.
OMPI_MCA_mca_base_component_path=/nowhere says 1 'wrong  component      ' --doctor component "${mpirun[@]}"
grep -q /nowhere "$work/out" && grep -q "^ *export OMPI_MCA_mca_base_component_path=$component:$OMPI_COMPONENTS" "$work/out"
verdict $? 'and names the folder, and the line that is missing'
if [ ! -e "$OMPI_COMPONENTS/mca_coll_hetcoll.so" ]; then
    OMPI_MCA_mca_base_component_path=$OMPI_COMPONENTS
    says 1 "2 ranks of mpirun find no hetcoll: it is in $component, and they look in $OMPI_COMPONENTS (by environment)" \
        --doctor component "${mpirun[@]}"
    line=$(sed -n 's/^ *\(export OMPI_MCA_mca_base_component_path=.*\)/\1/p' "$work/out")
    says 1 'make install, or say where it is' --doctor component --mpirun "$MPIRUN" --component "$work"
    eval "$line"
    says 0 'found by 2 ranks' --doctor component "${mpirun[@]}"
fi
OMPI_MCA_coll='^hetcoll' says 1 "the parameter coll is '^hetcoll' (by environment)" --doctor component "${mpirun[@]}"
OMPI_MCA_coll='hetcoll,basic,libnbc,self' says 0 'found by 2 ranks' --doctor component "${mpirun[@]}"
OMPI_MCA_coll_hetcoll_enable=0 says 0 'and switched off' --doctor component "${mpirun[@]}"
mkdir "$work/broken"
echo broken >"$work/broken/mca_coll_hetcoll.so"
OMPI_MCA_mca_base_component_path="$work/broken:$OMPI_COMPONENTS" says 1 'file too short' --doctor component "${mpirun[@]}"

# Another mpirun.
script()
{
    printf '#!/bin/bash\n%s\n' "$1" >"$work/mpirun"
    chmod +x "$work/mpirun"
}
script 'echo HYDRA build details:'
says 1 "is another MPI's: it says 'HYDRA build details:'" --doctor component --mpirun "$work/mpirun"
script 'exec '"$MPIRUN"' "$@"'
printf '#!/bin/sh\n"%s" "$@" | sed "s/^ompi:version:full:.*/ompi:version:full:9.8.7/; s/^option:dlopen:.*/option:dlopen:no/"\n' \
    "$OMPI_INFO" >"$work/ompi_info"
chmod +x "$work/ompi_info"
says 1 "wrong  open_mpi       9.8.7, by $work/mpirun, and hetcoll was built for " --doctor component --mpirun "$work/mpirun"
grep -q '^wrong  dlopen ' "$work/out"
verdict $? 'and if it loads no components'
printf '#!/bin/sh\necho nothing\n' >"$work/ompi_info"
says 1 'ompi_info fails' --doctor component --mpirun "$work/mpirun"
rm "$work/ompi_info"
# shellcheck disable=SC2016
script '[ "$1" = --version ] && exec '"$MPIRUN"' "$@"; exit 3'
says 1 'mpirun -n 2 fails: it says nothing' --doctor component --mpirun "$work/mpirun"
# shellcheck disable=SC2016
script '[ "$1" = --version ] && exec '"$MPIRUN"' "$@"; trap "" TERM; sleep 1000 & echo $! >'"$work/left"'; wait; wait'
says 1 'mpirun -n 2 does not end within ' --doctor component --mpirun "$work/mpirun"
left=$(ps -o stat= -p "$(cat "$work/left")")
case $left in '' | Z*) true ;; *) false ;; esac
verdict $? 'and nothing of it is left'
says 1 "$work/none is no program" --doctor component --mpirun "$work/none"
env PATH="$work/broken" "$info" --doctor component >"$work/out" 2>&1
[ $? -eq 1 ] && grep -q '^wrong  open_mpi       there is no mpirun on PATH' "$work/out"
verdict $? 'and where there is none on PATH'

# No GPU, no driver, a driver that is none.
CUDA_VISIBLE_DEVICES='' says 0 "CUDA_VISIBLE_DEVICES is '', which hides every GPU" --doctor gpus
echo broken >"$work/broken/libcuda.so.1"
LD_LIBRARY_PATH="$work/broken" "$info" --doctor gpus >"$work/out" 2>&1
grep -qE '^(note|wrong)  *driver .*libcuda\.so\.1' "$work/out"
verdict $? 'a driver that cannot be loaded'
EMU_FAIL=cuInit:1:100 says 0 'driver         no GPU: cuInit failed' --doctor gpus

# Tables.
EMU_LINKS=$machines/pcie8.topology
export EMU_LINKS
table() { OMPI_MCA_coll_hetcoll_tuning_table=$1 says "$2" "$3" --doctor table; }
table none 0 'note   table          coll_hetcoll_tuning_table is none'
table "$work/none" 1 'none: cannot be opened: No such file or directory'
table "$work/broken/libcuda.so.1" 1 'libcuda.so.1:1: '
table "$HETCOLL_SRCDIR/tools/hetcoll_tune_test.json" 1 'hetcoll_tune measures this machine'
fingerprint=$("$info" --fingerprint --topology --json | sed -n 's/^    "\([a-z]*\)": "\(.*\)",*$/fact \1 \2/p')
printf '%s\n' "$fingerprint" >"$work/out"
sed "/^fact /d; /^machine dgx/r $work/out" "$HETCOLL_SRCDIR/tools/hetcoll_tune_test.dgx.measurements" >"$work/own.measurements"
"$HETCOLL_BUILDDIR/hetcoll_tune" --from-measurements "$work/own.measurements" --output "$work/own.json" >"$work/out" 2>&1
table "$work/own.json" 0 'rules for dgx, which is this machine'
CUDA_VISIBLE_DEVICES='' table "$work/own.json" 0 'as no GPU can be used here'

# A small /dev/shm, where a name space for it may be made.
if unshare -m true 2>"$work/out"; then
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs -o size=64k none /dev/shm && exec "$0" --doctor shm' "$info" >"$work/out" 2>&1
    [ $? -eq 1 ] && grep -q '^wrong  shm .*--shm-size' "$work/out"
    verdict $? 'a /dev/shm that is full'
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs -o size=64m none /dev/shm && exec "$0" --doctor shm' "$info" >"$work/out" 2>&1
    ranks=$(($(nproc --all) > 2 ? $(nproc --all) : 2))
    fit=$(sed -n "s/^ok     shm .* holds the pages of \([0-9]*\) communicators of [0-9]* ranks here$/\1/p" "$work/out")
    # 16 KiB a rank are what one may take at most.
    [ "${fit:-0}" -ge $((32 * 1024 / (16 * ranks))) ] && [ "$fit" -lt $((32 * 1024 / (4 * ranks))) ]
    verdict $? "how many communicators fit into 64 MiB"
fi

sum_up
