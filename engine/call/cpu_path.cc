// Small vectors in device memory that the processor reads and writes itself.
#include "engine/call/protocols.h"

#include "device/host_view.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hetcoll {
namespace {

// The work before a call is nearly done in most calls; a copy waits for the rest without asking.
constexpr unsigned kMostVisits = 64 / Linger{}.polls;
// Fewer bytes prove nothing.
constexpr std::size_t kLeastBytes = 4;

std::uintptr_t address(const void *pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The view of one buffer, if there is one; whether the buffer gets one in this call.
struct Wanted {
    const PointerInfo &info;
    const void *vector;
    bool is_there; // the driver has said so in this call
};
void find_view(Call &call, const Wanted &wanted, std::shared_ptr<const HostView> &view, bool &due)
{
    CpuViews &views = call.gpus.cpu_views();
    const std::uintptr_t first = address(wanted.vector);
    if (!wanted.info.is_plain() ||
        (!wanted.is_there && !views.is_there(wanted.info.buffer_id, first))) {
        view.reset();
        return;
    }
    if (view == nullptr || !view->shows(wanted.info.buffer_id, first, call.bytes)) {
        CpuViews::Found found = views.find(wanted.info, first, call.bytes);
        view = std::move(found.view);
        due = found.due;
    }
}

// Whether the processor can do it, the application's earlier work aside.
void plan(Call &call)
{
    CpuPath &cpu = call.cpu;
    CpuViews &views = call.gpus.cpu_views();
    const Buffers &buffers = call.buffers;
    const CpuLimits most = views.largest_limits();
    const bool in_place = call.args->send == call.args->recv;
    // A pointer cache that is told of releases has not asked, nor has a persistent call that is
    // started again.
    const bool has_asked = !cpu.again && call.gpus.pointers().mode() != PointerCacheMode::kHooked;
    if (on_device(buffers.recv) && call.bytes <= most.write_bytes) {
        find_view(call, {buffers.recv, call.args->recv, has_asked}, cpu.recv, cpu.recv_due);
        // A view that was made for a send buffer.
        cpu.recv_due = cpu.recv_due || (cpu.recv != nullptr && !cpu.recv->is_tried());
    }
    if (in_place && call.bytes <= most.write_bytes) {
        cpu.send = cpu.recv;
    } else if (on_device(buffers.send) && call.bytes <= most.read_bytes) {
        const bool is_there =
            has_asked || (cpu.recv != nullptr && buffers.send.buffer_id == buffers.recv.buffer_id);
        find_view(call, {buffers.send, call.args->send, is_there}, cpu.send, cpu.send_due);
    }
    cpu.reads = on_device(buffers.send) && cpu.send != nullptr &&
                call.bytes <= views.limits(cpu.send->coherent()).read_bytes;
    cpu.writes = on_device(buffers.recv) && cpu.recv != nullptr && !cpu.recv_due &&
                 call.bytes <= views.limits(cpu.recv->coherent()).write_bytes;
}

// A copy out of the buffer, which is ordered after the work, comes before the sum is written.
bool copies_input(const Call &call) { return on_device(call.buffers.send) && !call.cpu.reads; }

void do_without(Call &call)
{
    call.cpu.reads = false;
    call.cpu.writes = call.cpu.writes && copies_input(call);
}

void note_path(Call &call) { call.report.record.by_cpu = !needs_bounce(call); }

void drop(Call &call, std::shared_ptr<const HostView> &view)
{
    call.gpus.cpu_views().drop(view);
    if (call.cpu.send == call.cpu.recv) {
        call.cpu.send.reset();
        call.cpu.recv.reset();
        call.cpu.reads = call.cpu.writes = false;
    }
    view.reset();
}

bool write(const HostView &view, const PointerInfo &info, void *to, const std::byte *from,
           std::size_t bytes)
{
    return view.write(address(to), from, bytes) &&
           (!view.needs_flush() || view.flush(info.context));
}

// ---- Does a new view show what the GPU has? ----

enum class Trial : std::uint8_t { kUnknown, kWorks, kWrong };
using Pattern = std::array<std::byte, DeviceBounce::kTrialBytes>;

Pattern pattern_of(std::uint64_t seed) noexcept
{
    Pattern pattern;
    for (std::byte &byte : pattern) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(seed >> 56);
    }
    return pattern;
}

// By the GPU, and no error of the call if it fails.
Task<bool> copy(Call &call, void *to, const void *from, std::size_t bytes)
{
    if (!call.work.device->start_copy(to, from, bytes).ok()) {
        co_return false;
    }
    call.work.copying = true; // whoever ends the call now waits for it
    bool copied = false;
    co_await until([&call, &copied] {
        const Result<bool> done = call.work.device->copy_done(call.linger());
        copied = done.ok() && *done;
        return !done.ok() || *done;
    });
    call.work.copying = false;
    co_return copied;
}

// The receive buffer, of which nobody needs what it holds: a pattern that the GPU writes, which
// comes after the application's work, and then another one that the processor writes.
Task<Trial> try_reading_and_writing(Call &call, const HostView &view)
{
    void *const vector = call.args->recv;
    std::byte *const trial = call.work.device->trial();
    const std::size_t bytes = std::min(call.bytes, DeviceBounce::kTrialBytes);
    const Pattern by_gpu = pattern_of(address(vector)), by_cpu = pattern_of(~address(vector));
    Pattern seen{};
    std::memcpy(trial, by_gpu.data(), bytes);
    const bool written = co_await copy(call, vector, trial, bytes);
    if (!written || !view.read(seen.data(), address(vector), bytes)) {
        co_return Trial::kUnknown;
    }
    if (std::memcmp(seen.data(), by_gpu.data(), bytes) != 0) {
        co_return Trial::kWrong;
    }
    if (!write(view, call.buffers.recv, vector, by_cpu.data(), bytes)) {
        co_return Trial::kUnknown;
    }
    const bool read = co_await copy(call, trial, vector, bytes);
    co_return !read                                 ? Trial::kUnknown
    : std::memcmp(trial, by_cpu.data(), bytes) == 0 ? Trial::kWorks
                                                    : Trial::kWrong;
}

// The send buffer, which is only read: both see the same there, and that is not one byte
// throughout.
Task<Trial> try_reading(Call &call, const HostView &view)
{
    std::byte *const trial = call.work.device->trial();
    const std::size_t bytes = std::min(call.bytes, DeviceBounce::kTrialBytes);
    Pattern seen{};
    const bool copied = co_await copy(call, trial, call.args->send, bytes);
    if (!copied || !view.read(seen.data(), address(call.args->send), bytes)) {
        co_return Trial::kUnknown;
    }
    const bool same = std::memcmp(seen.data(), trial, bytes) == 0;
    const bool has_content = std::memcmp(trial, trial + 1, bytes - 1) != 0;
    co_return same &&has_content ? Trial::kWorks : Trial::kUnknown;
}

} // namespace

bool may_use_cpu(const Call &call) noexcept
{
    return call.gpus.cpu_views().is_on() && call.buffers.any_device() &&
           call.args->collective == HETCOLL_ALLREDUCE && call.args->kind >= 0 &&
           !call.has_padding() && !call.is_queued() && !call.is_attached() &&
           !call.is_independent() && !call.closes_later && !call.buffers.two_contexts() &&
           call.bytes >= kLeastBytes && !any(call.flags, kFailed | kMustStage);
}

bool poll_cpu(Call &call)
{
    CpuPath &cpu = call.cpu;
    if (cpu.asked) {
        return true;
    }
    if (!cpu.planned) {
        cpu.planned = true;
        if (may_use_cpu(call) && is_surely_small(call)) {
            plan(call);
        }
    }
    if (cpu.reads || (cpu.writes && !copies_input(call))) {
        const Result<bool> done = call.gpus.cpu_views().work_is_done(call.buffers.device());
        if (done.ok() && !*done && ++cpu.polls < kMostVisits) {
            return false;
        }
        if (!done.ok() || !*done) {
            do_without(call);
        }
    }
    cpu.asked = true;
    return true;
}

bool needs_bounce(const Call &call) noexcept
{
    return copies_input(call) || (on_device(call.buffers.recv) && !call.cpu.writes);
}

bool read_by_cpu(Call &call, std::byte *to)
{
    if (!call.cpu.reads || !call.failure.ok() || call.buffers.input_copied) {
        return false;
    }
    if (!call.cpu.send->read(to, address(call.args->send), call.bytes)) {
        drop(call, call.cpu.send);
        call.cpu.reads = false;
        return false;
    }
    call.report.count(HETCOLL_CPU_READS);
    note_path(call);
    return true;
}

bool write_by_cpu(Call &call, const std::byte *sum)
{
    if (!call.cpu.writes || !call.failure.ok()) {
        return false;
    }
    if (!write(*call.cpu.recv, call.buffers.recv, call.args->recv, sum, call.bytes)) {
        drop(call, call.cpu.recv);
        call.cpu.writes = false;
        note_path(call);
        return false;
    }
    call.report.count(HETCOLL_CPU_WRITES);
    note_path(call);
    return true;
}

Task<> make_views(Call &call)
{
    CpuViews &views = call.gpus.cpu_views();
    if (call.work.device == nullptr || !call.failure.ok()) {
        co_return;
    }
    const Buffers &buffers = call.buffers;
    if (call.cpu.recv_due) {
        const bool is_new = call.cpu.recv == nullptr;
        const auto view =
            is_new ? views.make(buffers.recv, address(call.args->recv), call.bytes) : call.cpu.recv;
        Trial trial = Trial::kUnknown;
        if (view != nullptr) {
            trial = co_await try_reading_and_writing(call, *view);
        }
        if (trial == Trial::kWrong) {
            views.give_up("a pattern in a receive buffer");
            co_return;
        }
        if (trial == Trial::kWorks) {
            view->note_tried();
            views.note_proof();
        }
        if (trial == Trial::kWorks && is_new) {
            views.keep(view);
        }
    }
    if (call.cpu.send_due && views.is_on() && views.has_proof()) {
        const auto view = views.make(buffers.send, address(call.args->send), call.bytes);
        Trial trial = Trial::kUnknown;
        if (view != nullptr) {
            trial = co_await try_reading(call, *view);
        }
        if (trial == Trial::kWorks) {
            views.keep(view);
        }
    }
}

} // namespace hetcoll
