#!/bin/sh
# find_python.sh VERSION: prints the path of a Python VERSION (3.12) that runs and has its headers: on PATH, or pyenv's,
# whose python3.12 on PATH does not run where another version is chosen. Otherwise says where it looked.
version=$1
looked=
for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version"*/bin/"python$version"; do
    path=$(command -v "$python") || continue
    "$path" -c "" 2>/dev/null || continue
    include=$("$path" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    if [ -e "$include/Python.h" ]; then
        echo "$path"
        exit 0
    fi
    looked="$looked; $path has no Python.h in $include"
done
echo "find_python.sh: no Python $version with headers on PATH or of pyenv$looked" >&2
exit 1
