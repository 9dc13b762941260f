#!/bin/bash
# packages.sh BUILD [SUITE...]: Debian packages of this source, built, looked through by lintian, installed, used and
# purged, each suite (bookworm; trixie is Debian 13) in systems of its own: one that gets what Build-Depends names, and a
# bare one that gets what the packages ask for. Then, in BUILD, what else a newcomer meets: the page that hetcoll_info
# writes, and wrong inputs. The measures are in lines "# target". As root, for mount and chroot.
# Needs mmdebstrap and 3 GB a suite; on two cores 10 to 25 minutes each. Not a part of make check.
#
#   HETCOLL_RELEASES=DIR    where the systems are; the one for building is used again (/var/tmp/hetcoll-releases)
#   HETCOLL_CUDA_ARCH=LIST  architectures of the kernels (80)
#   CUDA_HOME=DIR           the toolkit (/usr/local/cuda)
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?name a build folder}" && pwd)
shift
folder=${HETCOLL_RELEASES:-/var/tmp/hetcoll-releases}
cuda=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")
arch=${HETCOLL_CUDA_ARCH:-80}
passed=0 failed=0
. "$src/test/system.sh"
need mmdebstrap unshare git dpkg-source
[ $# -gt 0 ] || set -- bookworm

# verdict WHAT COMMAND...: its output is in $folder/output.
verdict()
{
    local what=$1 start=$SECONDS
    shift
    if "$@" >"$folder/output" 2>&1; then
        echo "ok    $what, $((SECONDS - start)) s"
        passed=$((passed + 1))
    else
        echo "FAIL  $what"
        tail -n 25 "$folder/output" | sed 's/^/    | /'
        failed=$((failed + 1))
        return 1
    fi
}

# target WHAT LIMIT FOUND [SIGN]: whether what was found is at most (or with >= at least) the limit.
target()
{
    local met=missed
    ! awk -v found="$3" -v limit="$2" "BEGIN { exit !(found != \"\" && found ${4:-<=} limit) }" || met=met
    echo "# target      $1: $met, ${3:-not found}"
    [ $met = met ] || failed=$((failed + 1))
}

builds()
{
    rm -rf "$folder/$1/packages" && mkdir -p "$folder/$1/packages"
    cp "$build"/deb/*.dsc "$build"/deb/*.tar.xz "$folder/$1/packages"
    inside "$1" "cd /packages && dpkg-source -x *.dsc source >/dev/null && cd source && apt-get update -q &&
        DEBIAN_FRONTEND=noninteractive apt-get build-dep -qy --no-install-recommends -Ppkg.hetcoll.othercuda ./ &&
        export HETCOLL_CUDA=/usr/local/cuda HETCOLL_CUDA_ARCH=$arch NVCC_PREPEND_FLAGS=-allow-unsupported-compiler &&
        dpkg-buildpackage -b -us -uc -Ppkg.hetcoll.othercuda"
}

has_no_errors()
{
    inside "$1" "DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends lintian >/dev/null &&
        lintian --allow-root --fail-on error --tag-display-limit 0 /packages/*.changes"
}

# Dependencies are installed as well: times are with the download from the registry.
installs()
{
    cp "$folder/$1"/packages/*.deb "$folder/$2/root"
    inside "$2" "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends openmpi-bin"
    inside "$2" "find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /root -o -path /source -o -path /tmp -o -path /var/cache -o -path /var/log \
        -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -type f -print | sort >/root/before"
}

# In 30 seconds from the packages to a vector that was reduced in kernels, on a system with Open MPI.
reduces()
{
    inside "$1" "cd /root && rm -f *dbgsym* && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
        ./openmpi-coll-hetcoll_*.deb ./hetcoll-tools_*.deb ./hetcoll-emulated-gpu_*.deb &&
        . /usr/share/hetcoll/environment.sh &&
        /usr/lib/*/hetcoll/emulated_gpu/run mpirun --mca coll hetcoll --oversubscribe --mca mpi_yield_when_idle 1 -n 4 \
            hetcoll_bench --memory device --sizes 1M" &&
        grep -q 'every element right' "$folder/output"
}

# The HTML page and wrong inputs, by the tests of both.
serves_newcomers()
{
    make -s -C "$build" -j"$(nproc)" && make -s -C "$build" emulated_gpu/lib/libcuda.so.1 emulated_gpu/lib/libnvidia-ml.so.1 \
        emulated_gpu/lib/libhetcoll_emulated_kernels.so && make -s -C "$build" check-TESTS TESTS="$tests"
}

# The packages' own tests, as Debian runs them, in the bare system.
tests_pass()
{
    cp "$folder/$1"/packages/*.{dsc,tar.xz} "$folder/$2/root"
    inside "$2" "cd /root && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends autopkgtest dpkg-dev &&
        autopkgtest ./*.deb ./*.dsc -- null"
}

leaves_nothing()
{
    inside "$1" "mkdir -p /etc/hetcoll && echo table >/etc/hetcoll/tuning_table.json
        dpkg --purge \$(dpkg-query -f '\${Package}\n' -W '*hetcoll*') &&
        find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /root -o -path /source -o -path /tmp -o -path /var \) -prune -o \
            -iname '*hetcoll*' -print | grep . && exit 1
        find /usr /etc -type f | sort >/root/after && ! grep -Fxvf /root/before /root/after | grep hetcoll"
}

mkdir -p "$folder"
echo "# date          $(date -u '+%F %T UTC')"
echo "# machine       $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
echo "# commit        $(git -C "$src" describe --always --dirty --abbrev=12 --exclude '*')"
echo "# made by: test/packages.sh BUILD $*"
verdict 'the source of the packages' make -s -C "$build" deb SOURCE_ONLY=1 || exit 1
for suite in "$@"; do
    system=packages-$suite bare=bare-$suite
    verdict "$suite: a system to build in" make_system "$system" "$suite" build-essential,debhelper || continue
    verdict "$suite: the packages build" builds "$system" || continue
    ls -l "$folder/$system"/packages/*.deb | awk '{ sub(".*/", "", $NF); printf "      %9d bytes  %s\n", $5, $NF }'
    errors=0
    verdict "$suite: lintian finds no error" has_no_errors "$system" ||
        errors=$(grep -c '^E:' "$folder/output" | grep -vx 0 || :)
    grep -E '^[EWI]:' "$folder/output" | sed 's/^/      /' || :
    target "$suite: lintian's errors, none" 0 "$errors"
    rm -rf "${folder:?}/$bare"
    verdict "$suite: a bare system" make_system "$bare" "$suite" '' || continue
    verdict "$suite: it gets Open MPI" installs "$system" "$bare" || continue
    start=$EPOCHREALTIME
    took=
    ! verdict "$suite: from the packages to a reduced device buffer" reduces "$bare" ||
        took=$(awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }')
    target "$suite: seconds from apt install to that, at most 30" 30 "$took"
    verdict "$suite: autopkgtest: $(grep -c '^Tests:' "$src/packaging/debian/tests/control") tests pass" tests_pass "$system" "$bare" || :
    verdict "$suite: purged, nothing is left" leaves_nothing "$bare" || :
    rm -rf "${folder:?}/$bare"
done
tests='tools/report_test.sh test/tools/bad_inputs.sh'
rm -f "$build/tools/report_test.log" "$build/test/tools/bad_inputs.log"
verdict 'the page that hetcoll_info writes, and wrong inputs' serves_newcomers || :
target 'bytes of the page, at most 500000' 500000 \
    "$(sed -n 's/^ok .*the page has at most .*: \([0-9]*\) bytes.*/\1/p' "$build/tools/report_test.log")"
target 'wrong inputs that get the right message, at least 150' 150 \
    "$(sed -n 's/^\([0-9]*\) wrong inputs .*/\1/p' "$build/test/tools/bad_inputs.log")" '>='
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
