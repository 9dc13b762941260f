#include "engine/stage.h"

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
            process_.give_back(std::move(buffer.memory));
            if (buffer.pipe != nullptr) {
                process_.give_back(buffer.pipe->take_memory());
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
        note(found.take_status());
    }
    buffers_.push_back(std::move(added));
}

void Stage::find_device(Buffer &buffer)
{
    auto device = process_.device_of(buffer.info);
    if (device.ok()) {
        buffer.device = std::move(*device);
    } else {
        note(device.take_status());
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
    auto memory = process_.borrow_staging(pinned ? buffer.device : nullptr, bytes);
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
    for (Buffer &buffer : buffers_) {
        if (process_.settings().sync_context != 0 && buffer.device != nullptr) {
            note(process_.synchronize(buffer.info));
        }
        copy(buffer, true);
    }
}

void Stage::start_write()
{
    for (Buffer &buffer : buffers_) {
        copy(buffer, false);
    }
}

// A stream that cannot be used is no reason to fail: then the copies block.
void Stage::copy(Buffer &buffer, bool in)
{
    if ((in ? buffer.read : buffer.written).empty() || buffer.device == nullptr) {
        return;
    }
    Status started = start_copies(buffer, in);
    if (started.ok()) {
        buffer.copying = true;
        return;
    }
    finish(buffer);
    Status copied = wait_copies(buffer, in);
    note(std::move(copied));
}

Status Stage::start_copies(Buffer &buffer, bool in)
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
            return start_pipe(buffer, in);
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
    for (const Piece &piece : in ? buffer.read : buffer.written) {
        std::byte *host = buffer.host + piece.offset, *data = buffer.data + piece.offset;
        Status copied =
            device.copy_async(in ? host : data, in ? data : host, piece.bytes, memory.stream.get());
        if (!copied.ok()) {
            return copied;
        }
        process_.count(HETCOLL_BYTES_STAGED, piece.bytes);
    }
    return device.record(memory.done, memory.stream.get());
}

Status Stage::start_pipe(Buffer &buffer, bool in)
{
    std::vector<PinnedPipe::Piece> pieces;
    for (const Piece &piece : in ? buffer.read : buffer.written) {
        pieces.push_back({buffer.host + piece.offset, buffer.data + piece.offset, piece.bytes});
    }
    return buffer.pipe->start(std::move(pieces),
                              in ? PinnedPipe::Way::kToHost : PinnedPipe::Way::kToDevice);
}

Status Stage::wait_copies(Buffer &buffer, bool in)
{
    for (const Piece &piece : in ? buffer.read : buffer.written) {
        std::byte *host = buffer.host + piece.offset, *data = buffer.data + piece.offset;
        Status copied =
            process_.copy_blocking(in ? host : data, in ? data : host, piece.bytes, buffer.info);
        if (!copied.ok()) {
            return copied;
        }
    }
    return {};
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
            note(copied.take_status());
            finish(buffer);
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
