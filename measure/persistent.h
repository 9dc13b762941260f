// Persistent collectives have standard names from Open MPI 5.0 on; 4.1 has them as an extension.
#pragma once

#include <mpi.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define HETCOLL_ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define HETCOLL_ALLREDUCE_INIT MPI_Allreduce_init
#endif
