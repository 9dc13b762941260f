#include "engine/meeting/messages.h"

#include <sys/mman.h>

namespace hetcoll {
namespace {

// As operator new does.
std::byte *map_pages(std::size_t bytes)
{
    for (;;) {
        void *const pages =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages != MAP_FAILED) {
            return static_cast<std::byte *>(pages);
        }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) {
            throw std::bad_alloc();
        }
        handler();
    }
}

} // namespace

Messages::Messages() : mine(map_pages(kBytes) + kFirstBytes + kBefore), theirs(mine + kMessageBytes)
{
}

Messages::~Messages() { munmap(pages(), kBytes); }

} // namespace hetcoll
