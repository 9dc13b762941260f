#include "engine/direct_probe.h"

#include <cstring>

namespace hetcoll {
namespace {

// Copies, and lets messages move on until the copy is done.
bool copy(Device &device, const hetcoll_p2p &self, void *to, const void *from, std::size_t bytes)
{
    auto stream = device.make_stream();
    auto event = device.make_event();
    if (!stream.ok() || !event.ok() || !device.copy_async(to, from, bytes, stream->get()).ok() ||
        !device.record(*event, stream->get()).ok()) {
        return false;
    }
    Result<bool> done = false;
    while (done.ok() && !*done) {
        self.progress(self.context);
        done = device.is_done(*event);
    }
    return done.ok();
}

bool wait(const hetcoll_p2p &self, void *request)
{
    int state = 0;
    while ((state = self.test(self.context, &request)) == 0) {
        self.progress(self.context);
    }
    return state > 0;
}

} // namespace

bool carries_device_memory(Device &device, const hetcoll_p2p &self, int tag)
{
    constexpr std::size_t kBytes = 64u << 10; // more than an eager message
    auto memory = device.make_memory(2 * kBytes);
    auto pinned = device.make_pinned(2 * kBytes);
    if (!memory.ok() || !pinned.ok()) {
        return false;
    }
    auto *sent = static_cast<std::byte *>(pinned->get()), *received = sent + kBytes;
    for (std::size_t i = 0; i < kBytes; ++i) {
        sent[i] = static_cast<std::byte>(i * 31 + 7);
    }
    auto *from = reinterpret_cast<std::byte *>(memory->get()), *to = from + kBytes;
    if (!copy(device, self, from, sent, kBytes)) {
        return false;
    }
    void *send = nullptr, *receive = nullptr;
    if (self.irecv(self.context, to, kBytes, 0, tag, &receive) != 0 ||
        self.isend(self.context, from, kBytes, 0, tag, &send) != 0) {
        return false;
    }
    const bool moved = wait(self, send) && wait(self, receive);
    return moved && copy(device, self, received, to, kBytes) &&
           std::memcmp(sent, received, kBytes) == 0;
}

} // namespace hetcoll
