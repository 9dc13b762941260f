// Processes of tests: settings that are valid, and what such a process logs.
#pragma once

#include "engine/process/process.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll::test {

// Returns what any process of this program has logged since the last take_log(), with its level
// before it.
inline std::vector<std::string> &lines()
{
    static std::vector<std::string> all;
    return all;
}
inline std::vector<std::string> take_log() { return std::exchange(lines(), {}); }

// The settings that the component hands over if the user has set nothing, without what the machine
// would add; all levels are logged.
inline hetcoll_settings default_settings()
{
    hetcoll_settings settings = hetcoll_default_settings();
    settings.tuning_table = "none";
    settings.recognize_ops = false;
    settings.check = HETCOLL_CHECK_OFF; // scripts of what ranks say make no calls
    settings.verbose = 9;
    settings.log = [](int level, const char *line) {
        lines().push_back(std::to_string(level) + " " + line);
    };
    return settings;
}

inline std::unique_ptr<Process> make_process(const hetcoll_settings &settings = default_settings())
{
    auto process = Process::create(settings);
    EXPECT_TRUE(process.ok()) << process.status().message();
    return process.ok() ? std::move(*process) : nullptr;
}

// Some device memory, and what the pointer cache says of it.
class DeviceBuffer {
public:
    explicit DeviceBuffer(std::size_t bytes) : memory_(cuda().allocate(bytes)) {}
    ~DeviceBuffer() { cuda().driver->cuMemFree(memory_); }
    DeviceBuffer(const DeviceBuffer &) = delete;
    DeviceBuffer &operator=(const DeviceBuffer &) = delete;

    [[nodiscard]] std::byte *data() const { return reinterpret_cast<std::byte *>(memory_); }
    [[nodiscard]] CUdeviceptr address() const { return memory_; }
    [[nodiscard]] PointerInfo info(Process &process) const
    {
        auto found = process.gpus().pointers().find(data());
        EXPECT_TRUE(found.ok()) << found.status().message();
        return found.ok() ? *found : PointerInfo{};
    }

private:
    CUdeviceptr memory_;
};

} // namespace hetcoll::test
