#!/bin/sh
# small_shm.sh SIZE COMMAND...: runs the command with a /dev/shm of that size of its own. Needs root.
# shellcheck disable=SC2016
exec unshare --mount sh -c 'mount -t tmpfs -o "size=$0" tmpfs /dev/shm && exec "$@"' "$@"
