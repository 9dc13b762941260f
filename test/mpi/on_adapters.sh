#!/bin/sh
# on_adapters.sh DEVICE,DEVICE,... PROGRAM [ARGUMENT...]: under mpirun, runs the program of rank r as if
# UCX could use the r-th network device alone.
UCX_NET_DEVICES=$(echo "$1" | cut -d , -f $((OMPI_COMM_WORLD_RANK + 1)))
export UCX_NET_DEVICES
shift
exec "$@"
