#!/bin/sh
# From a fresh Debian machine to a tested hetcoll: installs what is missing, builds in build/, runs.
#
#   ./bootstrap.sh deps     only install what is missing
#   ./bootstrap.sh check    install, build, run every test
#   ./bootstrap.sh lint     install clang-format and clang-tidy too, look at the form of the sources and for what is
#                           likely to be wrong in them; further words are for make (check-tidy TIDY_FILES=9)
#   ./bootstrap.sh browser  install a browser without a screen, for one of the tests: 98 MB, 306 MB on the disk
#   ./bootstrap.sh demo     install, build, reduce device buffers on 4 ranks and check every element
#   ./bootstrap.sh horovod  install, build, build Horovod, train on 2 and 4 ranks with hetcoll and
#                           without: the same results? Takes 200 MB of packages more
#   ./bootstrap.sh horovod-pypi
#                           the same on 2 ranks with PyTorch from PyPI in a virtual environment, of Python 3.12 if
#                           it is here with its headers: 2.3 GB of packages, 5 GB on the disk
#
# HETCOLL_CUDA=DIR names the CUDA toolkit; HETCOLL_CUDA=fetch takes the Python packages even where a
# toolkit is installed. Otherwise: CUDA_HOME, nvcc on PATH, /usr/local/cuda, and then the packages.
set -eu
cd "$(dirname "$0")"

debian_packages="build-essential automake autoconf libtool pkg-config git ca-certificates
    libopenmpi-dev openmpi-bin libssl-dev libucx-dev libhwloc-dev libgtest-dev libbenchmark-dev
    nlohmann-json3-dev libcli11-dev libsimgrid-dev python3-venv python3-jsonschema procps spin help2man"

# The pages that hetcoll_info writes are opened in it; without it that test is skipped.
browser_package=chromium-headless-shell

# CUDA 13.0: the oldest whose Python packages have nvcc, so the one that the oldest drivers take.
toolkit_packages="nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-crt==13.0.*
    nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.*"
toolkit_dir=$PWD/.cuda-toolkit

# config/check_sass.sh reads the kernels' machine code with these: from 13.2 on there are Python packages.
disassembler_packages="nvidia-cuda-cuobjdump==13.2.* nvidia-cuda-nvdisasm==13.2.*"
disassembler_dir=$PWD/.cuda-disassembler

# For horovod-pypi: the PyTorch of the GPU machines on which hetcoll was tried.
torch_package="torch==2.11.*"

say() { printf 'bootstrap.sh: %s\n' "$*"; }
die()
{
    printf 'bootstrap.sh: %s\n' "$*" >&2
    exit 1
}

# --- What Debian has

require_debian()
{
    id=$(sed -n 's/^ID=//p; s/^ID_LIKE=//p' /etc/os-release 2>/dev/null | tr -d '"' | tr '\n' ' ')
    case " $id " in
    *" debian "*) ;;
    *)
        die "this is not Debian (${id:-no /etc/os-release}), so it cannot install packages here." \
            "Install the equivalents of: $(echo $debian_packages);" \
            "then run ./autogen.sh && ./configure && make (docs/install.md)"
        ;;
    esac
    command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
        die "apt-get or dpkg-query not found: this Debian cannot install packages"
}

missing_packages()
{
    for package in $debian_packages; do
        dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' ||
            printf '%s ' "$package"
    done
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -- "$@"
    fi
}

apt()
{
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 \
        -o Acquire::Retries=3 -o Acquire::http::Timeout=60 "$@"
}

install_debian_packages()
{
    require_debian
    missing=$(missing_packages)
    if [ -z "$missing" ]; then
        say "Debian packages: all there"
        return
    fi
    say "Debian packages to install: $missing"
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        die "installing them needs root, and there is no sudo: run as root: apt-get install $missing"
    fi
    apt update || die "apt-get update failed, its message is above: is there a network," \
        "may this user use sudo, and are the sources in /etc/apt right?"
    apt install --no-install-recommends $missing ||
        die "apt-get install failed, its message is above. Wanted: $missing"
}

# --- CUDA

# Prints why it is none.
is_toolkit()
{
    if [ ! -x "$1/bin/nvcc" ] || [ ! -f "$1/include/cuda.h" ]; then
        echo "no bin/nvcc and include/cuda.h in $1"
        return 1
    fi
    probe=$(mktemp -d)
    printf '#include <cuda.h>\n#include <cuda_fp16.h>\n__global__ void probe() {}\n' >"$probe/probe.cu"
    status=0
    "$1/bin/nvcc" -std=c++17 -cubin -arch=sm_80 -o "$probe/probe.cubin" "$probe/probe.cu" \
        >"$probe/log" 2>&1 || {
        status=1
        echo "$1/bin/nvcc does not compile a kernel: $(grep -m1 . "$probe/log")"
    }
    rm -rf "$probe"
    return $status
}

nvcc_home()
{
    nvcc=$(command -v nvcc) || return 0
    nvcc=$(readlink -f "$nvcc")
    echo "${nvcc%/bin/nvcc}"
}

# Sets cuda_dir.
find_cuda()
{
    cuda_dir=
    if [ -n "${HETCOLL_CUDA:-}" ] && [ "$HETCOLL_CUDA" != fetch ]; then
        why=$(is_toolkit "$HETCOLL_CUDA") || die "HETCOLL_CUDA is no CUDA toolkit: $why"
        cuda_dir=$HETCOLL_CUDA
    elif [ "${HETCOLL_CUDA:-}" != fetch ]; then
        for dir in "${CUDA_HOME:-}" "$(nvcc_home)" /usr/local/cuda; do
            if [ -z "$cuda_dir" ] && [ -n "$dir" ] && [ -e "$dir" ]; then
                if why=$(is_toolkit "$dir"); then
                    cuda_dir=$dir
                else
                    say "not used: $why"
                fi
            fi
        done
    fi
    [ -n "$cuda_dir" ] || fetch_toolkit
    say "CUDA toolkit: $cuda_dir"
}

fetch_toolkit()
{
    stamp=$toolkit_dir/hetcoll-packages
    if [ "$(cat "$stamp" 2>/dev/null)" != "$toolkit_packages" ]; then
        [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ] ||
            die "no CUDA toolkit found, and NVIDIA has no Python packages for $(uname -m)"
        say "no CUDA toolkit found: taking compiler and headers from PyPI into $toolkit_dir"
        rm -rf "$toolkit_dir"
        python3 -m venv "$toolkit_dir" || die "python3 -m venv failed: is the Debian package python3-venv there?"
        "$toolkit_dir/bin/pip" install -q --disable-pip-version-check $toolkit_packages ||
            die "pip could not install $(echo $toolkit_packages), its message is above: is PyPI reachable?" \
                "An installed toolkit is used with HETCOLL_CUDA=DIR"
        printf '%s' "$toolkit_packages" >"$stamp"
    fi
    cuda_dir=$(echo "$toolkit_dir"/lib/python3*/site-packages/nvidia/cu13)
    why=$(is_toolkit "$cuda_dir") || die "the CUDA toolkit from PyPI is not usable: $why"
}

# Puts cuobjdump and nvdisasm on PATH, if the toolkit lacks them. Tests skip without.
find_disassembler()
{
    [ ! -x "$cuda_dir/bin/cuobjdump" ] && ! command -v cuobjdump >/dev/null || return 0
    if [ ! -d "$disassembler_dir" ]; then
        say "no cuobjdump in $cuda_dir: taking it from PyPI into $disassembler_dir"
        if ! python3 -m venv "$disassembler_dir" ||
            ! "$disassembler_dir/bin/pip" install -q --disable-pip-version-check $disassembler_packages; then
            rm -rf "$disassembler_dir"
            say "no cuobjdump, the reason is above: the kernels' machine code is not looked at"
            return 0
        fi
    fi
    PATH=$(echo "$disassembler_dir"/lib/python3*/site-packages/nvidia/cu13/bin):$PATH
}

# A UCX with CUDA into build/, for tests that go without otherwise.
find_ucx()
{
    bash test/clients/get_ucx.sh build >/dev/null ||
        say "no UCX with CUDA, the reason is above: messages through network adapters are not tried"
}

# --- Build and run

configure_build()
{
    if [ ! -x configure ] || [ configure.ac -nt configure ]; then
        say "making configure"
        ./autogen.sh >autogen.log 2>&1 || { cat autogen.log >&2; die "autogen.sh failed"; }
    fi
    mkdir -p build
    arguments="--enable-werror --with-cuda=$cuda_dir"
    if [ ! -f build/Makefile ] || [ "$(cat build/configured-with 2>/dev/null)" != "$arguments" ]; then
        say "configure $arguments"
        (cd build && ../configure $arguments) >build/configure.log 2>&1 || {
            grep -A2 'error:' build/configure.log >&2 || tail -n 5 build/configure.log >&2
            die "configure failed, its message is above; more is in build/configure.log and build/config.log"
        }
        sed -n '/is configured:$/,$ { /^  /p }' build/configure.log
        printf '%s' "$arguments" >build/configured-with
    fi
}

# build [GOAL [VARIABLE=VALUE]]
build()
{
    configure_build
    jobs=$(nproc 2>/dev/null || echo 1)
    say "make -j$jobs${*:+ $*}"
    make -s -C build -j"$jobs" "$@" || die "the build failed, its message is above"
}

has_gpu()
{
    [ -e /dev/nvidiactl ] && ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'
}

say_which_gpu()
{
    if has_gpu; then
        say "GPU: a real one is here ($(ls /dev/nvidia[0-9]* 2>/dev/null | wc -l) devices)$1"
    else
        say "GPU: none here, so the emulated one"
    fi
}

run_check()
{
    say_which_gpu "; these tests use the emulated one, make check-gpu the real one"
    jobs=$(nproc 2>/dev/null || echo 1)
    status=0
    make -s -C build -j"$jobs" check || status=$?
    sh config/count_tests.sh build || status=1
    return "$status"
}

run_demo()
{
    say_which_gpu ""
    exec sh bench/demo.sh build
}

# Sets PYTHON to one that has PyTorch from PyPI.
find_torch()
{
    PYTHON=$PWD/build/torch/bin/python
    export PYTHON
    [ "$(cat build/torch/hetcoll-packages 2>/dev/null)" != "$torch_package" ] || return 0
    base=$(sh config/find_python.sh 3.12 2>/dev/null) || base=/usr/bin/python3
    say "taking $torch_package for $("$base" --version) from PyPI into build/torch"
    rm -rf build/torch
    "$base" -m venv build/torch || die "$base -m venv failed, its message is above"
    timeout 900 build/torch/bin/pip install -q --disable-pip-version-check --no-cache-dir "$torch_package" ||
        die "pip could not install $torch_package within 15 minutes, its message is above: is PyPI reachable?"
    printf '%s' "$torch_package" >build/torch/hetcoll-packages
}

# run_horovod NAME: Horovod in build/NAME.
run_horovod()
{
    sh examples/horovod/setup.sh "build/$1" || die "no Horovod, the reason is above"
    result=PASS
    HOROVOD_ENV=$PWD/build/$1 bash test/clients/horovod.sh build >"build/$1.log" 2>&1 || result=FAIL
    cat "build/$1.log"
    echo ":test-result: $result" >"build/$1.trs" # one of the tests of this build from now on
    sh config/count_tests.sh build
}

case ${1:-} in
deps)
    install_debian_packages
    find_cuda
    ;;
check)
    install_debian_packages
    find_cuda
    find_disassembler
    build
    find_ucx
    run_check
    ;;
browser)
    debian_packages=$browser_package
    install_debian_packages
    ;;
lint)
    shift
    [ $# -gt 0 ] || set -- check-format check-tidy
    debian_packages="$debian_packages clang-format-14 clang-tidy-14"
    install_debian_packages
    find_cuda
    configure_build
    make -s -C build "$@"
    ;;
demo)
    install_debian_packages
    find_cuda
    if has_gpu; then
        build demo-programs
    else
        # The emulated one runs kernels compiled for the host: these are loaded and not run. make makes others of them.
        build demo-programs "NVCC_ARCH_FLAGS=-gencode=arch=compute_80,code=compute_80"
    fi
    run_demo
    ;;
horovod)
    debian_packages="$debian_packages $(sh examples/horovod/setup.sh --debian-packages)"
    install_debian_packages
    find_cuda
    build
    run_horovod horovod
    ;;
horovod-pypi)
    debian_packages="$debian_packages python3-dev cmake"
    install_debian_packages
    find_cuda
    build
    find_torch
    export RANKS=2 HOROVOD_BUILD_CUDA_CC_LIST=90 # less to wait for: no GPU runs it
    run_horovod horovod-pypi
    ;;
*)
    sed -n '2,/^set/ { /^set/d; s/^# \{0,1\}//; p }' "$0"
    [ "${1:-}" = --help ] || [ "${1:-}" = -h ] || exit 2
    ;;
esac
