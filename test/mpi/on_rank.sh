#!/bin/sh
# on_rank.sh RANK VARIABLE=VALUE PROGRAM ARGUMENT...: runs the program, on one rank with this in its environment.
rank=$1 variable=$2
shift 2
if [ "$OMPI_COMM_WORLD_RANK" = "$rank" ]; then
    export "${variable?}"
fi
exec "$@"
