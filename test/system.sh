# Read by releases.sh and packages.sh: Debian systems in folders, as root. Wants folder, src and cuda.
# shellcheck shell=bash

# make_system NAME SUITE PACKAGES: in $folder/NAME, from where this machine's apt gets its packages. One that is there
# with these packages is used again.
make_system()
{
    [ "$(cat "$folder/$1/.complete" 2>/dev/null)" != "packages: $3" ] || return 0
    rm -rf "${folder:?}/$1"
    local mirror
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    # A mirror that is kept as it was on a day has lists that are too old by today's.
    mmdebstrap --mode=root --variant=minbase ${3:+--include="$3"} --aptopt='Acquire::Check-Valid-Until "false"' \
        "$2" "$folder/$1" "$mirror"
    echo "packages: $3" >"$folder/$1/.complete"
}

# inside NAME COMMAND: in a mount namespace of its own, so that nothing stays mounted however this ends.
inside()
{
    root=$folder/$1 command=$2 src=$src cuda=$cuda unshare -m bash -euc '
        mount --make-rprivate /
        mkdir -p "$root/source" "$root/usr/local/cuda"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys" # hwloc and UCX look there
        mount -t proc proc "$root/proc"
        mount --bind -o ro "$src" "$root/source"
        mount --bind -o ro "$cuda" "$root/usr/local/cuda"
        exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 bash -euc "$command"'
}

# need TOOL...: says what is missing, and ends.
need()
{
    [ "$(id -u)" = 0 ] || { echo "${0##*/}: mount and chroot need root" >&2; exit 2; }
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || {
            echo "${0##*/}: $tool not found: install the Debian package that has it (unshare is in util-linux)" >&2
            exit 2
        }
    done
    [ -x "$cuda/bin/nvcc" ] || { echo "${0##*/}: no nvcc in $cuda: name a CUDA toolkit in CUDA_HOME" >&2; exit 2; }
}
