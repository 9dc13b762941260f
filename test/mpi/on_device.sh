#!/bin/sh
# on_device.sh DEVICES PROGRAM [ARGUMENT...]: under mpirun, shows each rank one of the first DEVICES
# devices alone, in turn, as launchers do. It has number 0 everywhere.
export CUDA_VISIBLE_DEVICES=$((OMPI_COMM_WORLD_RANK % $1))
shift
exec "$@"
