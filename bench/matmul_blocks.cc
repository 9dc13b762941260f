#include "bench/matmul_blocks.h"

#include "bench/cublas_library.h"
#include "bench/peer_vectors.h"

#include <array>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kRanks = 8;
constexpr int kBlocks[] = {0, 32, 8}; // 0: as many as fit

// A stream of normal priority, ordered with no other.
StreamHandle make_program_stream(const Gpu &gpu, const Device &device)
{
    CUstream stream = nullptr;
    require(gpu.driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return {device.context_ref(), stream,
            [](const Driver &driver, CUstream s) { return driver.cuStreamDestroy(s); }};
}

// Products c = a * b of n x n floats, back to back: several are always queued. b is the identity,
// so that c becomes a, exactly.
class Products {
public:
    Products(const Gpu &gpu, const Device &device, int n)
        : gpu_(gpu), device_(device), n_(n), stream_(make_program_stream(gpu, device)),
          a_(require(device.make_memory(bytes()))), b_(require(device.make_memory(bytes()))),
          c_(require(device.make_memory(bytes()))), content_(elements())
    {
        std::vector<float> identity(elements(), 0);
        for (std::size_t i = 0; i < elements(); ++i) {
            content_[i] = static_cast<float>(i % 251); // exact as TF32 too
            identity[i] = i % (static_cast<std::size_t>(n) + 1) == 0 ? 1 : 0;
        }
        require(gpu.driver().cuMemcpyHtoD(a_.get(), content_.data(), bytes()), "cuMemcpyHtoD");
        require(gpu.driver().cuMemcpyHtoD(b_.get(), identity.data(), bytes()), "cuMemcpyHtoD");
        require(gpu.driver().cuMemsetD8(c_.get(), 0xee, bytes()), "cuMemsetD8");
        require(gpu.driver().cuCtxSynchronize(), "cuCtxSynchronize");
        for (EventHandle &event : ended_) {
            event = require(device.make_event());
        }
    }

    Status open(const std::string &cublas)
    {
        auto library = CublasLibrary::open(cublas, stream_.get());
        if (!library.ok()) {
            return library.take_status();
        }
        library_ = std::move(*library);
        return {};
    }
    [[nodiscard]] const std::string &library_name() const { return library_->name(); }

    void start()
    {
        begun_ = done_ = 0;
        feed();
    }
    // Adds a product for each that has ended.
    void feed()
    {
        while (done_ < begun_ && require(device_.is_done(event_of(done_)))) {
            ++done_;
        }
        for (; begun_ < done_ + ended_.size(); ++begun_) {
            require(library_->multiply(n_, a_.get(), b_.get(), c_.get()));
            require(device_.record(event_of(begun_), stream_.get()));
        }
    }
    [[nodiscard]] double done() const { return static_cast<double>(done_); }
    // Waits for what is queued, and ends the program if its result is wrong.
    void finish_and_check()
    {
        require(gpu_.driver().cuStreamSynchronize(stream_.get()), "cuStreamSynchronize");
        std::vector<float> got(elements());
        require(gpu_.driver().cuMemcpyDtoH(got.data(), c_.get(), bytes()), "cuMemcpyDtoH");
        if (got != content_) {
            require(error(Errc::kInvalid,
                          "kernel_bench: a product of %d x %d floats by %s is wrong: no time of "
                          "this run counts",
                          n_, n_, library_->name().c_str()));
        }
    }

private:
    [[nodiscard]] std::size_t elements() const
    {
        return static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_);
    }
    [[nodiscard]] std::size_t bytes() const { return elements() * sizeof(float); }
    [[nodiscard]] const EventHandle &event_of(std::size_t product) const
    {
        return ended_[product % ended_.size()];
    }

    const Gpu &gpu_;
    const Device &device_;
    int n_;
    StreamHandle stream_;
    DeviceMemory a_, b_, c_;
    std::vector<float> content_; // of a_
    std::unique_ptr<CublasLibrary> library_;
    std::array<EventHandle, 8> ended_; // of the last products
    std::size_t begun_ = 0, done_ = 0; // products
};

// Products, sums or both for some time.
class Turns {
public:
    Turns(Products &products, FlaggedSum &sum, const PeerVectors &vectors, double seconds)
        : products_(products), sum_(sum), vectors_(vectors), seconds_(seconds)
    {
    }

    // Products a second.
    double products_alone()
    {
        products_.start();
        const auto start = std::chrono::steady_clock::now();
        while (seconds_since(start) < seconds_ || products_.done() == 0) {
            products_.feed();
        }
        const double rate = products_.done() / seconds_since(start);
        products_.finish_and_check();
        return rate;
    }
    // Seconds of a sum.
    double sums_alone()
    {
        return sums([] {});
    }
    std::pair<double, double> together()
    {
        products_.start();
        const auto start = std::chrono::steady_clock::now();
        const double sum = sums([this] { products_.feed(); });
        const double rate = products_.done() / seconds_since(start);
        products_.finish_and_check();
        return {rate, sum};
    }

private:
    // One sum after the other, as blocking calls make them.
    template <class Meanwhile> double sums(Meanwhile meanwhile)
    {
        vectors_.clear(kRanks);
        std::vector<double> seconds;
        const auto start = std::chrono::steady_clock::now();
        do {
            const auto begin = std::chrono::steady_clock::now();
            sum_.launch(vectors_.outputs(kRanks), vectors_.inputs(kRanks), vectors_.count());
            do {
                meanwhile();
            } while (!sum_.is_done());
            seconds.push_back(seconds_since(begin));
        } while (seconds_since(start) < seconds_);
        vectors_.check(kRanks, wanted_);
        return median(seconds);
    }

    Products &products_;
    FlaggedSum &sum_;
    const PeerVectors &vectors_;
    const std::vector<unsigned char> wanted_ = vectors_.sum_of(kRanks);
    double seconds_;
};

void print_line(const char *where, int blocks, Turns &turns, int rounds, double flop)
{
    std::vector<double> products, sums, products_with, sums_with;
    for (int round = 0; round < rounds; ++round) {
        products.push_back(turns.products_alone());
        sums.push_back(turns.sums_alone());
        const auto [rate, seconds] = turns.together();
        products_with.push_back(rate);
        sums_with.push_back(seconds);
    }
    const double rate = median(products), rate_with = median(products_with);
    const double us = median(sums) * 1e6, us_with = median(sums_with) * 1e6;
    std::printf("%-14s %7s | %8.2f %8.2f %5.2f | %9.1f %9.1f %5.2f\n", where,
                blocks == 0 ? "full" : std::to_string(blocks).c_str(), rate * flop / 1e12,
                rate_with * flop / 1e12, rate_with / rate, us, us_with, us_with / us);
    std::fflush(stdout);
}

} // namespace

void time_next_to_matmul(const Gpu &gpu, FlaggedSum &sum, const std::string &cublas,
                         std::size_t bytes)
{
    if (gpu.is_emulated() && cublas.empty()) {
        std::printf("\n# matmul      left out: cuBLAS cannot run on the emulated GPU\n");
        return;
    }
    const int n = gpu.is_emulated() ? 64 : 2048;
    const int rounds = gpu.is_emulated() ? 1 : 5;
    const double seconds = gpu.is_emulated() ? 0.02 : 0.06;
    Products products(gpu, sum.device(), n);
    if (const Status opened = products.open(cublas); !opened.ok()) {
        std::printf("\n# matmul      left out: %s\n", opened.message().c_str());
        return;
    }
    std::printf("\n# matmul      %d x %d floats by %s, back to back at normal priority; next to it "
                "sums of %d ranks, one after the other in the engine's stream; alone, then both, "
                "median of %d turns of %g ms\n",
                n, n, products.library_name().c_str(), kRanks, rounds, seconds * 1e3);
    std::printf("%-14s %7s | %23s | %25s\n%-14s %7s | %8s %8s %5s | %9s %9s %5s\n", "", "",
                "products, TFLOP/s", "sum, us", "peers in", "blocks", "alone", "both", "ratio",
                "alone", "both", "ratio");
    for (const PeersIn where : {PeersIn::kHostMemory, PeersIn::kOwnMemory}) {
        const PeerVectors vectors(gpu, sum.device(), where, kRanks, bytes / kRanks / sizeof(float));
        Turns turns(products, sum, vectors, seconds);
        for (const int blocks : kBlocks) {
            sum.limit_blocks(blocks);
            print_line(where == PeersIn::kHostMemory ? "host memory" : "own memory", blocks, turns,
                       rounds, 2.0 * n * n * n);
        }
    }
}

} // namespace hetcoll
