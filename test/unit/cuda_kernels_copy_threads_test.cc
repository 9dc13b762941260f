// The body of the copy kernel, run on the CPU as many threads.
#include "cuda_kernels/copy.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace hetcoll {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::size_t kGuard = 64;

TEST(CopyThreads, CopiesAnyLengthBetweenAnyAddressesAndNothingElse)
{
    for (std::size_t bytes = 0; bytes <= 70; ++bytes) {
        for (std::size_t to = 0; to < 17; ++to) {
            for (std::size_t from = 0; from < 17; ++from) {
                alignas(16) unsigned char target[256], source[256];
                std::fill(std::begin(target), std::end(target), static_cast<unsigned char>(0xa5));
                std::iota(std::begin(source), std::end(source), static_cast<unsigned char>(1));
                for (std::size_t thread = 5; thread-- > 0;) {
                    copy_as_thread(target + kGuard + to, source + kGuard + from, bytes, thread, 5);
                }
                Bytes wanted(256, 0xa5);
                std::copy_n(source + kGuard + from, bytes, wanted.data() + kGuard + to);
                ASSERT_EQ(Bytes(std::begin(target), std::end(target)), wanted)
                    << bytes << " bytes from " << from << " to " << to;
            }
        }
    }
}

TEST(CopyThreads, WordsAreAsWideAsTheAddressesAllow)
{
    alignas(16) unsigned char memory[64];
    const auto width = [&](std::size_t to, std::size_t from) {
        return copy_word_bytes(memory + to, memory + from);
    };
    EXPECT_EQ(width(0, 32), 16u);
    EXPECT_EQ(width(5, 21), 16u); // both equally far from a boundary
    EXPECT_EQ(width(8, 32), 8u);
    EXPECT_EQ(width(12, 16), 4u);
    EXPECT_EQ(width(2, 16), 2u);
    EXPECT_EQ(width(1, 16), 1u);
}

} // namespace
} // namespace hetcoll
