// Horovod 0.28's use of MPI besides its tensors: communicators, an operation of its own for
// half, and the negotiations in which its ranks agree on what is ready.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "bench/trace.h"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>

namespace hetcoll {

// A type of two bytes without a name, and user-defined operations.
class HorovodHalf {
public:
    // Opens bench/horovod_half.so, which lies next to this program, as Python opens Horovod's
    // library. After MPI_Init; destroy before MPI_Finalize.
    static Result<std::unique_ptr<HorovodHalf>> create();
    ~HorovodHalf();
    HorovodHalf(const HorovodHalf &) = delete;
    HorovodHalf &operator=(const HorovodHalf &) = delete;

    [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }
    // Requires SUM, PROD, MIN or MAX.
    [[nodiscard]] MPI_Op op(ReduceOp op) const noexcept;

private:
    HorovodHalf() = default;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    std::array<MPI_Op, 4> ops_{MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL};
};

// The communicators of one hvd.init().
class HorovodComms {
public:
    HorovodComms(); // collective over MPI_COMM_WORLD
    ~HorovodComms();
    HorovodComms(const HorovodComms &) = delete;
    HorovodComms &operator=(const HorovodComms &) = delete;

    // Everything goes over this one.
    [[nodiscard]] MPI_Comm mpi_comm() const noexcept { return comms_.back(); }
    [[nodiscard]] int local_rank() const noexcept { return local_rank_; }

private:
    // In the order in which they are made; each process set has four of its own.
    std::array<MPI_Comm, 8> comms_{};
    int local_rank_ = 0;
};

// Plays one negotiation in host memory. The words that this rank found wrong.
[[nodiscard]] std::uint64_t negotiate(MPI_Comm comm, const Negotiation &negotiation);

} // namespace hetcoll
