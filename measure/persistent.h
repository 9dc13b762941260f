// Persistent collectives have standard names from Open MPI 5.0 on; 4.1 has them as an extension.
#pragma once

#include <mpi.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define HETCOLL_PERSISTENT(name) MPIX_##name##_init
#else
#define HETCOLL_PERSISTENT(name) MPI_##name##_init
#endif
#define HETCOLL_ALLREDUCE_INIT HETCOLL_PERSISTENT(Allreduce)
