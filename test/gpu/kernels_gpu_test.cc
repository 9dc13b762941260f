// Every kernel, run by the driver on device memory, against the host build of the same operations:
// bit for bit. On the emulated GPU as a part of make check, on a real one by make check-gpu.
#include "cuda_kernels/reduction.h"
#include "device/driver.h"
#include "test/unit/cuda_kernels_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

namespace hetcoll {
namespace {

using test::Bytes;

// Device 0, its primary context current on this thread, and the kernels loaded into it.
class Gpu {
public:
    static std::unique_ptr<Gpu> open()
    {
        auto gpu = std::unique_ptr<Gpu>(new Gpu);
        int devices = 0;
        const Driver *driver = gpu->library_.get();
        if (driver == nullptr || driver->cuInit(0) != CUDA_SUCCESS ||
            driver->cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices == 0) {
            return nullptr;
        }
        gpu->driver = driver;
        CUdevice device = 0;
        char name[128] = "";
        int version = 0;
        gpu->require(driver->cuDeviceGet(&device, 0), "cuDeviceGet");
        gpu->require(driver->cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
        gpu->require(driver->cuDriverGetVersion(&version), "cuDriverGetVersion");
        std::printf("# gpu %s, driver %d.%d, emulated %s\n", name, version / 1000,
                    version % 1000 / 10, gpu->library_.is_emulated() ? "yes" : "no");
        gpu->require(driver->cuDevicePrimaryCtxRetain(&gpu->context_, device), "retain");
        gpu->require(driver->cuCtxSetCurrent(gpu->context_), "cuCtxSetCurrent");
        gpu->require(driver->cuModuleLoadData(&gpu->module_, kernel_image()), "cuModuleLoadData");
        return gpu;
    }
    ~Gpu()
    {
        if (module_ != nullptr) {
            driver->cuModuleUnload(module_);
            driver->cuCtxSetCurrent(nullptr);
            driver->cuDevicePrimaryCtxRelease(0);
        }
    }

    void require(CUresult result, const char *what) const
    {
        ASSERT_EQ(result, CUDA_SUCCESS)
            << driver_status(*driver, result, what, "testing").message();
    }
    [[nodiscard]] CUfunction function(const char *name) const
    {
        CUfunction found = nullptr;
        require(driver->cuModuleGetFunction(&found, module_, name), name);
        return found;
    }

    const Driver *driver = nullptr;

private:
    Gpu() = default;

    DriverLibrary library_;
    CUcontext context_ = nullptr;
    CUmodule module_ = nullptr;
};

// The first two arguments of a many-input kernel, and the page-locked lists that they may lead to.
class Operands {
public:
    Operands(const Gpu &gpu, int inputs_count, int outputs_count) : gpu_(gpu)
    {
        void *memory = nullptr;
        gpu_.require(gpu_.driver->cuMemHostAlloc(&memory, sizeof *lists_, 0), "cuMemHostAlloc");
        lists_ = static_cast<OperandLists *>(memory);
        input = addresses(inputs, static_cast<std::size_t>(inputs_count), *lists_);
        output = addresses(outputs, static_cast<std::size_t>(outputs_count), *lists_);
    }
    ~Operands() { gpu_.driver->cuMemFreeHost(lists_); }
    Operands(const Operands &) = delete;
    Operands &operator=(const Operands &) = delete;

    ReduceInputs inputs{};
    ReduceOutputs outputs{};
    const void **input;
    void **output;

private:
    const Gpu &gpu_;
    OperandLists *lists_ = nullptr;
};

// Device memory with `shift` guard bytes before the content and some behind it.
class DeviceBytes {
public:
    DeviceBytes(const Gpu &gpu, const Bytes &content, std::size_t shift)
        : gpu_(gpu), shift_(shift), bytes_(content.size())
    {
        Bytes all(shift + bytes_ + kGuard, 0xa5);
        std::copy(content.begin(), content.end(), all.begin() + static_cast<long>(shift));
        gpu_.require(gpu_.driver->cuMemAlloc(&memory_, all.size()), "cuMemAlloc");
        gpu_.require(gpu_.driver->cuMemcpyHtoD(memory_, all.data(), all.size()), "cuMemcpyHtoD");
    }
    ~DeviceBytes() { gpu_.driver->cuMemFree(memory_); }
    DeviceBytes(const DeviceBytes &) = delete;
    DeviceBytes &operator=(const DeviceBytes &) = delete;

    [[nodiscard]] void *data() const { return reinterpret_cast<void *>(memory_ + shift_); }
    // The content; what lies around it must be untouched.
    [[nodiscard]] Bytes read() const
    {
        Bytes all(shift_ + bytes_ + kGuard);
        gpu_.require(gpu_.driver->cuMemcpyDtoH(all.data(), memory_, all.size()), "cuMemcpyDtoH");
        const auto first = all.begin() + static_cast<long>(shift_);
        const auto last = first + static_cast<long>(bytes_);
        EXPECT_EQ(std::count(all.begin(), first, 0xa5), static_cast<long>(shift_));
        EXPECT_EQ(std::count(last, all.end(), 0xa5), static_cast<long>(kGuard));
        return Bytes(first, last);
    }

private:
    static constexpr std::size_t kGuard = 64;
    const Gpu &gpu_;
    std::size_t shift_, bytes_;
    CUdeviceptr memory_ = 0;
};

using Reduction = std::pair<ReduceOp, ElementKind>;

class KernelTest : public ::testing::TestWithParam<Reduction> {
protected:
    static void SetUpTestSuite() { gpu = Gpu::open(); }
    static void TearDownTestSuite() { gpu.reset(); }
    void SetUp() override
    {
        if (gpu == nullptr) {
            GTEST_SKIP() << "no GPU, and no emulated one on LD_LIBRARY_PATH";
        }
    }

    void launch(KernelShape shape, void **arguments, unsigned blocks, unsigned threads)
    {
        const CUfunction kernel = gpu->function(kernel_name(shape, op, kind));
        gpu->require(gpu->driver->cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, nullptr,
                                                 arguments, nullptr),
                     "cuLaunchKernel");
        gpu->require(gpu->driver->cuCtxSynchronize(), "cuCtxSynchronize");
    }
    Bytes elements(std::size_t count, unsigned seed)
    {
        return test::random_elements(kind, count, seed + 1000 * count);
    }
    Bytes fold_on_host(const std::vector<Bytes> &inputs)
    {
        Bytes result = inputs[0];
        if (const HostFold fold = host_fold(op, kind); fold != nullptr) {
            std::vector<const void *> all;
            for (const Bytes &input : inputs) {
                all.push_back(input.data());
            }
            fold(result.data(), all.data(), all.size(), result.size() / element_bytes(kind));
            return result;
        }
        for (std::size_t k = 1; k < inputs.size(); ++k) {
            host_reduce(op, kind)(result.data(), result.data(), inputs[k].data(),
                                  result.size() / element_bytes(kind));
        }
        return result;
    }
    void expect_same(const Bytes &got, const std::vector<Bytes> &inputs, const char *what)
    {
        const Bytes wanted = fold_on_host(inputs);
        const long i = test::first_difference(kind, got, wanted);
        ASSERT_EQ(i, -1) << what << ", " << inputs[0].size() / element_bytes(kind)
                         << " elements: " << test::show_element(kind, got, i) << " on the GPU, "
                         << test::show_element(kind, wanted, i) << " on the host";
    }

    const ReduceOp op = GetParam().first;
    const ElementKind kind = GetParam().second;
    static std::unique_ptr<Gpu> gpu;
};
std::unique_ptr<Gpu> KernelTest::gpu;

struct Layout {
    std::size_t count, dst, a, b; // elements, and bytes from an aligned address
};
constexpr Layout kLayouts[] = {{1, 0, 0, 0},    {15, 0, 0, 0},  {4099, 0, 0, 0}, {1000, 8, 8, 24},
                               {1000, 4, 4, 4}, {37, 1, 17, 1}, {100, 0, 4, 8},  {100, 3, 0, 5}};

TEST_P(KernelTest, TwoInputsGiveTheBitsOfTheHost)
{
    for (const Layout &at : kLayouts) {
        const Bytes a = elements(at.count, 1), b = elements(at.count, 2);
        const DeviceBytes dst(*gpu, a, at.a), src(*gpu, b, at.b);
        void *to = dst.data(), *from = src.data();
        std::size_t count = at.count;
        void *arguments[] = {&to, &from, &count};
        launch(KernelShape::kTwoInput, arguments, 3, 64);
        expect_same(dst.read(), {a, b}, "dst = op(dst, src)");
        EXPECT_EQ(src.read(), b);
    }
}

TEST_P(KernelTest, ThreeInputsGiveTheBitsOfTheHost)
{
    for (const Layout &at : kLayouts) {
        const Bytes a = elements(at.count, 3), b = elements(at.count, 4);
        const DeviceBytes dst(*gpu, elements(at.count, 5), at.dst);
        const DeviceBytes left(*gpu, a, at.a), right(*gpu, b, at.b);
        std::size_t count = at.count;
        // dst apart, dst == a, dst == b
        for (const DeviceBytes *to : {&dst, &left, &right}) {
            const std::vector<Bytes> inputs = {left.read(), right.read()};
            void *pointers[] = {to->data(), left.data(), right.data()};
            void *arguments[] = {&pointers[0], &pointers[1], &pointers[2], &count};
            launch(KernelShape::kThreeInput, arguments, 2, 96);
            expect_same(to->read(), inputs, "dst = op(a, b)");
        }
    }
}

TEST_P(KernelTest, ManyInputsAreTheLeftFoldOfTheHost)
{
    for (const int terms : {1, 2, 3, 8, kMaxArgumentInputs, 17, kMaxReduceInputs}) {
        for (const std::size_t step : {0, 4, 5}) { // bytes by which the inputs' alignments differ
            const std::size_t size = 333;
            std::vector<Bytes> contents;
            std::vector<std::unique_ptr<DeviceBytes>> buffers;
            Operands operands(*gpu, terms, 2);
            for (int k = 0; k < terms; ++k) {
                contents.push_back(elements(size, 20 + static_cast<unsigned>(k)));
                buffers.push_back(std::make_unique<DeviceBytes>(
                    *gpu, contents.back(), (4 + static_cast<std::size_t>(k) * step) % 16));
                operands.input[k] = buffers.back()->data();
            }
            const DeviceBytes &in_place = *buffers[static_cast<std::size_t>(terms / 2)];
            const DeviceBytes apart(*gpu, elements(size, 50), 4 + step);
            operands.output[0] = in_place.data();
            operands.output[1] = apart.data();
            std::size_t count = size;
            Signal none;
            void *arguments[] = {&operands.outputs, &operands.inputs, &count, &none};
            launch(KernelShape::kManyInput, arguments, 2, 32);
            expect_same(in_place.read(), contents, "many inputs, in place");
            expect_same(apart.read(), contents, "many inputs");
        }
    }
}

TEST_P(KernelTest, EveryOutputMayBeAnInputOfItsOwn)
{
    for (const int ranks : {2, 4, kMaxArgumentInputs, 33}) {
        const std::size_t size = 5003;
        std::vector<Bytes> contents;
        std::vector<std::unique_ptr<DeviceBytes>> buffers;
        Operands operands(*gpu, ranks, ranks);
        for (int k = 0; k < ranks; ++k) {
            contents.push_back(elements(size, 60 + static_cast<unsigned>(k)));
            buffers.push_back(std::make_unique<DeviceBytes>(*gpu, contents.back(), 16));
            operands.input[k] = operands.output[k] = buffers.back()->data();
        }
        std::size_t count = size;
        Signal none;
        void *arguments[] = {&operands.outputs, &operands.inputs, &count, &none};
        // Few lanes: what takes two packs a lane has rounds of them, and a rest.
        launch(KernelShape::kManyInput, arguments, 2, 64);
        for (const auto &buffer : buffers) {
            expect_same(buffer->read(), contents, "all in place");
        }
    }
}

TEST_P(KernelTest, ALongVectorGivesTheBitsOfTheHost)
{
    const std::size_t size = 100'003;
    const Bytes a = elements(size, 40), b = elements(size, 41);
    const DeviceBytes dst(*gpu, a, 0), src(*gpu, b, 0);
    void *to = dst.data(), *from = src.data();
    std::size_t count = size;
    void *arguments[] = {&to, &from, &count};
    launch(KernelShape::kTwoInput, arguments, 64, 512);
    expect_same(dst.read(), {a, b}, "a long vector");
}

// Operands for kinds of one byte, every pair of them; for those of two bytes, every pair of the
// telling ones, and random pairs.
struct Pairs {
    Bytes a, b;

    explicit Pairs(ElementKind kind)
    {
        const std::vector<unsigned> codes = element_bytes(kind) == 1 ? all_bytes() : telling(kind);
        for (const unsigned left : codes) {
            for (const unsigned right : codes) {
                add(left, right, element_bytes(kind));
            }
        }
        if (element_bytes(kind) == 2) {
            std::mt19937 random(1);
            for (int i = 0; i < 300'000; ++i) {
                add(static_cast<unsigned>(random()), static_cast<unsigned>(random()), 2);
            }
        }
    }

private:
    static std::vector<unsigned> all_bytes()
    {
        std::vector<unsigned> codes(256);
        std::iota(codes.begin(), codes.end(), 0u);
        return codes;
    }
    // 1536 codes: both signs and every exponent, of halves or of bfloat16s, with fractions that are
    // zero, the least, the most and others. So both zeros and infinities, subnormals, NaNs with
    // payloads, and, in sums of two that are far enough apart, ties.
    static std::vector<unsigned> telling(ElementKind kind)
    {
        const bool half = kind == ElementKind::kFloat16;
        const unsigned fraction_bits = half ? 10 : 7;
        std::vector<unsigned> fractions = {0, 1, (1u << fraction_bits) - 1};
        if (half) {
            for (const unsigned more : {2,  3,   4,   5,   6,   7,   8,   16,  31,  32,  63,
                                        64, 127, 128, 255, 256, 511, 512, 513, 682, 1022}) {
                fractions.push_back(more);
            }
        }
        std::vector<unsigned> codes;
        for (unsigned upper = 0; upper < 1u << (16 - fraction_bits); ++upper) {
            for (const unsigned fraction : fractions) {
                codes.push_back(upper << fraction_bits | fraction);
            }
        }
        return codes;
    }
    void add(unsigned left, unsigned right, std::size_t bytes)
    {
        for (std::size_t i = 0; i < bytes; ++i) {
            a.push_back(static_cast<unsigned char>(left >> 8 * i));
            b.push_back(static_cast<unsigned char>(right >> 8 * i));
        }
    }
};

// The kernels combine small elements by instructions of their own, which no CPU has.
class SmallElementsTest : public KernelTest {};

TEST_P(SmallElementsTest, EveryPairGivesTheBitsOfTheHost)
{
    const Pairs pairs(kind);
    const Bytes reversed(pairs.a.rbegin(), pairs.a.rend());
    const DeviceBytes a(*gpu, pairs.a, 0), b(*gpu, pairs.b, 0), c(*gpu, reversed, 0);
    const DeviceBytes dst(*gpu, pairs.a, 0);
    std::size_t count = pairs.a.size() / element_bytes(kind);
    void *to = dst.data(), *left = a.data(), *right = b.data();
    void *two[] = {&to, &right, &count};
    launch(KernelShape::kTwoInput, two, 64, 512);
    expect_same(dst.read(), {pairs.a, pairs.b}, "dst = op(dst, src)");
    void *three[] = {&to, &left, &right, &count};
    launch(KernelShape::kThreeInput, three, 64, 512);
    expect_same(dst.read(), {pairs.a, pairs.b}, "dst = op(a, b)");
    for (const std::vector<Bytes> &terms :
         {std::vector<Bytes>{pairs.a, pairs.b}, {pairs.a, pairs.b, reversed}}) {
        ReduceInputs inputs = {{left, right, c.data()}, static_cast<std::int64_t>(terms.size())};
        ReduceOutputs outputs = {{to}, 1};
        Signal none;
        void *many[] = {&outputs, &inputs, &count, &none};
        launch(KernelShape::kManyInput, many, 3, 512); // as above
        expect_same(dst.read(), terms, "many inputs");
    }
}

std::string name_of(const ::testing::TestParamInfo<Reduction> &info)
{
    return std::string(op_name(info.param.first)) + "_" + element_name(info.param.second);
}
std::vector<Reduction> of_small_elements()
{
    std::vector<Reduction> reductions = test::defined_reductions();
    std::erase_if(reductions, [](const Reduction &one) { return element_bytes(one.second) > 2; });
    return reductions;
}
INSTANTIATE_TEST_SUITE_P(All, KernelTest, ::testing::ValuesIn(test::defined_reductions()), name_of);
INSTANTIATE_TEST_SUITE_P(All, SmallElementsTest, ::testing::ValuesIn(of_small_elements()), name_of);

// Kernels that say so in host memory when they are done. Nothing else synchronizes: what a kernel
// wrote to host memory must be there when its flag is.
class SignalTest : public ::testing::Test {
protected:
    static constexpr std::size_t kMostBytes = 1 << 20;

    void SetUp() override
    {
        gpu_ = Gpu::open();
        if (gpu_ == nullptr) {
            GTEST_SKIP() << "no GPU, and no emulated one on LD_LIBRARY_PATH";
        }
        void *pinned = nullptr;
        gpu_->require(gpu_->driver->cuMemHostAlloc(&pinned, 2 * kMostBytes + 64, 0), "pinned");
        from_ = static_cast<unsigned char *>(pinned);
        to_ = from_ + kMostBytes;
        done_.flag = reinterpret_cast<std::uint32_t *>(to_ + kMostBytes);
        gpu_->require(gpu_->driver->cuMemAlloc(&arrived_, 4), "cuMemAlloc");
        gpu_->require(gpu_->driver->cuMemsetD8(arrived_, 0, 4), "cuMemsetD8");
        gpu_->require(gpu_->driver->cuCtxSynchronize(), "cuCtxSynchronize");
        done_.arrived = reinterpret_cast<std::uint32_t *>(arrived_);
    }
    void TearDown() override
    {
        if (gpu_ != nullptr) {
            gpu_->driver->cuMemFree(arrived_);
            gpu_->driver->cuMemFreeHost(from_);
        }
    }
    // Launches a kernel with this round's flag and waits for that alone.
    void launch_and_wait(CUfunction kernel, void **arguments, unsigned blocks, std::uint32_t round)
    {
        done_.value = round;
        gpu_->require(gpu_->driver->cuLaunchKernel(kernel, blocks, 1, 1, 512, 1, 1, 0, nullptr,
                                                   arguments, nullptr),
                      "cuLaunchKernel");
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (read_flag(done_.flag) != round) {
            ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "no flag from the kernel";
            std::this_thread::yield();
        }
    }

    std::unique_ptr<Gpu> gpu_;
    unsigned char *from_ = nullptr, *to_ = nullptr; // page-locked host memory
    CUdeviceptr arrived_ = 0;
    Signal done_;
};

TEST_F(SignalTest, AReductionIsInHostMemoryWhenItsFlagIs)
{
    const CUfunction kernel =
        gpu_->function(kernel_name(KernelShape::kManyInput, ReduceOp::kSum, ElementKind::kUint32));
    std::vector<std::uint32_t> numbers(kMostBytes / 4);
    for (std::uint32_t round = 1; round <= 200; ++round) {
        const unsigned blocks = 1 + round % 64; // one block takes no count
        std::size_t count = numbers.size() - round;
        std::fill(numbers.begin(), numbers.end(), round);
        std::memcpy(from_, numbers.data(), kMostBytes);
        ReduceInputs inputs = {{from_, from_, from_}, 3};
        ReduceOutputs outputs = {{to_}, 1};
        void *arguments[] = {&outputs, &inputs, &count, &done_};
        ASSERT_NO_FATAL_FAILURE(launch_and_wait(kernel, arguments, blocks, round));
        std::memcpy(numbers.data(), to_, count * 4);
        const auto end = numbers.begin() + static_cast<long>(count);
        ASSERT_EQ(std::count(numbers.begin(), end, 3 * round), static_cast<long>(count));
    }
}

TEST_F(SignalTest, ACopyIsInHostMemoryWhenItsFlagIs)
{
    const CUfunction kernel = gpu_->function(kCopyKernelName);
    for (std::uint32_t round = 1; round <= 200; ++round) {
        std::memset(from_, static_cast<int>(round), kMostBytes);
        std::memset(to_, 0, kMostBytes);
        void *to = to_ + round % 19, *from = from_ + round % 17;
        std::size_t bytes = kMostBytes - 20 - 5000 * round;
        void *arguments[] = {&to, &from, &bytes, &done_};
        ASSERT_NO_FATAL_FAILURE(launch_and_wait(kernel, arguments, 1 + round % 64, round));
        ASSERT_EQ(std::memcmp(to, from, bytes), 0);
        ASSERT_EQ(static_cast<unsigned char *>(to)[bytes], 0); // and nothing behind it
    }
}

} // namespace
} // namespace hetcoll
