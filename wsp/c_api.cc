// The C functions of hetcoll_wsp.h: no exception leaves them, and each failure leaves its message.
#include "include/hetcoll_wsp.h"

#include "wsp/training.h"

#include <exception>
#include <memory>
#include <string>

using hetcoll::Errc;
using hetcoll::Status;

// The object behind a handle.
struct hetcoll_wsp {
    std::unique_ptr<hetcoll::Training> training;
};

namespace {

// The message of this thread's last failure.
std::string &last_message()
{
    thread_local std::string message = "no call of this thread has failed";
    return message;
}

int code_of(Errc code)
{
    if (code == hetcoll::kMpiError) {
        return HETCOLL_WSP_ERR_MPI;
    }
    switch (code) {
    case Errc::kInvalid: return HETCOLL_WSP_ERR_ARGUMENT;
    case Errc::kUnsupported: return HETCOLL_WSP_ERR_UNSUPPORTED;
    case Errc::kNoMemory: return HETCOLL_WSP_ERR_MEMORY;
    case Errc::kDriver: return HETCOLL_WSP_ERR_DEVICE;
    }
    return HETCOLL_WSP_ERR_UNSUPPORTED;
}

// Runs `work`, which answers a Status, for the function `name`.
template <class Work> int call(const char *name, Work work) noexcept
{
    try {
        const Status status = work();
        if (status.ok()) {
            return HETCOLL_WSP_SUCCESS;
        }
        last_message() = std::string(name) + ": " + status.message();
        return code_of(status.code());
    } catch (const std::exception &problem) { // std::bad_alloc, mostly
        try {
            last_message() = std::string(name) + ": " + problem.what();
        } catch (const std::exception &) {
            last_message().clear();
        }
        return HETCOLL_WSP_ERR_MEMORY;
    }
}

Status need(const void *pointer, const char *what)
{
    return pointer != nullptr ? Status()
                              : hetcoll::error(Errc::kInvalid, "%s is a null pointer", what);
}

Status need_mpi()
{
    int begun = 0, over = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&over);
    return begun != 0 && over == 0
               ? Status()
               : hetcoll::error(Errc::kInvalid, "MPI is not initialized: call this between "
                                                "MPI_Init and MPI_Finalize");
}

Status create(MPI_Comm comm, void *weights, std::size_t count, hetcoll_wsp_type type,
              const hetcoll_wsp_options &options, hetcoll_wsp **wsp)
{
    Status status = need_mpi();
    if (!status.ok()) {
        return status;
    }
    if (comm == MPI_COMM_NULL) {
        return hetcoll::error(Errc::kInvalid, "comm is MPI_COMM_NULL");
    }
    int has_two_groups = 0;
    MPI_Comm_test_inter(comm, &has_two_groups);
    if (has_two_groups != 0) {
        return hetcoll::error(Errc::kInvalid, "comm is an inter-communicator: merge it first "
                                              "(MPI_Intercomm_merge)");
    }
    auto handle = std::make_unique<hetcoll_wsp>();
    auto training = hetcoll::Training::create(comm, weights, count, type, options);
    if (!training.ok()) {
        return training.take_status();
    }
    handle->training = std::move(*training);
    *wsp = handle.release();
    return {};
}

} // namespace

extern "C" {

int hetcoll_wsp_create(MPI_Comm comm, void *weights, size_t count, enum hetcoll_wsp_type type,
                       const struct hetcoll_wsp_options *options, hetcoll_wsp **wsp)
{
    return call("hetcoll_wsp_create", [&]() -> Status {
        if (Status status = need(wsp, "wsp"); !status.ok()) {
            return status;
        }
        *wsp = nullptr;
        const hetcoll_wsp_options defaults = HETCOLL_WSP_OPTIONS;
        return create(comm, weights, count, type, options != nullptr ? *options : defaults, wsp);
    });
}

int hetcoll_wsp_step(hetcoll_wsp *wsp, const void *update)
{
    return call("hetcoll_wsp_step", [&]() -> Status {
        Status status = need(wsp, "wsp");
        return status.ok() ? wsp->training->step(update) : std::move(status);
    });
}

int hetcoll_wsp_progress(hetcoll_wsp *wsp)
{
    return call("hetcoll_wsp_progress", [&]() -> Status {
        Status status = need(wsp, "wsp");
        if (status.ok()) {
            wsp->training->progress();
        }
        return status;
    });
}

int hetcoll_wsp_flush(hetcoll_wsp *wsp)
{
    return call("hetcoll_wsp_flush", [&]() -> Status {
        Status status = need(wsp, "wsp");
        return status.ok() ? wsp->training->flush() : std::move(status);
    });
}

int hetcoll_wsp_get_statistics(const hetcoll_wsp *wsp, struct hetcoll_wsp_statistics *statistics)
{
    return call("hetcoll_wsp_get_statistics", [&]() -> Status {
        Status status = need(wsp, "wsp");
        if (status.ok()) {
            status = need(statistics, "statistics");
        }
        if (status.ok()) {
            *statistics = wsp->training->statistics();
        }
        return status;
    });
}

int hetcoll_wsp_get_rank_statistics(hetcoll_wsp *wsp, struct hetcoll_wsp_statistics *ranks)
{
    return call("hetcoll_wsp_get_rank_statistics", [&]() -> Status {
        Status status = need(wsp, "wsp");
        if (status.ok()) {
            status = need(ranks, "ranks");
        }
        return status.ok() ? wsp->training->rank_statistics(ranks) : std::move(status);
    });
}

int hetcoll_wsp_free(hetcoll_wsp **wsp)
{
    return call("hetcoll_wsp_free", [&]() -> Status {
        Status status = need(wsp, "wsp");
        if (!status.ok() || *wsp == nullptr) {
            return status;
        }
        const std::unique_ptr<hetcoll_wsp> handle(std::exchange(*wsp, nullptr));
        status = need_mpi();
        return status.ok() ? handle->training->finish() : std::move(status);
    });
}

const char *hetcoll_wsp_error_string(int code)
{
    switch (code) {
    case HETCOLL_WSP_SUCCESS: return "success";
    case HETCOLL_WSP_ERR_ARGUMENT: return "an argument is wrong";
    case HETCOLL_WSP_ERR_UNSUPPORTED: return "not possible here";
    case HETCOLL_WSP_ERR_MEMORY: return "out of host or device memory";
    case HETCOLL_WSP_ERR_DEVICE: return "a CUDA driver call failed";
    case HETCOLL_WSP_ERR_MPI: return "an MPI call failed, or the ranks do not agree";
    default: return "not a code of hetcoll_wsp";
    }
}

const char *hetcoll_wsp_error_message(void) { return last_message().c_str(); }

} // extern "C"
