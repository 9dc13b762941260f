#!/bin/sh
# setup.sh [DIRECTORY]: makes a Python environment with Horovod 0.28.1 for PyTorch over MPI, built from
# its source package against the Open MPI whose mpicxx is on PATH. Default: ../../build/horovod.
#
#   PYTHON=python3     the Python that has PyTorch, of a virtual environment too; default /usr/bin/python3
#                      (Debian's python3-torch)
#   MPICXX=mpicxx      the compiler wrapper of the Open MPI
#   HOROVOD_GPU_OPERATIONS=MPI  tensors on GPUs go to MPI as they are; needs nvcc and PyTorch with CUDA
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=0.28.1
python=${PYTHON:-/usr/bin/python3}
mpicxx=${MPICXX:-mpicxx}
# What Horovod's build and train_digits.py need on Debian.
debian_packages="python3-torch libtorch-dev python3-dev python3-pip python3-venv python3-setuptools
    python3-wheel python3-cffi python3-cloudpickle python3-psutil python3-yaml python3-packaging
    python3-sklearn libboost-dev libeigen3-dev pybind11-dev cmake g++"
# The same for pip, which takes only those that the Python with PyTorch lacks.
python_packages="setuptools<82 wheel cffi cloudpickle psutil pyyaml packaging scikit-learn"

say() { printf 'setup.sh: %s\n' "$*"; }
die()
{
    printf 'setup.sh: %s\n' "$*" >&2
    exit 1
}

if [ "${1:-}" = --debian-packages ]; then # for bootstrap.sh
    echo $debian_packages
    exit 0
fi
if [ "${1:-}" = --horovod-version ]; then # for test/gpu/horovod_extension.sh
    echo $version
    exit 0
fi
directory=${1:-$here/../../build/horovod}
case $directory in /*) ;; *) directory=$PWD/$directory ;; esac # builds run elsewhere

mpicxx=$(command -v "$mpicxx") ||
    die "no $mpicxx: install Open MPI with its compiler wrappers (Debian: libopenmpi-dev), or set MPICXX"
command -v cmake >/dev/null || die "no cmake, which Horovod builds with (Debian: cmake)"
torch=$("$python" -c 'import torch; print(torch.__version__, int(torch.version.cuda is not None))' 2>/dev/null) ||
    die "$python has no PyTorch: install $(echo $debian_packages), or set PYTHON to a Python that has it"
has_cuda=${torch#* } torch=${torch% *}
[ "${HOROVOD_GPU_OPERATIONS:-}" = "" ] || [ "$has_cuda" = 1 ] ||
    die "HOROVOD_GPU_OPERATIONS=$HOROVOD_GPU_OPERATIONS, but the PyTorch $torch of $python has no CUDA"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -e "$include/Python.h" ] ||
    die "no Python.h in $include: install the headers of $python (Debian's Python: python3-dev), or set PYTHON"
open_mpi=$("$mpicxx" --showme:version 2>/dev/null | sed 's/^[^:]*: *//; s/ (.*//') ||
    die "$mpicxx is not Open MPI's"

# Made before from the same parts?
parts="horovod $version, PyTorch $torch of $python, $open_mpi at $mpicxx, GPU operations ${HOROVOD_GPU_OPERATIONS:-none}"
if [ "$(cat "$directory/made-from" 2>/dev/null)" = "$parts" ]; then
    say "$directory is there: $parts"
    exit 0
fi

say "making $directory: $parts"
rm -rf "$directory"
"$python" -m venv --system-site-packages "$directory" || die "$python -m venv failed (Debian: python3-venv)"
# If PYTHON is of a virtual environment, the new one sees what the environment's base has, not what it has itself.
"$python" -c 'import site; print(*site.getsitepackages(), sep="\n")' \
    >"$(echo "$directory"/lib/python3*/site-packages)/packages-of-python.pth"
# shellcheck disable=SC2086
"$directory/bin/python" -m pip install -q --disable-pip-version-check $python_packages ||
    die "pip could not install $python_packages, its message is above"

# Horovod's build asks for C++14, or C++17 from PyTorch 2.1 on; newer ones want C++20.
mkdir -p "$directory/compiler"
standard=$("$python" -c 'import sys; v = tuple(int(x) for x in sys.argv[1].split("+")[0].split(".")[:2]
); print("14" if v < (2, 1) else "17" if v < (2, 12) else "20")' "$torch")
cat >"$directory/compiler/c++" <<WRAPPER
#!/bin/bash
# Without MPI's old C++ functions, which Horovod does not use: their library may be missing where it runs.
arguments=()
for argument in "\${@/-std=c++1[47]/-std=c++$standard}"; do
    case \$argument in -lmpi_cxx | */libmpi_cxx.so*) ;; *) arguments+=("\$argument") ;; esac
done
exec g++ -DOMPI_SKIP_MPICXX=1 -include stdexcept -include string "\${arguments[@]}"
WRAPPER
chmod +x "$directory/compiler/c++"

# Not from pip's cache: a wheel there may be for another Open MPI or PyTorch. Horovod asks distutils, which Python has
# no longer from 3.12 on, for Python's headers: CPATH tells the compiler.
CPATH=$include${CPATH:+:$CPATH} PATH=$(dirname "$mpicxx"):$PATH CXX=$directory/compiler/c++ \
MPI_HOME=$(dirname "$(dirname "$mpicxx")") HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1 \
HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
HOROVOD_WITHOUT_NVTX=1 MAKEFLAGS=-j$(nproc 2>/dev/null || echo 1) \
    "$directory/bin/python" -m pip install --disable-pip-version-check --no-cache-dir \
    --no-build-isolation --no-deps "horovod==$version" >"$directory/build.log" 2>&1 || {
    grep -iE 'error' "$directory/build.log" | head -n 20 >&2
    die "Horovod did not build; more is in $directory/build.log"
}
"$directory/bin/python" -c 'import horovod.torch as hvd; assert hvd.mpi_built()' ||
    die "Horovod is built, but does not load"
printf '%s' "$parts" >"$directory/made-from"
say "done: $directory/bin/python train_digits.py"
