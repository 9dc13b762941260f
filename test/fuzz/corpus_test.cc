// The fuzzer's targets on what the fuzzer begins with, and on changed copies of it: a sample of
// make check-fuzz without clang.
#include "test/fuzz/targets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace hetcoll::test {

void PrintTo(const FuzzTarget &target, std::ostream *to) { *to << target.name; }

namespace {

class FuzzCorpusTest : public ::testing::TestWithParam<FuzzTarget> {
protected:
    FuzzCorpusTest()
    {
        const char *const source = std::getenv("HETCOLL_SRCDIR");
        const std::filesystem::path root = source == nullptr ? "." : source;
        read_folder(root / "test/fuzz/corpus" / GetParam().name);
        if (GetParam().seeds != nullptr) {
            read_folder(root / GetParam().seeds);
        }
    }

    [[nodiscard]] static bool read(const std::string &text)
    {
        return GetParam().read(std::as_bytes(std::span(text)));
    }

    std::vector<std::string> texts_;

private:
    void read_folder(const std::filesystem::path &folder)
    {
        for (const auto &entry : std::filesystem::directory_iterator(folder)) {
            std::ifstream in(entry.path(), std::ios::binary);
            texts_.emplace_back(std::istreambuf_iterator<char>(in),
                                std::istreambuf_iterator<char>());
        }
    }
};

TEST_P(FuzzCorpusTest, SomeOfItIsAcceptedAndSomeRefused)
{
    int accepted = 0, refused = 0;
    for (const std::string &text : texts_) {
        ++(read(text) ? accepted : refused);
    }
    EXPECT_GT(accepted, 0);
    EXPECT_GT(refused, 0);
}

// One to four bytes changed, left out or put in, or the end cut off.
TEST_P(FuzzCorpusTest, ChangedCopiesAreAcceptedOrRefused)
{
    std::mt19937 random(1);
    constexpr int kCopies = 400;
    for (int copy = 0; copy < kCopies; ++copy) {
        std::string text = texts_[random() % texts_.size()].substr(0, GetParam().most_bytes);
        for (unsigned change = 0; change <= random() % 4 && !text.empty(); ++change) {
            const std::size_t at = random() % text.size();
            const char byte = text[random() % text.size()];
            switch (random() % 4) {
            case 0: text[at] = static_cast<char>(random()); break;
            case 1: text[at] = byte; break;
            case 2: text.erase(at, 1 + random() % 8); break;
            default: text.insert(at, 1 + random() % 8, byte); break;
            }
        }
        if (random() % 8 == 0) {
            text.resize(random() % (text.size() + 1));
        }
        (void)read(text); // ends the program where it finds something
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpusTest,
                         ::testing::ValuesIn(fuzz_targets().begin(), fuzz_targets().end()),
                         [](const auto &of) { return std::string(of.param.name); });

} // namespace
} // namespace hetcoll::test
