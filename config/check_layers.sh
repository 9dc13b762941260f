#!/bin/sh
# check_layers.sh [SOURCE_DIR]: which folder may include which. Dependencies point down only, and only
# the component knows Open MPI's own headers (docs/internals/architecture.md).
set -u
cd "${1:-${HETCOLL_SRCDIR:-.}}" || exit 1
failures=0
named=

# layer FOLDER ALLOWED...: the quoted includes of FOLDER's files name only FOLDER and the allowed ones.
layer()
{
    folder=$1
    shift
    named="$named $folder"
    if [ ! -d "$folder" ]; then
        verdict "$folder" "$*" " (there is no such folder: take its rule out)"
        return
    fi
    wrong=
    for used in $(find "$folder" -maxdepth 1 -regex '.*\.\(h\|c\|cc\|cu\|cuh\)' |
                  xargs -r sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' | sort -u); do
        case $used in
        */*) from=${used%/*} ;;
        *) from=$(case $used in hetcoll_config.h | hetcoll_version.h) echo configured ;; *) echo "$folder" ;; esac) ;;
        esac
        case " $folder configured $* " in
        *" $from "*) ;;
        *) wrong="$wrong $used" ;;
        esac
    done
    verdict "$folder" "$*" "$wrong"
}

# any FOLDER: tests look at whatever they test.
any()
{
    named="$named $1"
    echo "ok    $1 -> anything"
}

# verdict WHAT ALLOWED WRONG
verdict()
{
    if [ -z "$3" ]; then
        echo "ok    $1 -> ${2:-nothing}"
    else
        echo "FAIL  $1 -> ${2:-nothing}, but:$3"
        failures=$((failures + 1))
    fi
}

layer base
layer include
layer schedule base
layer topology base
layer machine base schedule topology
layer plan base schedule topology machine
layer tuning base schedule machine plan
layer price base schedule topology machine plan
layer choice base schedule machine plan tuning price
layer cuda_kernels base
layer device base cuda_kernels
layer pointer_cache base device
layer topology_probe base device topology
layer transport base device cuda_kernels topology
layer aggregator base cuda_kernels
core="base schedule topology machine plan tuning price choice cuda_kernels device pointer_cache topology_probe transport aggregator"
layer engine/types base
layer engine/meeting $core engine/types
layer engine/process $core engine/types engine/meeting
layer engine/communicator $core engine/types engine/meeting engine/process
layer engine/call $core engine/types engine/meeting engine/process engine/communicator
layer engine $core engine/types engine/meeting engine/process engine/communicator engine/call
layer wsp base cuda_kernels device pointer_cache include
layer sim base schedule topology machine plan tuning price choice engine/types
layer emulated_gpu
layer emulated_kernels base cuda_kernels emulated_gpu

# The parts that programs share, then the programs. Nothing that is installed includes a part that is only for tests.
layer measure base schedule machine tuning cuda_kernels device include engine/types
layer tools $core engine engine/types engine/meeting sim measure tools/report
layer bench $core sim measure include test/gpu test/unit
layer examples include
layer examples/stream include
layer examples/wsp include
any test/unit
any test/model
any test/model/stand_in/engine/communicator
any test/mpi
any test/gpu
any test/aggregator
any test/fuzz
any test/seeds
any test/clients

# The component is of Open MPI's code too, which names its own folders.
component=ompi/mca/coll/hetcoll
wrong=
for used in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)\/[^"]*".*/\1/p' $component/*.[ch] | sort -u); do
    case " engine engine/types include " in
    *" $used "*) continue ;;
    esac
    case " $named " in
    *" $used "*) wrong="$wrong $used" ;;
    esac
done
verdict "$component" "engine engine/types include, Open MPI" "$wrong"

# Open MPI's types end in the component; programs and the public header know mpi.h only.
wrong=$(grep -rlE '^ *# *include *[<"](ompi|opal|orte|oshmem)[/_]' $named | sort -u | tr '\n' ' ')
verdict "everything but $component" "no internal header of Open MPI" "${wrong:+ $wrong}"
wrong=$(grep -rlE '^ *# *include *[<"]mpi(-ext)?\.h[>"]' $core engine sim emulated_gpu emulated_kernels | tr '\n' ' ')
verdict "the core, sim and the emulated GPU" "no mpi.h" "${wrong:+ $wrong}"

# Headers that take seconds to compile have one source file each, which the others have a narrow header of.
behind="measure/command_line.cc measure/json_document.cc tuning/json_reader.cc"
wrong=$(grep -rlE '^ *# *include *<(CLI|nlohmann)/' $named | grep -vxF "$(echo "$behind" | tr ' ' '\n')" | tr '\n' ' ')
verdict "everything but $behind" "no header of CLI11 and nlohmann-json" "${wrong:+ $wrong}"

# An algorithm is known by its row, and by what plan/ says of it.
wrong=$(grep -rlE '\bAlgorithm::k' $named | grep -vE '^(plan|test)/' | tr '\n' ' ')
verdict "everything but plan/ and test/" "no single algorithm (Algorithm::k...)" "${wrong:+ $wrong}"

# Inside Open MPI's source tree another Makefile builds the core.
wrong=
for folder in $core engine; do
    grep -q "^include \$(srcdir)/$folder/local.mk" $component/Makefile.am && grep -q "[ =]$folder[ ;]" config/ompi_tree.sh ||
        wrong="$wrong $folder"
done
[ -z "$wrong" ] || wrong="$wrong (not in $component/Makefile.am or config/ompi_tree.sh)"
verdict "the core in Open MPI's source tree" "every folder" "$wrong"

# A folder of sources without a rule is a hole. A release has no git, and builds in a folder of its own;
# config/compat has headers that Open MPI does not install.
sources=$(git ls-files '*.h' '*.c' '*.cc' '*.cu' '*.cuh' 2>/dev/null)
[ -n "$sources" ] || sources=$(find . -mindepth 1 \( -name '.*' -o -name '_*' -o -name 'build*' \) -prune -o \
    -regex '.*\.\(h\|c\|cc\|cu\|cuh\)' -print | sed 's,^\./,,')
wrong=
for folder in $(echo "$sources" | sed -n '/^config\/compat\//d; s,/[^/]*$,,p' | sort -u); do
    case " $named $component " in
    *" $folder "*) ;;
    *) wrong="$wrong $folder" ;;
    esac
done
[ -z "$wrong" ] || wrong="$wrong (say here what it may include)"
verdict "every folder of sources" "a rule" "$wrong"

[ "$failures" -eq 0 ] || echo "$failures of the layer checks failed"
[ "$failures" -eq 0 ]
