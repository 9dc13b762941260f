// hetcoll's element kinds and operations as handles of MPI, half and bfloat16 by hetcoll_types.h.
#pragma once

#include "base/element.h"

#include <mpi.h>

#include <memory>

namespace hetcoll {

// Create after MPI_Init, destroy before MPI_Finalize.
class MpiNames {
public:
    MpiNames();
    ~MpiNames();
    MpiNames(const MpiNames &) = delete;
    MpiNames &operator=(const MpiNames &) = delete;

    // MPI_DATATYPE_NULL where this MPI has none: Fortran's pairs without Fortran.
    [[nodiscard]] MPI_Datatype datatype(ElementKind kind) const;
    // Requires is_defined(op, kind). MPI_OP_NULL for those that are not MPI's.
    [[nodiscard]] MPI_Op op(ReduceOp op, ElementKind kind) const;

private:
    struct Made; // half and bfloat16
    std::unique_ptr<Made> made_;
};

} // namespace hetcoll
