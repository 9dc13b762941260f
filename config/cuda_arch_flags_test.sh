#!/bin/sh
# cuda_arch_flags_test.sh: the flags for the kernels, with an nvcc that knows what CUDA 13.0 does.
set -u
source=${HETCOLL_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cat >"$work/nvcc" <<'SCRIPT'
#!/bin/sh
case $1 in
--version) echo "Cuda compilation tools, release 13.0, V13.0.88" ;;
*) printf 'sm_%s\n' 75 80 86 87 88 89 90 100 103 110 120 121 ;;
esac
SCRIPT
chmod +x "$work/nvcc"
failed=0
say()
{
    echo "$1  $2"
    [ "$1" = ok ] || failed=1
}

# flags_are WHAT FLAGS [LIST]: those with this list are FLAGS, in short: FROM:TO is machine code for TO from PTX of FROM,
# FROM alone that PTX.
flags_are()
{
    got=$(sh "$source/config/cuda_arch_flags.sh" "$work/nvcc" "${3-}" | tr ' ' '\n' |
        sed -n 's/-gencode=arch=compute_\([0-9]*\),code=sm_/\1:/p; s/-gencode=arch=compute_\([0-9]*\),code=compute_\1$/\1/p')
    got=$(echo $got)
    [ "$got" = "$2" ] && say ok "$1" || say FAIL "$1: $got instead of $2"
}
flags_are 'without a list: all architectures, of four PTX' '75 75:75 80:80 80:86 89:89 90:90 90:100 90:103 90:120 90:121 90'
flags_are 'a list alone' '80:86 90:120 90' 8.6,sm_120

# Where the sources differ is where another PTX begins.
differ=$(cd "$source/cuda_kernels" && cat *.h *.cuh *.cu |
    grep -o '\(HETCOLL_GPU_ARCH\|__CUDA_ARCH__\|kArch\) *[<>=]* *[0-9][0-9]*' | sed 's/.* //; s/0$//' | sort -nu)
steps=$(sed -n "s/^steps='\(.*\)'$/\1/p" "$source/config/cuda_arch_flags.sh")
for arch in $differ; do
    [ "$arch" -gt 60 ] || continue # what every one has
    case " $steps " in
    *" $arch "*) say ok "sm_$arch has PTX of its own" ;;
    *) say FAIL "the sources differ from sm_$arch on, and it has no PTX of its own: add it to steps in config/cuda_arch_flags.sh" ;;
    esac
done
exit $failed
