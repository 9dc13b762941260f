// NCCL, if it is there: found at run time, so that nothing here needs its headers. Declared are the
// few calls of an allreduce, as NVIDIA documents them (NCCL's user guide, "NCCL API"; nccl.h).
#pragma once

#include "base/status.h"

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>

namespace hetcoll {

struct NcclId { // ncclUniqueId
    char internal[128];
};

class NcclLibrary {
public:
    // `file`: a path or a name that the loader finds. An error also if this NCCL refuses ranks that
    // share a GPU, as all before 2.30 do. Sets NCCL_MULTI_RANK_GPU_ENABLE, which 2.30 wants for it.
    static Result<std::unique_ptr<NcclLibrary>> open(const std::string &file);

    [[nodiscard]] std::string version() const; // "2.30.7"
    [[nodiscard]] Result<NcclId> make_id() const;

private:
    friend class NcclComm;
    using Comm = void *; // ncclComm_t
    template <class Function> bool look_up(const char *name, Function &function) const;
    [[nodiscard]] Status status(int result, const char *call) const;

    void *library_ = nullptr; // never closed: it has threads of its own
    int (*get_version_)(int *) = nullptr;
    int (*get_unique_id_)(NcclId *) = nullptr;
    int (*comm_init_rank_)(Comm *, int, NcclId, int) = nullptr;
    int (*comm_destroy_)(Comm) = nullptr;
    int (*all_reduce_)(const void *, void *, std::size_t, int, int, Comm, CUstream) = nullptr;
    const char *(*get_error_string_)(int) = nullptr;
    const char *(*get_last_error_)(Comm) = nullptr; // may be missing
};

// One rank's communicator, in the current context. Made by all ranks together.
class NcclComm {
public:
    static Result<std::unique_ptr<NcclComm>> create(const NcclLibrary &library, const NcclId &id,
                                                    int rank, int ranks);
    ~NcclComm();
    NcclComm(const NcclComm &) = delete;
    NcclComm &operator=(const NcclComm &) = delete;

    // Starts it: the stream has the result.
    Status sum_floats(const void *send, void *recv, std::size_t count, CUstream stream);

private:
    explicit NcclComm(const NcclLibrary &library) : library_(library) {}

    const NcclLibrary &library_;
    void *comm_ = nullptr;
};

} // namespace hetcoll
