#!/bin/sh
# on_nodes.sh N,N,... PROGRAM [ARGUMENT...]: under mpirun, runs the program of rank r as if on a node of
# its own for each number: ranks of other nodes share neither memory nor GPUs with it.
node=$(echo "$1" | cut -d , -f $((OMPI_COMM_WORLD_RANK + 1)))
shift
export OMPI_MCA_coll_hetcoll_node="node$node" EMU_NODE="${EMU_NODE:-0}.$node"
exec "$@"
