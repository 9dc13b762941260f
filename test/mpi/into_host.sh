#!/bin/bash
# into_host.sh [OPTION...] HOST COMMAND...: as as_host.sh, but in the namespaces of a host that a job of this test has
# made: alongside its ranks.
while [[ $1 == -* ]]; do shift; done
for process in $(grep -lsxz "HETCOLL_TEST_CASE=$HETCOLL_TEST_CASE" /proc/[0-9]*/environ | xargs grep -lsxz "HOST_NAME=$1"); do
    if grep -qsz '^OMPI_COMM_WORLD_RANK=' "$process"; then
        shift
        exec nsenter --target "$(echo "$process" | cut -d / -f 3)" --uts --mount --ipc --pid /bin/bash -c "$*"
    fi
done
echo "into_host.sh: the job has no rank on $1" >&2
exit 1
