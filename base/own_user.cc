#include "base/own_user.h"

#include <unistd.h>

#include <cstdio>

namespace hetcoll {
namespace {

// The first number in the file, or `otherwise`.
unsigned long read_number(const char *path, const char *format, unsigned long otherwise) noexcept
{
    unsigned long number = otherwise;
    if (std::FILE *const file = std::fopen(path, "re"); file != nullptr) {
        number = std::fscanf(file, format, &number) == 1 ? number : otherwise;
        std::fclose(file);
    }
    return number;
}

} // namespace

bool is_own_user(uid_t uid) noexcept
{
    constexpr unsigned long kOverflowUid = 65534, kAllUsers = 4294967295;
    if (uid != geteuid()) {
        return false;
    }
    if (uid != read_number("/proc/sys/kernel/overflowuid", "%lu", kOverflowUid)) {
        return true;
    }
    // Outside of all containers with users of their own, every user has a number.
    return read_number("/proc/self/uid_map", "%*u %*u %lu", 0) == kAllUsers;
}

} // namespace hetcoll
