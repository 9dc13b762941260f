#include "transport/peer_mapping.h"

#include <optional>

namespace hetcoll {
namespace {

// Logs an error of closing. The process leaks the mapping and goes on.
void note_closing(const Driver &driver, const Log &log, CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS && !is_torn_down(result)) {
        const Status status = driver_status(driver, result, call, "closing memory of a peer");
        hetcoll::log(log, 1, "%s", status.message().c_str());
    }
}

// Maps the pieces one behind the other into the reserved range. A failure leaves some mapped.
CUresult map_pieces(const Driver &driver, const PeerMapping &mapping, const FdBundle &fds,
                    const char *&call)
{
    CUdeviceptr at = mapping.address;
    for (std::size_t i = 0; i < fds.fds.size(); ++i) {
        CUmemGenericAllocationHandle handle = 0;
        call = "cuMemImportFromShareableHandle";
        CUresult result = driver.cuMemImportFromShareableHandle(
            &handle, reinterpret_cast<void *>(static_cast<std::intptr_t>(fds.fds[i].get())),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        call = "cuMemMap";
        result = driver.cuMemMap(at, fds.bytes[i], 0, handle, 0);
        driver.cuMemRelease(handle); // the mapping keeps the memory
        if (result != CUDA_SUCCESS) {
            return result;
        }
        at += fds.bytes[i];
    }
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.location.id = mapping.device;
    call = "cuMemSetAccess";
    return driver.cuMemSetAccess(mapping.address, mapping.bytes, &access, 1);
}

} // namespace

PeerMapping::Closing::~Closing()
{
    std::optional<ContextScope> scope;
    if (context_->is_alive()) {
        scope.emplace(driver_, context_->handle());
    }
    if (kind_ == SharedKind::kVmm) { // needs no context, does not go with one
        note(driver_.cuMemUnmap(address_, bytes_), "cuMemUnmap");
        note(driver_.cuMemAddressFree(address_, bytes_), "cuMemAddressFree");
    } else if (scope && scope->result() == CUDA_SUCCESS) { // else the context took it along
        note(driver_.cuIpcCloseMemHandle(address_), "cuIpcCloseMemHandle");
    }
}

void PeerMapping::Closing::note(CUresult result, const char *call) const
{
    note_closing(driver_, log_, result, call);
}

Status check_bundle(const SharedBuffer &buffer, const FdBundle &fds)
{
    std::uint64_t bytes = 0;
    for (const std::uint64_t piece : fds.bytes) {
        bytes += piece;
    }
    if (fds.fds.size() != fds.bytes.size() || bytes != buffer.bytes) {
        return error(Errc::kInvalid,
                     "a peer passed %zu file descriptors of %llu bytes for a buffer of %llu",
                     fds.fds.size(), static_cast<unsigned long long>(bytes),
                     static_cast<unsigned long long>(buffer.bytes));
    }
    return {};
}

CUresult open_vmm(const Driver &driver, const Log &log, PeerMapping &mapping, const FdBundle &fds,
                  const char *&call)
{
    call = "cuMemAddressReserve";
    CUresult result = driver.cuMemAddressReserve(&mapping.address, mapping.bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = map_pieces(driver, mapping, fds, call);
    if (result == CUDA_SUCCESS) {
        return result;
    }
    CUdeviceptr at = mapping.address; // piece by piece: some may not be mapped
    for (const std::uint64_t bytes : fds.bytes) {
        driver.cuMemUnmap(at, bytes);
        at += bytes;
    }
    note_closing(driver, log, driver.cuMemAddressFree(mapping.address, mapping.bytes),
                 "cuMemAddressFree");
    return result;
}

} // namespace hetcoll
