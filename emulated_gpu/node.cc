#include "emulated_gpu/node.h"

#include "emulated_gpu/report.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace hetcoll::emulated_gpu {
namespace {

constexpr int kMaxProcesses = 512;

struct Process {
    std::atomic<int> id; // 0 if the slot is free
    std::atomic<std::int64_t> bytes[kMaxDevices];
};

struct Node {
    std::atomic<std::uint64_t> next_id;
    Process process[kMaxProcesses];
    SharedEvent event[kMaxSharedEvents];
    SharedExport exported[kMaxSharedExports];
};

constinit Node *node = nullptr;
constinit Process *own = nullptr;

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

Node *map_node()
{
    char name[160]; // the layout is part of the name: another build has another node
    std::snprintf(name, sizeof name, "/emulated_gpu.%u.%.64s.%zx", getuid(), settings().node,
                  sizeof(Node));
    const int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(Node)) != 0) {
        say("shared memory %s: %m; cuInit fails", name);
        if (fd >= 0) {
            close(fd);
        }
        return nullptr;
    }
    void *place = mmap(nullptr, sizeof(Node), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return place != MAP_FAILED ? static_cast<Node *>(place) : nullptr;
}

void futex(std::atomic<std::uint32_t> &word, int operation, std::uint32_t value,
           const timespec *timeout)
{
    syscall(SYS_futex, reinterpret_cast<std::uint32_t *>(&word), operation, value, timeout, nullptr,
            0);
}

} // namespace

bool join_node()
{
    node = map_node();
    if (node == nullptr) {
        return false;
    }
    for (Process &process : node->process) {
        if (claim(process.id)) {
            own = &process;
            for (auto &bytes : process.bytes) {
                bytes.store(0);
            }
            return true;
        }
    }
    say("more than %d processes use node %s; cuInit fails", kMaxProcesses, settings().node);
    return false;
}

void leave_node()
{
    if (own != nullptr) {
        for (auto &bytes : own->bytes) {
            bytes.store(0);
        }
        own->id.store(0);
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

std::uint64_t new_node_id()
{
    return node->next_id.fetch_add(1) + 1;
}

std::size_t memory_in_use(int physical_device)
{
    std::int64_t sum = 0;
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

int slot_of(const SharedEvent *event)
{
    return static_cast<int>(event - node->event);
}

int new_shared_export(std::uint64_t block_id)
{
    for (int slot = 0; slot < kMaxSharedExports; ++slot) {
        SharedExport &entry = node->exported[slot];
        if (claim(entry.owner)) {
            entry.importers.store(0);
            entry.block_id.store(block_id);
            return slot;
        }
    }
    return -1;
}

SharedExport *shared_export(int slot)
{
    return &node->exported[slot];
}

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
