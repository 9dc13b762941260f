// A /sys for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>

namespace hetcoll::test {

// A folder with these files, by their paths below it; removed at the end of the scope.
class FakeSys {
public:
    explicit FakeSys(const std::map<std::string, std::string> &files)
    {
        std::string folder = testing::TempDir() + "hetcoll-sys-XXXXXX";
        root_ = mkdtemp(folder.data());
        for (const auto &[file, text] : files) {
            std::filesystem::create_directories((root_ / file).parent_path());
            std::ofstream(root_ / file) << text;
        }
    }
    ~FakeSys() { std::filesystem::remove_all(root_); }
    FakeSys(const FakeSys &) = delete;
    FakeSys &operator=(const FakeSys &) = delete;

    [[nodiscard]] std::string path() const { return root_; }

private:
    std::filesystem::path root_;
};

} // namespace hetcoll::test
