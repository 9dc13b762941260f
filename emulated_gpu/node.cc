#include "emulated_gpu/node.h"

#include "emulated_gpu/handles.h"
#include "emulated_gpu/report.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <string>

namespace hetcoll::emulated_gpu {
namespace {

constexpr int kMaxProcesses = 512;

struct Process {
    std::atomic<int> id;                // 0 if the slot is free
    std::atomic<std::uint64_t> started; // tells it from a later process of that id
    std::atomic<std::uint64_t> links;   // which links it uses; 0: no links that take time
    std::atomic<std::int64_t> bytes[kMaxDevices];
};

constexpr int kFreed = -1; // its owner has freed the block
constexpr int kGoing = -2; // and nobody maps it any more

struct SharedExport {
    std::atomic<int> owner; // process id; 0 if the slot is free, or one of the above
    std::atomic<int> device;
    std::atomic<std::uint64_t> block_id;
    std::atomic<std::int64_t> bytes;
    std::atomic<std::uint64_t> importers[kMaxProcesses / 64]; // bits: by number in Node::process
};

struct Node {
    std::atomic<std::uint64_t> next_id;
    std::atomic<std::int64_t> freed_bytes[kMaxDevices]; // of blocks that processes still map
    Process process[kMaxProcesses];
    SharedEvent event[kMaxSharedEvents];
    SharedExport exported[kMaxSharedExports];
    LinkClock link[kMaxLinkDirections];
};

constinit Node *node = nullptr;
constinit Process *own = nullptr;
constinit ino_t file_number = 0; // of the node's file

// How often this process maps what is exported, by slot.
std::map<int, int> &own_mappings()
{
    static auto &the = *new std::map<int, int>;
    return the;
}

bool is_dead(int process)
{
    return process != 0 && process != getpid() && kill(process, 0) != 0 && errno == ESRCH;
}

// Free, or left by a process that was killed; then it becomes ours.
bool claim(std::atomic<int> &owner)
{
    int before = owner.load();
    return (before == 0 || is_dead(before)) && owner.compare_exchange_strong(before, getpid());
}

// In clock ticks since the machine started; 0 if the process is gone, or /proc does not tell.
std::uint64_t start_time(int process)
{
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    unsigned long long ticks = 0; // field 22; the name, field 2, may hold spaces
    const auto name_end = text.rfind(')');
    if (name_end == text.npos ||
        std::sscanf(text.c_str() + name_end + 1,
                    " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                    "%llu",
                    &ticks) != 1) {
        return 0;
    }
    return ticks;
}

// The layout is part of the name: another build has another node.
std::string file_name()
{
    char name[160];
    std::snprintf(name, sizeof name, "/emulated_gpu.%u.%.64s.%zx", getuid(), settings().node,
                  sizeof(Node));
    return name;
}

// The node's file, locked: processes join and leave one at a time, so that the last one can remove
// it. The lock ends with the process, however that ends.
class LockedFile {
public:
    explicit LockedFile(int flags)
    {
        do { // again if it was removed while we waited for the lock
            close_file();
            fd_ = shm_open(file_name().c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
        } while (fd_ >= 0 && flock(fd_, LOCK_EX) == 0 && status().st_nlink == 0);
    }
    ~LockedFile() { close_file(); }
    LockedFile(const LockedFile &) = delete;
    LockedFile &operator=(const LockedFile &) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] struct stat status() const
    {
        struct stat status {};
        fstat(fd_, &status);
        return status;
    }

private:
    void close_file()
    {
        if (fd_ >= 0) {
            flock(fd_, LOCK_UN); // a forked child may have the file open too
            close(fd_);
        }
    }

    int fd_ = -1;
};

CUresult map_node(const LockedFile &file)
{
    // Allocated, not just given a size: a write to a page that cannot be had would be a SIGBUS.
    const int error = file.fd() < 0 ? errno : posix_fallocate(file.fd(), 0, sizeof(Node));
    void *place = MAP_FAILED;
    if (error == 0) {
        place = mmap(nullptr, sizeof(Node), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
    }
    if (place == MAP_FAILED) {
        say("/dev/shm%s (%zu bytes, node '%s' of EMU_NODE): %s; cuInit fails", file_name().c_str(),
            sizeof(Node), settings().node, std::strerror(error != 0 ? error : errno));
        if (file.fd() >= 0 && file.status().st_size == 0) {
            shm_unlink(file_name().c_str()); // ours, and of no use
        }
        return error == ENOSPC || error == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                                  : CUDA_ERROR_OPERATING_SYSTEM;
    }
    node = static_cast<Node *>(place);
    file_number = file.status().st_ino;
    return CUDA_SUCCESS;
}

int count_importers(const SharedExport &entry)
{
    int count = 0;
    for (const auto &bits : entry.importers) {
        count += std::popcount(bits.load());
    }
    return count;
}

// If processes close the last mappings at the same time, one of them takes the charge back.
void drop_if_unused(SharedExport &entry)
{
    int state = kFreed;
    if (count_importers(entry) == 0 && entry.owner.compare_exchange_strong(state, kGoing)) {
        node->freed_bytes[entry.device.load()].fetch_sub(entry.bytes.load());
        entry.block_id.store(0);
        entry.owner.store(0);
    }
}

void free_export(SharedExport &entry)
{
    node->freed_bytes[entry.device.load()].fetch_add(entry.bytes.load());
    entry.owner.store(kFreed);
    drop_if_unused(entry);
}

// All that a process that is gone has exported and mapped.
void drop_exports_of(const Process &process, int id)
{
    const auto number = static_cast<std::size_t>(&process - node->process);
    for (SharedExport &entry : node->exported) {
        if (entry.owner.load() == id) {
            free_export(entry);
        }
        const std::uint64_t bit = std::uint64_t{1} << number % 64;
        if ((entry.importers[number / 64].fetch_and(~bit) & bit) != 0) {
            drop_if_unused(entry);
        }
    }
}

// Takes back what killed processes hold: their memory no longer counts.
void forget_the_dead()
{
    for (Process &process : node->process) {
        const int id = process.id.load();
        if (id == 0) {
            continue;
        }
        const std::uint64_t started = start_time(id);
        if (started != 0 ? started != process.started.load() : is_dead(id)) {
            drop_exports_of(process, id);
            for (auto &bytes : process.bytes) {
                bytes.store(0);
            }
            process.id.store(0);
        }
    }
}

bool is_empty()
{
    for (const Process &process : node->process) {
        if (process.id.load() != 0) {
            return false;
        }
    }
    return true;
}

// Links that take time are the same for all processes of the node. Requires the lock on the file.
CUresult agree_on_links()
{
    const Settings &s = settings();
    if (s.routes->directions().size() > kMaxLinkDirections) {
        say("EMU_LINKS: more than %d links are used; cuInit fails", kMaxLinkDirections);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const Process &process : node->process) {
        const std::uint64_t links = process.links.load();
        if (s.has_link_rates && process.id.load() != 0 && links != 0 && links != s.links_tag) {
            say("process %d of node '%s' has other EMU_LINKS, EMU_LINK_GBPS, EMU_LINK_SCALE or "
                "EMU_NUM_DEVICES; cuInit fails, set another EMU_NODE",
                process.id.load(), s.node);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

void futex(std::atomic<std::uint32_t> &word, int operation, std::uint32_t value,
           const timespec *timeout)
{
    syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&word), operation, value, timeout, nullptr,
            0);
}

} // namespace

CUresult join_node()
{
    const LockedFile file(O_CREAT);
    EMULATED_TRY(map_node(file));
    forget_the_dead();
    EMULATED_TRY(agree_on_links());
    for (Process &process : node->process) {
        if (process.id.load() == 0) {
            own = &process;
            own->started.store(start_time(getpid()));
            own->links.store(settings().has_link_rates ? settings().links_tag : 0);
            own->id.store(getpid());
            return CUDA_SUCCESS;
        }
    }
    say("more than %d processes use node %s; cuInit fails", kMaxProcesses, settings().node);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void leave_node()
{
    if (own == nullptr) {
        return;
    }
    const LockedFile file(0);
    drop_exports_of(*own, own->id.load());
    for (auto &bytes : own->bytes) {
        bytes.store(0);
    }
    own->id.store(0);
    forget_the_dead();
    if (file.fd() >= 0 && file.status().st_ino == file_number && is_empty()) {
        shm_unlink(file_name().c_str());
    }
}

std::uint64_t node_tag()
{
    std::uint64_t hash = 1469598103934665603u; // FNV-1a
    for (const char *letter = settings().node; *letter != '\0'; ++letter) {
        hash = (hash ^ static_cast<unsigned char>(*letter)) * 1099511628211u;
    }
    return hash;
}

std::uint64_t new_node_id() { return node->next_id.fetch_add(1) + 1; }

std::size_t memory_in_use(int physical_device)
{
    std::int64_t sum = node->freed_bytes[physical_device].load();
    for (Process &process : node->process) {
        const int id = process.id.load();
        if (id != 0 && !is_dead(id)) {
            sum += process.bytes[physical_device].load();
        }
    }
    return static_cast<std::size_t>(sum);
}

void add_memory_in_use(int physical_device, std::int64_t bytes)
{
    own->bytes[physical_device].fetch_add(bytes);
}

SharedEvent *new_shared_event()
{
    for (SharedEvent &event : node->event) {
        if (claim(event.owner)) {
            event.recorded.store(0);
            event.completed.store(0);
            event.id.store(new_node_id());
            return &event;
        }
    }
    return nullptr;
}

SharedEvent *shared_event(int slot)
{
    return slot >= 0 && slot < kMaxSharedEvents ? &node->event[slot] : nullptr;
}

int slot_of(const SharedEvent *event) { return static_cast<int>(event - node->event); }

int new_shared_export(std::uint64_t block_id, std::size_t bytes, int physical_device)
{
    for (int slot = 0; slot < kMaxSharedExports; ++slot) {
        SharedExport &entry = node->exported[slot];
        int state = 0;
        if (entry.owner.compare_exchange_strong(state, getpid())) {
            entry.device.store(physical_device);
            entry.bytes.store(static_cast<std::int64_t>(bytes));
            entry.block_id.store(block_id);
            return slot;
        }
    }
    return -1;
}

int find_shared_export(std::uint64_t block_id)
{
    for (int slot = 0; slot < kMaxSharedExports; ++slot) {
        if (node->exported[slot].block_id.load() == block_id) {
            return slot;
        }
    }
    return -1;
}

bool open_shared_export(int slot, std::uint64_t block_id)
{
    const auto number = static_cast<std::size_t>(own - node->process);
    SharedExport &entry = node->exported[slot];
    entry.importers[number / 64].fetch_or(std::uint64_t{1} << number % 64);
    ++own_mappings()[slot];
    if (entry.block_id.load() == block_id) {
        return true;
    }
    close_shared_export(slot);
    return false;
}

void close_shared_export(int slot)
{
    if (--own_mappings()[slot] > 0) {
        return;
    }
    own_mappings().erase(slot);
    const auto number = static_cast<std::size_t>(own - node->process);
    SharedExport &entry = node->exported[slot];
    entry.importers[number / 64].fetch_and(~(std::uint64_t{1} << number % 64));
    drop_if_unused(entry);
}

int importers_of(int slot) { return count_importers(node->exported[slot]); }

void free_shared_export(int slot) { free_export(node->exported[slot]); }

LinkClock *link_clock(int direction) { return &node->link[direction]; }

bool is_complete(const SharedEvent &event, std::uint32_t record)
{
    const std::uint32_t completed = event.completed.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(completed - record) >= 0;
}

void complete(SharedEvent &event, std::uint32_t record)
{
    std::uint32_t before = event.completed.load();
    while (static_cast<std::int32_t>(record - before) > 0 &&
           !event.completed.compare_exchange_weak(before, record)) {
    }
    futex(event.completed, FUTEX_WAKE, 1 << 20, nullptr);
}

void wait_for(SharedEvent &event, std::uint32_t record)
{
    const timespec look_again{0, 50000000}; // the owner may have died
    std::uint32_t completed = event.completed.load(std::memory_order_acquire);
    while (static_cast<std::int32_t>(completed - record) < 0) {
        futex(event.completed, FUTEX_WAIT, completed, &look_again);
        completed = event.completed.load(std::memory_order_acquire);
    }
}

} // namespace hetcoll::emulated_gpu
