#!/bin/bash
# get_ucx.sh BUILD: prints the folder of a UCX with CUDA support, from the package that NVIDIA has on PyPI (150 MB
# unpacked), in BUILD/clients. Takes it from there if it is not in BUILD yet; fails, and says why, if it cannot.
set -u
build=${1:?usage: get_ucx.sh BUILD}
python=${PYTHON:-/usr/bin/python3}
version=1.22.0
clients=$build/clients
ucx=$clients/ucx-$version

if [ ! -x "$ucx/libucx/bin/ucx_perftest" ]; then
    mkdir -p "$clients" && rm -rf "$ucx"
    "$python" -m venv "$clients/pip" >"$clients/ucx.out" 2>&1 || { echo "no virtual environment" >&2; exit 1; }
    if ! timeout 300 "$clients/pip/bin/pip" install -q --disable-pip-version-check --no-deps --target "$ucx" \
        "libucx-cu13==$version" >"$clients/ucx.out" 2>&1; then
        rm -rf "$ucx"
        echo "PyPI does not give libucx-cu13 ($(tail -n 1 "$clients/ucx.out"))" >&2
        exit 1
    fi
    chmod +x "$ucx"/libucx/bin/*
fi
echo "$ucx"
