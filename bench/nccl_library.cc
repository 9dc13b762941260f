#include "bench/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace hetcoll {
namespace {

constexpr int kSharesGpus = 23000; // 2.30.0, as ncclGetVersion() counts
constexpr int kSum = 0;            // ncclSum
constexpr int kFloat32 = 7;        // ncclFloat32

} // namespace

template <class Function> bool NcclLibrary::look_up(const char *name, Function &function) const
{
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
}

Result<std::unique_ptr<NcclLibrary>> NcclLibrary::open(const std::string &file)
{
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    auto nccl = std::make_unique<NcclLibrary>();
    nccl->library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (nccl->library_ == nullptr) {
        const char *why = dlerror();
        return error(Errc::kUnsupported, "no NCCL: %s; name it with --nccl FILE",
                     why != nullptr ? why : file.c_str());
    }
    const bool complete = nccl->look_up("ncclGetVersion", nccl->get_version_) &&
                          nccl->look_up("ncclGetUniqueId", nccl->get_unique_id_) &&
                          nccl->look_up("ncclCommInitRank", nccl->comm_init_rank_) &&
                          nccl->look_up("ncclCommDestroy", nccl->comm_destroy_) &&
                          nccl->look_up("ncclAllReduce", nccl->all_reduce_) &&
                          nccl->look_up("ncclGetErrorString", nccl->get_error_string_);
    nccl->look_up("ncclGetLastError", nccl->get_last_error_);
    int version = 0;
    if (!complete || nccl->get_version_(&version) != 0) {
        return error(Errc::kUnsupported, "%s is not NCCL: a call is missing", file.c_str());
    }
    if (version < kSharesGpus) {
        return error(Errc::kUnsupported,
                     "NCCL %s refuses ranks that share a GPU: give 2.30 or newer with --nccl FILE "
                     "(the Python package nvidia-nccl-cu13 has lib/libnccl.so.2)",
                     nccl->version().c_str());
    }
    return nccl;
}

std::string NcclLibrary::version() const
{
    int version = 0;
    get_version_(&version);
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

Status NcclLibrary::status(int result, const char *call) const
{
    if (result == 0) {
        return {};
    }
    const char *more = get_last_error_ != nullptr ? get_last_error_(nullptr) : nullptr;
    return error(Errc::kDriver, "%s answers %d, %s%s%s", call, result, get_error_string_(result),
                 more != nullptr && *more != 0 ? ": " : "", more != nullptr ? more : "");
}

Result<NcclId> NcclLibrary::make_id() const
{
    NcclId id{};
    Status made = status(get_unique_id_(&id), "ncclGetUniqueId");
    if (!made.ok()) {
        return made;
    }
    return id;
}

Result<std::unique_ptr<NcclComm>> NcclComm::create(const NcclLibrary &library, const NcclId &id,
                                                   int rank, int ranks)
{
    std::unique_ptr<NcclComm> made(new NcclComm(library));
    Status status =
        library.status(library.comm_init_rank_(&made->comm_, ranks, id, rank), "ncclCommInitRank");
    if (!status.ok()) {
        made->comm_ = nullptr;
        return status;
    }
    return made;
}

NcclComm::~NcclComm()
{
    if (comm_ != nullptr) {
        library_.comm_destroy_(comm_);
    }
}

Status NcclComm::sum_floats(const void *send, void *recv, std::size_t count, CUstream stream)
{
    return library_.status(library_.all_reduce_(send, recv, count, kFloat32, kSum, comm_, stream),
                           "ncclAllReduce");
}

} // namespace hetcoll
