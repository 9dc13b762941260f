// After a network failure a message may still arrive in memory of ours: that is lost, not freed.
#pragma once

#include <memory>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace hetcoll {

// Null is allowed.
template <class T> void lose(std::unique_ptr<T> memory) noexcept
{
    [[maybe_unused]] const T *const lost = memory.release();
#ifdef __SANITIZE_ADDRESS__
    __lsan_ignore_object(lost); // and all that it owns
#endif
}

} // namespace hetcoll
