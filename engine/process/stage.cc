#include "engine/process/stage.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hetcoll {
namespace {

constexpr std::size_t kAlignment = 256; // of the driver's allocations

} // namespace

Stage::~Stage()
{
    for (Buffer &buffer : buffers_) {
        if (buffer.copying) {
            finish(buffer);
        }
        if (!failed_ever_) { // else nothing made in that context is used again
            process_.store().give_back(std::move(buffer.memory));
            if (buffer.pipe != nullptr) {
                process_.store().give_back(buffer.pipe->take_memory());
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
    auto device = process_.store().device_of(buffer.info);
    if (device.ok()) {
        buffer.device = std::move(*device);
    } else {
        buffer.unknown = device.take_status();
    }
}

void Stage::add_piece(std::ptrdiff_t offset, std::size_t bytes, bool read, bool written)
{
    const auto append = [&](std::vector<Piece> &pieces) {
        if (!pieces.empty() &&
            pieces.back().offset + static_cast<std::ptrdiff_t>(pieces.back().bytes) == offset) {
            pieces.back().bytes += bytes;
        } else {
            pieces.push_back({offset, bytes});
        }
    };
    if (read) {
        append(buffers_.back().read);
    }
    if (written) {
        append(buffers_.back().written);
    }
}

// Sorts, and joins what touches or overlaps.
void Stage::merge(std::vector<Piece> &pieces)
{
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece &a, const Piece &b) { return a.offset < b.offset; });
    std::vector<Piece> joined;
    for (const Piece &piece : pieces) {
        const auto end = piece.offset + static_cast<std::ptrdiff_t>(piece.bytes);
        if (joined.empty() ||
            joined.back().offset + static_cast<std::ptrdiff_t>(joined.back().bytes) <
                piece.offset) {
            joined.push_back(piece);
            continue;
        }
        Piece &last = joined.back();
        last.bytes = std::max(last.bytes, static_cast<std::size_t>(end - last.offset));
    }
    pieces = std::move(joined);
}

void *Stage::host()
{
    Buffer &buffer = buffers_.back();
    std::ptrdiff_t first = PTRDIFF_MAX, end = PTRDIFF_MIN;
    for (auto *pieces : {&buffer.read, &buffer.written}) {
        merge(*pieces);
        if (!pieces->empty()) {
            first = std::min(first, pieces->front().offset);
            end = std::max(end, pieces->back().offset +
                                    static_cast<std::ptrdiff_t>(pieces->back().bytes));
        }
    }
    const std::size_t bytes = static_cast<std::size_t>(end - first) + kAlignment;
    std::optional<ContextScope> scope;
    if (buffer.device != nullptr) {
        scope.emplace(buffer.device->driver(), buffer.device->context());
    }
    // Pinning takes memory from everybody: large buffers go through a few pinned slots.
    const bool pinned =
        scope && scope->result() == CUDA_SUCCESS && bytes <= process_.settings().stage_pinned;
    auto memory = process_.store().borrow_staging(pinned ? buffer.device : nullptr, bytes);
    if (!memory.ok()) {
        note(memory.take_status());
        return nullptr;
    }
    buffer.memory = std::move(*memory);
    // Aligned as the buffer is.
    const std::size_t misaligned =
        (reinterpret_cast<std::uintptr_t>(buffer.data) + static_cast<std::size_t>(first)) %
        kAlignment;
    buffer.host = buffer.memory->data() + misaligned - first;
    return buffer.host;
}

void Stage::start_read()
{
    has_input_ = true;
    for (Buffer &buffer : buffers_) {
        if (process_.settings().pre_sync == HETCOLL_PRE_SYNC_CONTEXT && buffer.device != nullptr) {
            Status synchronized = process_.store().synchronize(buffer.info);
            has_input_ = has_input_ && (synchronized.ok() || buffer.read.empty());
            note(std::move(synchronized));
        }
        copy(buffer, PinnedPipe::Way::kToHost);
    }
}

void Stage::start_write()
{
    for (Buffer &buffer : buffers_) {
        copy(buffer, PinnedPipe::Way::kToDevice);
    }
}

void Stage::copy(Buffer &buffer, PinnedPipe::Way way)
{
    if (buffer.pieces(way).empty()) {
        return;
    }
    buffer.started = way;
    const Status &unknown = buffer.unknown;
    Status started = buffer.device != nullptr
                         ? start_copies(buffer, way)
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
    if (copy_plainly(buffer, buffer.started)) {
        return;
    }
    has_input_ = has_input_ && buffer.started != PinnedPipe::Way::kToHost;
    note(std::move(why));
}

Status Stage::start_copies(Buffer &buffer, PinnedPipe::Way way)
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
            buffer.pipe = PinnedPipe::create(process_, buffer.device);
        }
        if (buffer.pipe != nullptr) {
            return start_pipe(buffer, way);
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
    for (const Piece &piece : buffer.pieces(way)) {
        std::byte *to = buffer.host + piece.offset, *from = buffer.data + piece.offset;
        if (way == PinnedPipe::Way::kToDevice) {
            std::swap(to, from);
        }
        Status copied = device.copy_async(to, from, piece.bytes, memory.stream.get());
        if (!copied.ok()) {
            return copied;
        }
        process_.counters().count(HETCOLL_BYTES_STAGED, piece.bytes);
    }
    return device.record(memory.done, memory.stream.get());
}

Status Stage::start_pipe(Buffer &buffer, PinnedPipe::Way way)
{
    std::vector<PinnedPipe::Piece> pieces;
    for (const Piece &piece : buffer.pieces(way)) {
        pieces.push_back({buffer.host + piece.offset, buffer.data + piece.offset, piece.bytes});
    }
    return buffer.pipe->start(std::move(pieces), way);
}

Status Stage::wait_copies(Buffer &buffer, PinnedPipe::Way way)
{
    for (const Piece &piece : buffer.pieces(way)) {
        std::byte *to = buffer.host + piece.offset, *from = buffer.data + piece.offset;
        if (way == PinnedPipe::Way::kToDevice) {
            std::swap(to, from);
        }
        Status copied = process_.store().copy_blocking(to, from, piece.bytes, buffer.info);
        if (!copied.ok()) {
            return copied;
        }
    }
    return {};
}

bool Stage::copy_plainly(Buffer &buffer, PinnedPipe::Way way)
{
    const DriverLibrary library; // which is open, whoever opened it
    const Driver *const driver = library.get();
    CUresult result = driver != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    for (const Piece &piece : buffer.pieces(way)) {
        std::byte *to = buffer.host + piece.offset, *from = buffer.data + piece.offset;
        if (way == PinnedPipe::Way::kToDevice) {
            std::swap(to, from);
        }
        if (result == CUDA_SUCCESS) {
            result = driver->cuMemcpy(reinterpret_cast<CUdeviceptr>(to),
                                      reinterpret_cast<CUdeviceptr>(from), piece.bytes);
        }
    }
    return result == CUDA_SUCCESS;
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
                ? (buffer.pipe != nullptr ? buffer.pipe->step()
                                          : device.is_done(buffer.memory->done))
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
