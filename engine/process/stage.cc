#include "engine/process/stage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hetcoll {
namespace {

constexpr std::size_t kAlignment = 256;                     // of the driver's allocations
constexpr std::size_t kMostReads = 512;                     // runs that are read one by one
constexpr std::size_t kSparseBytes = std::size_t{64} << 20; // that a copy of distant data may take
constexpr std::size_t kPage = std::size_t{64} << 10; // the largest that kernels have by default
constexpr std::ptrdiff_t kNear = std::ptrdiff_t{2} << 20; // bytes between that are mapped, too
constexpr std::ptrdiff_t kNearest = std::ptrdiff_t{1} << 30, kFarthest = std::ptrdiff_t{1} << 47;

std::ptrdiff_t end_of(const hetcoll_run &run) noexcept
{
    return run.offset + static_cast<std::ptrdiff_t>((run.count - 1) * run.stride + run.bytes);
}

std::byte *aligned_down(std::byte *address, std::size_t alignment) noexcept
{
    return address - reinterpret_cast<std::uintptr_t>(address) % alignment;
}

} // namespace

Stage::~Stage()
{
    for (Buffer &buffer : buffers_) {
        if (buffer.copying) {
            finish(buffer);
        }
        if (!failed_ever_) { // else nothing made in that context is used again
            pool_.give_back(std::move(buffer.memory));
            if (buffer.pipe != nullptr) {
                pool_.give_back(buffer.pipe->take_memory());
            }
        }
    }
}

void Stage::note(Status status) noexcept
{
    if (!status.ok()) {
        failed_ever_ = true;
        if (failure_.ok()) {
            failure_ = std::move(status);
        }
    }
}

void Stage::add(void *buffer, Result<PointerInfo> found)
{
    Buffer added;
    added.data = static_cast<std::byte *>(buffer);
    if (found.ok()) {
        added.info = *found;
        find_device(added);
    } else {
        added.unknown = found.take_status();
    }
    buffers_.push_back(std::move(added));
}

void Stage::find_device(Buffer &buffer)
{
    auto device = contexts_.device_of(buffer.info);
    if (device.ok()) {
        buffer.device = std::move(*device);
    } else {
        buffer.unknown = device.take_status();
    }
}

void Stage::add_run(const hetcoll_run &run, bool read, bool written)
{
    const auto append = [&run](std::vector<Run> &runs) {
        if (run.count == 1 && !runs.empty() && runs.back().count == 1 &&
            end_of(runs.back()) == run.offset) {
            runs.back().bytes += run.bytes;
        } else {
            runs.push_back(run);
        }
    };
    if (read) {
        append(buffers_.back().read);
    }
    if (written) {
        append(buffers_.back().written);
    }
}

// Sorts, and joins single pieces that touch or overlap.
void Stage::merge(std::vector<Run> &runs)
{
    std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) {
        return std::pair(a.count > 1, a.offset) < std::pair(b.count > 1, b.offset);
    });
    std::vector<Run> joined;
    for (const Run &run : runs) {
        if (joined.empty() || run.count > 1 || end_of(joined.back()) < run.offset) {
            joined.push_back(run);
            continue;
        }
        Run &last = joined.back();
        last.bytes = std::max(last.bytes, static_cast<std::size_t>(end_of(run) - last.offset));
    }
    runs = std::move(joined);
}

void *Stage::host()
{
    Buffer &buffer = buffers_.back();
    std::ptrdiff_t first = PTRDIFF_MAX, end = PTRDIFF_MIN;
    std::size_t data_bytes = 0;
    for (auto *runs : {&buffer.read, &buffer.written}) {
        merge(*runs);
        for (const Run &run : *runs) {
            first = std::min(first, run.offset);
            end = std::max(end, end_of(run));
            data_bytes += run.bytes * run.count;
        }
    }
    const auto span = static_cast<std::size_t>(end - first);
    const std::uintptr_t begin =
        reinterpret_cast<std::uintptr_t>(buffer.data) + static_cast<std::size_t>(first);
    if (buffer.read.size() > kMostReads && buffer.info.is_plain() && begin >= buffer.info.base &&
        begin - buffer.info.base + span <= buffer.info.bytes) {
        buffer.read = {{first, span, 0, 1}}; // one copy; what lies between is read only
    }
    std::byte *const memory = memory_for(buffer, span + kAlignment, data_bytes);
    buffer.host = memory == nullptr ? nullptr : memory + begin % kAlignment - first; // as aligned
    return buffer.host;
}

std::byte *Stage::memory_for(Buffer &buffer, std::size_t bytes, std::size_t data_bytes)
{
    const bool is_sparse = bytes > kSparseBytes && bytes / 8 > data_bytes;
    std::optional<ContextScope> scope;
    if (buffer.device != nullptr) {
        scope.emplace(buffer.device->driver(), buffer.device->context());
    }
    // Pinning takes memory from everybody: large buffers go through a few pinned slots.
    const bool pinned =
        scope && scope->result() == CUDA_SUCCESS && !is_sparse && bytes <= settings_.stage_pinned;
    auto memory =
        pool_.borrow_staging(pinned ? buffer.device : nullptr, is_sparse ? kAlignment : bytes);
    if (!memory.ok()) {
        note(memory.take_status());
        return nullptr;
    }
    buffer.memory = std::move(*memory);
    if (!is_sparse) {
        return buffer.memory->data();
    }
    const std::vector<Extent> extents = extents_of(buffer);
    // As far from the program's memory as is needed for addresses that nothing has, below or above.
    for (std::ptrdiff_t distance = kNearest; distance < kFarthest; distance *= 2) {
        for (const std::ptrdiff_t shift : {distance, -distance}) {
            if (map(buffer, extents, shift)) {
                return aligned_down(buffer.data + extents.front().offset, kAlignment) + shift;
            }
        }
    }
    note(error(Errc::kNoMemory,
               "the data of a buffer's datatype lies in allocations that are %zu bytes apart, "
               "device and host memory perhaps, and the host has no addresses for a copy of each "
               "at that distance: use a datatype and a call for each allocation",
               bytes));
    return nullptr;
}

// The extents that the runs touch. Neighbours are one extent.
std::vector<Stage::Extent> Stage::extents_of(const Buffer &buffer)
{
    std::vector<Extent> touched, joined;
    for (const auto *runs : {&buffer.read, &buffer.written}) {
        for (const Run &run : *runs) {
            const std::size_t rows =
                run.stride > std::size_t{kNear} ? 1 : run.count; // of an extent
            for (std::size_t row = 0; row < run.count; row += rows) {
                const std::ptrdiff_t offset =
                    run.offset + static_cast<std::ptrdiff_t>(row * run.stride);
                touched.push_back({offset, end_of({offset, run.bytes, run.stride, rows})});
            }
        }
    }
    std::sort(touched.begin(), touched.end(),
              [](const Extent &a, const Extent &b) { return a.offset < b.offset; });
    for (const Extent &extent : touched) {
        if (joined.empty() || extent.offset > joined.back().end + kNear) {
            joined.push_back(extent);
        }
        joined.back().end = std::max(joined.back().end, extent.end);
    }
    return joined;
}

// All of them or none.
bool Stage::map(Buffer &buffer, const std::vector<Extent> &extents, std::ptrdiff_t shift)
{
    for (const Extent &extent : extents) {
        std::byte *const wanted = aligned_down(buffer.data + extent.offset, kPage) + shift;
        const auto bytes = static_cast<std::size_t>(buffer.data + extent.end + shift - wanted);
        void *const mapped =
            mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped != MAP_FAILED) {
            buffer.mapped.emplace_back(static_cast<std::byte *>(mapped), Unmap{bytes});
        }
        if (mapped != wanted) { // an old kernel maps elsewhere
            buffer.mapped.clear();
            return false;
        }
    }
    return true;
}

void Stage::Unmap::operator()(std::byte *memory) const noexcept { munmap(memory, bytes); }

void Stage::start_read()
{
    has_input_ = true;
    for (Buffer &buffer : buffers_) {
        if (settings_.pre_sync == HETCOLL_PRE_SYNC_CONTEXT && buffer.device != nullptr) {
            Status synchronized = contexts_.synchronize(buffer.info);
            has_input_ = has_input_ && (synchronized.ok() || buffer.read.empty());
            note(std::move(synchronized));
        }
        copy(buffer, PinnedPipe::Direction::kToHost);
    }
}

void Stage::start_write()
{
    for (Buffer &buffer : buffers_) {
        copy(buffer, PinnedPipe::Direction::kToDevice);
    }
}

void Stage::copy(Buffer &buffer, PinnedPipe::Direction direction)
{
    if (buffer.runs(direction).empty()) {
        return;
    }
    buffer.started = direction;
    const Status &unknown = buffer.unknown;
    Status started = buffer.device != nullptr
                         ? start_copies(buffer, direction)
                         : error(unknown.code(), "%s", unknown.message().c_str());
    buffer.copying = started.ok();
    if (!started.ok()) {
        copy_otherwise(buffer, std::move(started));
    }
}

// If the stream cannot be used, the copies block instead of failing. The last way knows nothing of
// the memory, and needs no context but the program's. `why` is what failed first.
void Stage::copy_otherwise(Buffer &buffer, Status why)
{
    finish(buffer);
    if (buffer.device != nullptr && wait_copies(buffer, buffer.started).ok()) {
        return;
    }
    failed_ever_ = true; // in that context
    if (copy_plainly(buffer, buffer.started).ok()) {
        return;
    }
    has_input_ = has_input_ && buffer.started != PinnedPipe::Direction::kToHost;
    note(std::move(why));
}

Status Stage::start_copies(Buffer &buffer, PinnedPipe::Direction direction)
{
    const Device &device = *buffer.device;
    const ContextScope scope(device.driver(), device.context());
    if (scope.result() != CUDA_SUCCESS) {
        return driver_status(device.driver(), scope.result(), "cuCtxPushCurrent",
                             "entering the context of a buffer");
    }
    StagingMemory &memory = *buffer.memory;
    if (memory.pageable != nullptr) {
        if (buffer.pipe == nullptr) {
            buffer.pipe = PinnedPipe::create(pool_, counters_, buffer.device);
        }
        if (buffer.pipe != nullptr) {
            return start_pipe(buffer, direction);
        }
    }
    if (memory.stream.get() == nullptr) {
        auto stream = device.make_stream();
        if (!stream.ok()) {
            return stream.take_status();
        }
        memory.stream = std::move(*stream);
    }
    if (memory.done.get() == nullptr) {
        auto done = device.make_event();
        if (!done.ok()) {
            return done.take_status();
        }
        memory.done = std::move(*done);
    }
    for (const Run &run : buffer.runs(direction)) {
        Status copied = copy_run(buffer, direction, run);
        if (!copied.ok()) {
            return copied;
        }
        counters_.count(HETCOLL_BYTES_STAGED, run.bytes * run.count);
    }
    return device.record(memory.done, memory.stream.get());
}

Status Stage::copy_run(const Buffer &buffer, PinnedPipe::Direction direction, const Run &run) const
{
    std::byte *to = buffer.host + run.offset, *from = buffer.data + run.offset;
    if (direction == PinnedPipe::Direction::kToDevice) {
        std::swap(to, from);
    }
    return buffer.device->copy_rows_async(to, from, {run.bytes, run.count, run.stride, run.stride},
                                          buffer.memory->stream.get());
}

Status Stage::start_pipe(Buffer &buffer, PinnedPipe::Direction direction)
{
    std::vector<PinnedPipe::Piece> pieces;
    for (const Run &run : buffer.runs(direction)) {
        pieces.push_back(
            {buffer.host + run.offset, buffer.data + run.offset, run.bytes, run.count, run.stride});
    }
    return buffer.pipe->start(std::move(pieces), direction);
}

// Row by row: copy(to, from, bytes) for each, until one fails.
template <class Copy>
Status Stage::copy_rows(const Buffer &buffer, PinnedPipe::Direction direction, Copy copy)
{
    for (const Run &run : buffer.runs(direction)) {
        for (std::size_t i = 0; i < run.count; ++i) {
            const std::ptrdiff_t at = run.offset + static_cast<std::ptrdiff_t>(i * run.stride);
            std::byte *to = buffer.host + at, *from = buffer.data + at;
            if (direction == PinnedPipe::Direction::kToDevice) {
                std::swap(to, from);
            }
            if (Status copied = copy(to, from, run.bytes); !copied.ok()) {
                return copied;
            }
        }
    }
    return {};
}

Status Stage::wait_copies(Buffer &buffer, PinnedPipe::Direction direction)
{
    return copy_rows(buffer, direction,
                     [&](std::byte *to, const std::byte *from, std::size_t bytes) {
                         return contexts_.copy_blocking(to, from, bytes, buffer.info);
                     });
}

Status Stage::copy_plainly(Buffer &buffer, PinnedPipe::Direction direction)
{
    const DriverLibrary library; // which is open, whoever opened it
    const Driver *const driver = library.get();
    if (driver == nullptr) {
        return library.load_error();
    }
    return copy_rows(
        buffer, direction, [&](std::byte *to, const std::byte *from, std::size_t bytes) {
            const CUresult result = driver->cuMemcpy(reinterpret_cast<CUdeviceptr>(to),
                                                     reinterpret_cast<CUdeviceptr>(from), bytes);
            return driver_status(*driver, result, "cuMemcpy", "copying a part of a buffer");
        });
}

bool Stage::is_done()
{
    bool done = true;
    for (Buffer &buffer : buffers_) {
        if (!buffer.copying) {
            continue;
        }
        const Device &device = *buffer.device;
        const ContextScope scope(device.driver(), device.context());
        Result<bool> copied =
            scope.result() == CUDA_SUCCESS
                ? ask_in_visit({},
                               [&] {
                                   return buffer.pipe != nullptr
                                              ? buffer.pipe->step()
                                              : device.is_done(buffer.memory->done);
                               })
                : Result<bool>(driver_status(device.driver(), scope.result(), "cuCtxPushCurrent",
                                             "entering the context of a buffer"));
        if (!copied.ok()) {
            failed_ever_ = true;
            copy_otherwise(buffer, copied.take_status());
        } else if (*copied) {
            buffer.copying = false;
        } else {
            done = false;
        }
    }
    return done;
}

void Stage::end_without_memory() noexcept
{
    has_input_ = false;
    note(Status::out_of_memory());
    for (Buffer &buffer : buffers_) {
        finish(buffer);
    }
}

// Nothing touches the memory any more, whatever has failed.
void Stage::finish(Buffer &buffer) noexcept
{
    buffer.copying = false;
    if (buffer.memory == nullptr || buffer.device == nullptr || !buffer.device->is_alive()) {
        return;
    }
    const ContextScope scope(buffer.device->driver(), buffer.device->context());
    if (scope.result() != CUDA_SUCCESS) {
        return;
    }
    if (buffer.pipe != nullptr) {
        buffer.pipe->wait();
    } else if (buffer.memory->stream.get() != nullptr) {
        buffer.device->driver().cuStreamSynchronize(buffer.memory->stream.get());
    }
}

} // namespace hetcoll
