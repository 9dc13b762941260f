#!/bin/bash
# horovod_extension.sh DIRECTORY: builds Horovod's extension for PyTorch with CUDA, for machines without compilers, Open
# MPI's headers and a network. Needs no GPU and does not import PyTorch. Makes two folders for PYTHONPATH:
#
#   DIRECTORY/a    Horovod hands device pointers to MPI, as HOROVOD_GPU_OPERATIONS=MPI does
#   DIRECTORY/b    Horovod copies CUDA tensors to the host and hands these copies to MPI
#
# They have the Python packages that Horovod imports, too, and work in an environment with the same Python and PyTorch.
#
#   TORCH=FOLDER    where PyTorch is, FOLDER/torch; if it is missing, the wheel is downloaded and unpacked there: 530 MB
#                   of PyTorch 2.11, of which 1 GB stays on disk
#   PYTHON=PYTHON   the Python to build for, with headers and pip; default: what config/find_python.sh 3.12 finds
#   CUDA_HOME=DIR   the CUDA toolkit; default /usr/local/cuda
#   CUDA_ARCH=LIST  the GPUs to compile for; default 90. Newer ones than the last compile its PTX
#   MPICXX=mpicxx   the compiler wrapper of the Open MPI
set -eu
here=$(cd "$(dirname "$0")" && pwd)
torch_version=2.11
horovod_version=$(sh "$here/../../examples/horovod/setup.sh" --horovod-version)
cuda=${CUDA_HOME:-/usr/local/cuda}
cuda_arch=${CUDA_ARCH:-90}
mpicxx=${MPICXX:-mpicxx}
say() { echo "horovod_extension.sh: $*"; }
die()
{
    echo "horovod_extension.sh: $*" >&2
    exit 1
}
pip() { PIP_ROOT_USER_ACTION=ignore "$python" -m pip "$@" -q --disable-pip-version-check --no-deps; }

# require_header FOLDER HEADER WAY_OUT
require_header() { [ -e "$1/$2" ] || die "no $2 in $1: $3"; }

# Unpacks what is compiled and linked with, and _C, whose name tells the Python.
get_torch()
{
    say "no PyTorch in $torch: downloading 530 MB of PyTorch $torch_version"
    mkdir -p "$torch"
    pip download --no-cache-dir --only-binary=:all: -d "$torch" "torch==$torch_version.*" ||
        die "pip could not download torch $torch_version for $python, its message is above"
    "$python" - "$torch" <<'END' || die "$torch/torch-*.whl cannot be unpacked: delete it and try again"
import fnmatch, glob, sys, zipfile
libraries = ("c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_python")
wanted = ["torch/include/*", "torch/_C.*.so"] + [f"torch/lib/lib{name}.so" for name in libraries]
folder = sys.argv[1]
with zipfile.ZipFile(glob.glob(folder + "/torch-*.whl")[0]) as wheel:
    names = [name for name in wheel.namelist() if any(fnmatch.fnmatch(name, want) for want in wanted)]
    wheel.extractall(folder, names + ["torch/version.py"])
END
    rm -f "$torch"/torch-*.whl
}

get_horovod()
{
    say "downloading Horovod $horovod_version and what it imports"
    pip download --no-binary horovod -d "$work" "horovod==$horovod_version" ||
        die "pip could not download horovod $horovod_version, its message is above"
    tar -C "$work" -xzf "$work/horovod-$horovod_version.tar.gz"
    pip install --no-compile --only-binary=:all: --target "$work/packages" cloudpickle packaging psutil pyyaml ||
        die "pip could not install what Horovod imports, its message is above"
    rm -rf "$work"/packages/{bin,*.dist-info,psutil/tests,yaml/*.so} # PyYAML works without its library
}

# pack VARIANT: adds Horovod to the packages that it imports, without the frameworks that are not here.
pack()
{
    local to=$directory/$1
    cp -r "$work/packages" "$to"
    (cd "$source" && find horovod/__init__.py horovod/{common,runner,torch} -name '*.py' | tar -cf - LICENSE -T -) |
        tar -C "$to" -xf -
    mv "$to/LICENSE" "$to/horovod"
    install -m 644 "$work/$1.so" "$to/horovod/torch/mpi_lib_v2$suffix"
    echo "{\"pytorch\": \"$torch_is\", \"dummy\": \"none\"}" >"$to/horovod/metadata.json"
    say "$to: $(du -sk "$to" | cut -f 1) KiB"
}

[ $# -eq 1 ] || die 'one argument: the folder to make a/ and b/ in'
[ -n "${TORCH:-}" ] || die 'TORCH names the folder that has PyTorch, or a new one to download 530 MB of it into'
python=${PYTHON:-$(sh "$here/../../config/find_python.sh" 3.12)} ||
    die 'PYTHON names the Python to build for, with its headers'
"$python" -c '' || die "PYTHON=$python does not run"
python_include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
require_header "$python_include" Python.h "install the headers of $python, or name another Python by PYTHON"
mpi_include=$("$mpicxx" --showme:incdirs 2>/dev/null) ||
    die "$mpicxx is not Open MPI's: install Open MPI with its compiler wrappers (Debian: libopenmpi-dev), or set MPICXX"
require_header "${mpi_include%% *}" mpi.h 'install the headers of Open MPI (Debian: libopenmpi-dev), or set MPICXX'
require_header "$cuda/include" cuda_runtime.h 'CUDA_HOME names the CUDA toolkit'
[ -x "$cuda/bin/nvcc" ] || die "no nvcc in $cuda/bin: CUDA_HOME names the CUDA toolkit"
mkdir -p "$1"
directory=$(cd "$1" && pwd)
case $TORCH in /*) torch=$TORCH ;; *) torch=$PWD/$TORCH ;; esac
[ -e "$torch/torch" ] || get_torch
require_header "$torch/torch/include" torch/extension.h "$torch has another PyTorch: set TORCH to a new folder"
[ -e "$torch/torch/_C$suffix" ] ||
    die "the PyTorch in $torch is not for $python (no torch/_C$suffix): set TORCH to a new folder"
torch_is=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/torch/version.py")

# Made before from the same parts?
parts="Horovod $horovod_version, PyTorch $torch_is in $torch, $python, $mpicxx, $cuda for $cuda_arch"
if [ "$(cat "$directory/made-from" 2>/dev/null)" = "$parts" ]; then
    say "$directory is there: $parts"
    exit 0
fi
say "making $directory: $parts"
rm -rf "$directory/made-from" "$directory/a" "$directory/b"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
get_horovod
source=$work/horovod-$horovod_version
# 2.11.0+cu130 is 2011000000 for Horovod.
number=$(echo "$torch_is" | sed 's/[^0-9.].*//' | awk -F . '{ printf "%d%03d%03d000", $1, $2, $3 }')
make -s -C "$work" -j"$(nproc)" -f "$here/horovod_extension.mk" SOURCE="$source" TORCH="$torch/torch" \
    TORCH_NUMBER="$number" PYTHON_INCLUDE="$python_include" CUDA="$cuda" CUDA_ARCH="$cuda_arch" MPICXX="$mpicxx" ||
    die "the extension did not build, the compiler's message is above"
pack a
pack b
printf '%s' "$parts" >"$directory/made-from"
