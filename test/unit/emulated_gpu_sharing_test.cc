// Memory that processes share beyond one device: VMM file descriptors, IPC between devices, and
// page-locked memory that several processes register.
#include "test/unit/emulated_gpu_driver.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace hetcoll::test {
namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;

std::string own_node(const char *test) { return "EMU_NODE=" + (test + std::to_string(getpid())); }

// VMM memory on a device, mapped and open to it.
struct Mapping {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr start = 0;
};

CUresult open_to(CUdeviceptr start, int device)
{
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cu().cuMemSetAccess(start, kGranule, &access, 1);
}

CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
    CUdeviceptr start = 0;
    EXPECT_EQ(cu().cuMemAddressReserve(&start, kGranule, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemMap(start, kGranule, 0, handle, 0), CUDA_SUCCESS);
    return start;
}

Mapping create(int device, CUmemAllocationHandleType type)
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = type;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    Mapping made;
    EXPECT_EQ(cu().cuMemCreate(&made.handle, kGranule, &properties, 0), CUDA_SUCCESS);
    made.start = map(made.handle);
    EXPECT_EQ(open_to(made.start, device), CUDA_SUCCESS);
    return made;
}

void destroy(const Mapping &mapping)
{
    EXPECT_EQ(cu().cuMemUnmap(mapping.start, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemAddressFree(mapping.start, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemRelease(mapping.handle), CUDA_SUCCESS);
}

int export_fd(const Mapping &mapping)
{
    int fd = -1;
    EXPECT_EQ(cu().cuMemExportToShareableHandle(&fd, mapping.handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    return fd;
}

// A message with a descriptor waits in the socket until the child, which inherits it, reads it.
void send_fd(int socket, int fd)
{
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    EXPECT_EQ(sendmsg(socket, &message, 0), 1);
}

int receive_fd(int socket)
{
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    int fd = -1;
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != nullptr) {
        std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    }
    return fd;
}

Mapping import_fd()
{
    const int fd = receive_fd(std::atoi(std::getenv("HETCOLL_TEST_SOCKET")));
    Mapping mapping;
    EXPECT_EQ(cu().cuMemImportFromShareableHandle(
                  &mapping.handle, reinterpret_cast<void *>(static_cast<std::intptr_t>(fd)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    close(fd);
    mapping.start = map(mapping.handle);
    return mapping;
}

// Runs a child that imports what `mapping` exports.
ChildResult run_importer(const char *test, const Mapping &mapping,
                         std::vector<std::string> environment = {})
{
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const int fd = export_fd(mapping);
    send_fd(ends[0], fd);
    close(fd);
    environment.push_back("HETCOLL_TEST_SOCKET=" + std::to_string(ends[1]));
    ChildResult child =
        run_in_child(std::string("EmulatedSharingChild.DISABLED_") + test, environment);
    close(ends[0]);
    close(ends[1]);
    return child;
}

TEST(EmulatedSharingChild, DISABLED_ImportVmm)
{
    const PrimaryContext context;
    const Mapping theirs = import_fd();
    EXPECT_EQ(open_to(theirs.start, 0), CUDA_SUCCESS);
    EXPECT_EQ(read_word(theirs.start), 111u);
    fill(theirs.start, 222, 1);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, theirs.start),
              unsigned{CU_MEMORYTYPE_DEVICE});
    EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, theirs.start), kGranule);
    EXPECT_NE(buffer_id(theirs.start), 0u);
    destroy(theirs);
}

TEST(EmulatedSharingTest, VmmMemoryGoesToAnotherProcessAsAFileDescriptor)
{
    const PrimaryContext context;
    const Mapping ours = create(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    fill(ours.start, 111, 1);
    const ChildResult child = run_importer("ImportVmm", ours);
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_EQ(read_word(ours.start), 222u);
    destroy(ours);
}

TEST(EmulatedSharingTest, VmmMemoryIsInUseUntilItsLastImportIsReleased)
{
    const PrimaryContext context;
    const std::size_t before = free_bytes();
    const Mapping ours = create(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const int fd = export_fd(ours);
    CUmemGenericAllocationHandle imports[2];
    for (CUmemGenericAllocationHandle &import : imports) {
        EXPECT_EQ(cu().cuMemImportFromShareableHandle(
                      &import, reinterpret_cast<void *>(static_cast<std::intptr_t>(fd)),
                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  CUDA_SUCCESS);
    }
    close(fd);
    destroy(ours);
    EXPECT_EQ(free_bytes(), before - kGranule);
    EXPECT_EQ(cu().cuMemRelease(imports[0]), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before - kGranule);
    EXPECT_EQ(cu().cuMemRelease(imports[1]), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes(), before);
}

TEST(EmulatedSharingTest, AllowedHandleTypesAreThoseThatTheMemoryWasMadeFor)
{
    const PrimaryContext context;
    const Mapping shareable = create(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const Mapping own = create(0, CU_MEM_HANDLE_TYPE_NONE);
    const CUdeviceptr plain = allocate(4);
    const auto types = [](CUdeviceptr memory) {
        return attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, memory);
    };
    EXPECT_EQ(types(shareable.start), unsigned{CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR});
    EXPECT_EQ(types(own.start), 0u);
    EXPECT_EQ(types(plain), 0u);
    free_memory(plain);
    destroy(shareable);
    destroy(own);
}

TEST(EmulatedSharingTest, AFileThatIsNoMemoryIsNotImported)
{
    const PrimaryContext context;
    const int fd = memfd_create("something else", MFD_CLOEXEC);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cu().cuMemImportFromShareableHandle(
                  &handle, reinterpret_cast<void *>(static_cast<std::intptr_t>(fd)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_ERROR_INVALID_VALUE);
    close(fd);
}

TEST(EmulatedSharingChild, DISABLED_ImportFromAHiddenDevice)
{
    const PrimaryContext context; // of device 1 of the node, the only one that is visible
    const Mapping theirs = import_fd();
    EXPECT_EQ(open_to(theirs.start, 0), CUDA_SUCCESS);
    const CUdeviceptr here = allocate(4096);
    EXPECT_EQ(cu().cuMemcpyDtoD(here, theirs.start, 1000), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(2, 1), 1000u);
    EXPECT_EQ(read_word(here), 5u);
}

TEST(EmulatedSharingChild, DISABLED_ImportWithoutPeerAccess)
{
    const PrimaryContext context;
    EXPECT_EQ(open_to(import_fd().start, 0), CUDA_ERROR_INVALID_DEVICE);
}

TEST(EmulatedSharingChild, DISABLED_ExportFromDevice2)
{
    const PrimaryContext context(2);
    const Mapping ours = create(2, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    fill(ours.start, 5, 1);
    const ChildResult child =
        run_importer("ImportFromAHiddenDevice", ours, {"CUDA_VISIBLE_DEVICES=1"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    const ChildResult apart = run_importer("ImportWithoutPeerAccess", ours,
                                           {"CUDA_VISIBLE_DEVICES=1", "EMU_NO_PEER=1-2"});
    EXPECT_EQ(apart.exit_status, 0) << apart.errors;
}

TEST(EmulatedSharingTest, ImportedVmmMemoryStaysOnItsDevice)
{
    const ChildResult child = run_in_child("EmulatedSharingChild.DISABLED_ExportFromDevice2",
                                           {"EMU_NUM_DEVICES=3", own_node("vmm")});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

std::string hexadecimal(const CUipcMemHandle &handle)
{
    std::string text;
    for (const char byte : handle.reserved) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        text += digits;
    }
    return text;
}

CUipcMemHandle handle_from_parent()
{
    const std::string text = std::getenv("HETCOLL_TEST_HANDLE");
    CUipcMemHandle handle{};
    for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
        handle.reserved[i] =
            static_cast<char>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
    }
    return handle;
}

CUresult open_from_parent(CUdeviceptr &memory)
{
    return cu().cuIpcOpenMemHandle(&memory, handle_from_parent(),
                                   CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

TEST(EmulatedSharingChild, DISABLED_OpenFromAnotherDevice)
{
    const PrimaryContext context(0);
    CUdeviceptr theirs = 0;
    ASSERT_EQ(open_from_parent(theirs), CUDA_SUCCESS);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, theirs), 1);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, theirs),
              unsigned{CU_MEMORYTYPE_DEVICE});
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, theirs), 0u);
    EXPECT_NE(buffer_id(theirs), 0u);
    EXPECT_EQ(read_word(theirs), 9u);
    // The flag made the device a peer of this context.
    CUcontext peer = nullptr;
    EXPECT_EQ(cu().cuDevicePrimaryCtxRetain(&peer, 1), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT_EQ(cu().cuIpcCloseMemHandle(theirs), CUDA_SUCCESS);
}

TEST(EmulatedSharingChild, DISABLED_OpenWithoutPeerAccess)
{
    const PrimaryContext context(0);
    CUdeviceptr theirs = 0;
    EXPECT_EQ(open_from_parent(theirs), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

TEST(EmulatedSharingChild, DISABLED_ExportFromDevice1)
{
    const PrimaryContext context(1);
    const CUdeviceptr memory = allocate(kGranule);
    fill(memory, 9, 1);
    CUipcMemHandle handle{};
    EXPECT_EQ(cu().cuIpcGetMemHandle(&handle, memory), CUDA_SUCCESS);
    const std::string variable = "HETCOLL_TEST_HANDLE=" + hexadecimal(handle);
    const ChildResult child =
        run_in_child("EmulatedSharingChild.DISABLED_OpenFromAnotherDevice", {variable});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    const ChildResult apart = run_in_child("EmulatedSharingChild.DISABLED_OpenWithoutPeerAccess",
                                           {variable, "EMU_NO_PEER=0-1"});
    EXPECT_EQ(apart.exit_status, 0) << apart.errors;
    free_memory(memory);
}

TEST(EmulatedSharingTest, MemoryOfAnotherDeviceIsOpenedWhereTheDevicesArePeers)
{
    const ChildResult child = run_in_child("EmulatedSharingChild.DISABLED_ExportFromDevice1",
                                           {"EMU_NUM_DEVICES=2", own_node("ipc")});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

// A page of a file that two processes map, at addresses of their own.
unsigned *map_page(int fd)
{
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(page, MAP_FAILED);
    EXPECT_EQ(cu().cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_PORTABLE), CUDA_SUCCESS);
    return static_cast<unsigned *>(page);
}

TEST(EmulatedSharingChild, DISABLED_RegisterPage)
{
    const PrimaryContext context;
    unsigned *page = map_page(std::atoi(std::getenv("HETCOLL_TEST_FILE")));
    const CUdeviceptr memory = allocate(4096), page_address = reinterpret_cast<CUdeviceptr>(page);
    EXPECT_EQ(cu().cuMemcpyDtoD(memory, page_address, 4), CUDA_SUCCESS); // as kernels reach it
    EXPECT_EQ(read_word(memory), 33u);
    EXPECT_EQ(cu().cuMemsetD32(page_address + 4, 44, 1), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamWriteValue32(nullptr, page_address + 8, 55, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemHostUnregister(page), CUDA_SUCCESS);
    free_memory(memory);
}

TEST(EmulatedSharingTest, ASharedPageCanBeRegisteredInSeveralProcesses)
{
    const PrimaryContext context;
    const int fd = memfd_create("page", 0);
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    unsigned *page = map_page(fd);
    page[0] = 33;
    const ChildResult child = run_in_child("EmulatedSharingChild.DISABLED_RegisterPage",
                                           {"HETCOLL_TEST_FILE=" + std::to_string(fd)});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_EQ(page[1], 44u);
    EXPECT_EQ(page[2], 55u);
    EXPECT_EQ(cu().cuMemHostUnregister(page), CUDA_SUCCESS);
    munmap(page, 4096);
    close(fd);
}

} // namespace
} // namespace hetcoll::test
