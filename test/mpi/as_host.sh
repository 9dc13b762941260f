#!/bin/bash
# as_host.sh [OPTION...] HOST COMMAND...: instead of ssh, for mpirun --mca plm_rsh_agent: runs the
# command on this machine in namespaces of its own, so that it sees another host name, another
# /dev/shm and no other processes. Needs root.
while [[ $1 == -* ]]; do shift; done
export HOST_NAME=$1
shift
export HOST_COMMAND=$*
# shellcheck disable=SC2016
exec unshare --uts --mount --ipc --pid --fork --mount-proc /bin/bash -c '
    hostname "$HOST_NAME" && mount -t tmpfs tmpfs /dev/shm && TMPDIR=$(mktemp -d) && export TMPDIR || exit
    trap "rm -rf \"$TMPDIR\"" EXIT
    /bin/bash -c "$HOST_COMMAND"'
