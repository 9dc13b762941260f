// hetcoll's element kinds and operations as handles of MPI.
#pragma once

#include "base/element.h"

#include <mpi.h>

namespace hetcoll {

// MPI_DATATYPE_NULL and MPI_OP_NULL where this MPI has none (Fortran's pairs without Fortran).
// Half and bfloat16 come from hetcoll_types.h.
[[nodiscard]] MPI_Datatype mpi_datatype(ElementKind kind);
[[nodiscard]] MPI_Op mpi_op(ReduceOp op, ElementKind kind);

} // namespace hetcoll
