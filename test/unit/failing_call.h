// System calls that fail as they do under a seccomp filter, or where the system has run out.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace hetcoll::test {

// From now on these calls of this thread and its children answer `code`. There is no way back: for
// a forked child. False if filters are forbidden here.
inline bool fail_system_calls(std::initializer_list<long> numbers, int code)
{
    const auto instruction = [](unsigned what, std::size_t value, std::uint8_t otherwise = 0) {
        return sock_filter{.code = static_cast<std::uint16_t>(what),
                           .jt = 0,
                           .jf = otherwise,
                           .k = static_cast<std::uint32_t>(value)};
    };
    std::vector<sock_filter> filter{
        instruction(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (const long number : numbers) {
        filter.push_back(
            instruction(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::size_t>(number), 1));
        filter.push_back(
            instruction(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)));
    }
    filter.push_back(instruction(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

} // namespace hetcoll::test
