// Device memory that a rank has freed comes back: the ranks that have it mapped close it by the
// next call that meets. Until then a GPU keeps it, and so does the emulated one, on which all ranks
// have one device here. The arguments choose:
//   rounds KIND SIZE     memory of SIZE MiB is allocated, reduced and freed again and again; the
//                        device has room for that of two rounds. KIND: plain, or vmm memory
//   random OPERATIONS    OPERATIONS allocations and frees of 1 to 64 MiB among the ranks
#include "test/mpi/check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGranule = 2 * kMiB; // of the driver's allocations
constexpr int kCount = 16'384;             // of a call that maps: 64 KiB

std::size_t whole_granules(std::size_t bytes)
{
    return (bytes + kGranule - 1) / kGranule * kGranule;
}

class Test {
public:
    Test(Program &program, MemoryType type) : program_(program), type_(type) {}
    ~Test()
    {
        while (!memory_.empty()) {
            free(0);
        }
    }
    Test(const Test &) = delete;
    Test &operator=(const Test &) = delete;

    void allocate(std::size_t bytes)
    {
        auto made = TestMemory::allocate(program_.gpu(), type_, bytes);
        if (!made.ok()) {
            program_.check(false, "%zu MiB cannot be allocated in addition to %zu: %s",
                           bytes / kMiB, held_ / kMiB, made.status().message().c_str());
            return;
        }
        held_ += whole_granules(bytes);
        memory_.push_back({std::move(*made), bytes});
    }
    void free(std::size_t index)
    {
        held_ -= whole_granules(memory_[index].bytes);
        memory_.erase(memory_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    [[nodiscard]] std::size_t held() const { return held_; }
    [[nodiscard]] std::size_t count() const { return memory_.size(); }

    // Calls in which the ranks meet. The first two map the memory that was allocated last.
    void reduce_mapped() { reduce(memory_.back().memory.get(), kCount); }
    void broadcast()
    {
        auto *const data = memory_.back().memory->data();
        MPI_Bcast(data, 4 * kCount, MPI_INT, 0, MPI_COMM_WORLD);
    }
    void reduce_small() { reduce(memory_.front().memory.get(), 2); }
    void reduce_on_host(int count) { reduce(nullptr, count); }

    // Rank 0, once all ranks are here, reads the device's memory: what is used, but not by what the
    // ranks hold. The memory of hetcoll itself and of the drivers, and what is mapped but freed.
    [[nodiscard]] std::size_t used_besides()
    {
        auto own = static_cast<unsigned long long>(held_);
        std::vector<unsigned long long> all(static_cast<std::size_t>(program_.ranks()));
        MPI_Gather(&own, 1, MPI_UNSIGNED_LONG_LONG, all.data(), 1, MPI_UNSIGNED_LONG_LONG, 0,
                   MPI_COMM_WORLD);
        std::size_t besides = 0;
        if (program_.rank() == 0) {
            besides = used() - std::accumulate(all.begin(), all.end(), std::size_t{0});
        }
        MPI_Barrier(MPI_COMM_WORLD);
        return besides;
    }
    [[nodiscard]] std::size_t device_bytes() const { return info().total; }

private:
    struct Info {
        std::size_t free, total;
    };
    [[nodiscard]] Info info() const
    {
        Info info{};
        const auto get = reinterpret_cast<CUresult (*)(std::size_t *, std::size_t *)>(
            Emulated().find("cuMemGetInfo_v2"));
        program_.check(get != nullptr && get(&info.free, &info.total) == CUDA_SUCCESS,
                       "cuMemGetInfo does not work");
        return info;
    }
    [[nodiscard]] std::size_t used() const
    {
        const Info now = info();
        return now.total - now.free;
    }

    void reduce(const TestMemory *memory, int count)
    {
        std::vector<int> values(static_cast<std::size_t>(count));
        std::iota(values.begin(), values.end(), program_.rank());
        const std::size_t bytes = values.size() * sizeof(int);
        const auto *const first = reinterpret_cast<const unsigned char *>(values.data());
        if (memory != nullptr) {
            program_.require(memory->write({first, first + bytes}));
        }
        MPI_Allreduce(MPI_IN_PLACE, memory != nullptr ? memory->data() : values.data(), count,
                      MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (memory != nullptr) {
            auto read = memory->read(bytes);
            program_.require(read.status());
            std::memcpy(values.data(), read->data(), bytes);
        }
        const int ranks = program_.ranks(), last = count - 1;
        const int right = ranks * (ranks - 1) / 2 + ranks * last;
        program_.check(values.back() == right, "element %d is %d, not %d", last, values.back(),
                       right);
    }

    struct Memory {
        std::unique_ptr<TestMemory> memory;
        std::size_t bytes;
    };

    Program &program_;
    const MemoryType type_;
    std::vector<Memory> memory_;
    std::size_t held_ = 0;
};

// Larger every time, so that no memory comes to where other was.
void test_rounds(Program &program, MemoryType type, std::size_t bytes)
{
    constexpr int kRounds = 12;
    Test test(program, type);
    for (int round = 0; round < kRounds; ++round) {
        test.allocate(bytes + static_cast<std::size_t>(round) * kGranule);
        if (test.count() == 0) {
            return;
        }
        round % 2 == 0 ? test.reduce_mapped() : test.broadcast();
        test.free(0);
        if (round % 3 == 0) { // else the next call of the loop is the one that meets
            test.reduce_on_host(1);
        }
    }
    test.reduce_on_host(1);
    static_cast<void>(test.used_besides()); // all have come to its end
    const std::size_t most = test.device_bytes() * 3 / 4;
    if (program.rank() == 0) {
        test.allocate(most);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

class RandomTest {
public:
    RandomTest(Program &program)
        : program_(program), test_(program, MemoryType::kPlain),
          own_(static_cast<unsigned>(1 + program.rank()))
    {
        test_.allocate(kGranule); // for small calls
        test_.reduce_mapped();
        test_.reduce_small();
        test_.reduce_mapped();
        besides_ = test_.used_besides();
        allowed_ = test_.device_bytes() / 20;
        const std::size_t reserve = test_.device_bytes() / 16; // hetcoll's and the drivers' own
        most_ = (test_.device_bytes() - allowed_ - reserve) /
                static_cast<std::size_t>(program_.ranks());
    }

    // Until all ranks together have done so many.
    void run(long operations)
    {
        long all = 0;
        while (all < operations) {
            free_some();
            check_freed(meet());
            allocate_some();
            common_() % 2 == 0 ? test_.reduce_mapped() : test_.broadcast();
            check_freed("a call with new memory");
            MPI_Allreduce(&done_, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); // meets, too
        }
        if (program_.rank() == 0) {
            std::printf("note %ld allocations and frees: at most %zu KiB mapped but freed of %zu\n",
                        all, largest_ / 1024, test_.device_bytes() / 1024);
        }
    }

private:
    void free_some()
    {
        for (auto i = own_() % 4; i > 0 && test_.count() > 1; --i) {
            test_.free(1 + own_() % (test_.count() - 1));
            ++done_;
        }
    }
    void allocate_some()
    {
        for (auto i = own_() % 4; i > 0; --i) {
            const std::size_t bytes = kMiB + own_() % (63 * kMiB);
            if (test_.held() + whole_granules(bytes) <= most_) {
                test_.allocate(bytes);
                ++done_;
            }
        }
    }
    const char *meet()
    {
        switch (common_() % 4) {
        case 0: test_.reduce_mapped(); return "a call that maps";
        case 1: test_.reduce_small(); return "a small call";
        case 2: test_.reduce_on_host(1); return "a small call on host memory";
        default: test_.reduce_on_host(kCount); return "a call on host memory";
        }
    }
    void check_freed(const char *when)
    {
        const std::size_t besides = test_.used_besides();
        const std::size_t freed = besides > besides_ ? besides - besides_ : 0;
        largest_ = std::max(largest_, freed);
        if (program_.rank() == 0) {
            program_.check(freed <= allowed_, "%zu KiB are mapped but freed after %s, number %d",
                           freed / 1024, when, calls_);
        }
        ++calls_;
    }

    Program &program_;
    Test test_;
    std::minstd_rand own_, common_{7}; // of this rank, of all ranks alike
    std::size_t besides_ = 0, allowed_ = 0, most_ = 0, largest_ = 0;
    long done_ = 0;
    int calls_ = 0;
};

void run(Program &program, int argc, char **argv)
{
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "random" && argc == 3) {
        RandomTest(program).run(std::atol(argv[2]));
    } else if (what == "rounds" && argc == 4) {
        const bool vmm = std::string_view(argv[2]) == "vmm";
        test_rounds(program, vmm ? MemoryType::kVmm : MemoryType::kPlain,
                    std::strtoul(argv[3], nullptr, 10) * kMiB);
    } else {
        program.check(false, "usage: rounds plain|vmm MIB, or random OPERATIONS");
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    hetcoll::test::Program program(argc, argv, "freed_memory");
    program.gpu();
    hetcoll::test::run(program, argc, argv);
    return program.finish();
}
