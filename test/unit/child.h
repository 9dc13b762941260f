// Processes that tests fork, and what a process has.
#pragma once

#include <gtest/gtest.h>

#include <sys/types.h>
#include <sys/wait.h>

#include <filesystem>
#include <iterator>

namespace hetcoll::test {

// The exit status of a child that could not try what it was made for.
inline constexpr int kNotTried = 2;

// Waits for a child, and expects that it has ended with 0. Skips the test if it was kNotTried.
inline void expect_success(pid_t child, const char *why_not_tried)
{
    int status = 0;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == kNotTried) {
        GTEST_SKIP() << why_not_tried;
    }
    EXPECT_EQ(status, 0);
}

// The descriptors that this process has open, with the one that counts them.
inline int open_descriptors()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<int>(std::distance(begin(all), end(all)));
}

} // namespace hetcoll::test
