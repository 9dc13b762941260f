#include "test/mpi/check.h"

#include "schedule/algorithm_rows.h"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace hetcoll::test {

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr char kGuard = '\x5a', kGarbage = '\xee';
constexpr long kShownFailures = 10; // of each rank

const char *text_of(const char *variable)
{
    const char *const text = std::getenv(variable);
    return text != nullptr ? text : "";
}

} // namespace

Program::Program(int &argc, char **&argv, const char *name, int thread_level) : name_(name)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    counters_ = std::make_unique<JobCounters>();
    names_ = std::make_unique<MpiNames>();
    check(provided >= thread_level, "thread level %d, wanted %d", provided, thread_level);
}

Program::~Program() = default;

const Gpu &Program::gpu()
{
    if (!gpu_) {
        Result<std::unique_ptr<Gpu>> opened = Gpu::open(rank_);
        if (!opened.ok()) {
            require(opened.status());
        }
        gpu_ = std::move(*opened);
    }
    return *gpu_;
}

bool Program::check(bool right, const char *format, ...)
{
    ++checks_;
    if (!right && failures_++ < kShownFailures) {
        std::array<char, 512> text{};
        std::va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text.data(), text.size(), format, arguments);
        va_end(arguments);
        std::printf("WRONG %s, rank %d of %d: %s\n", name_.c_str(), rank_, ranks_, text.data());
        std::fflush(stdout);
    }
    return right;
}

void Program::require(const Status &status)
{
    if (!status.ok()) {
        std::printf("BROKEN %s, rank %d of %d: %s\n", name_.c_str(), rank_, ranks_,
                    status.message().c_str());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

void Program::check_algorithm()
{
    std::string_view name = text_of("HETCOLL_TEST_ALGORITHM");
    if (name.empty()) {
        name = text_of("OMPI_MCA_coll_hetcoll_algorithm");
    }
    if (ranks_ == 1) { // it copies
        return;
    }
    const std::optional<hetcoll_counter> counter = counter_of(name);
    check(!counter || counters_->read()[*counter] > 0, "no call was served by %s",
          std::string(name).c_str());
}

int Program::summarise()
{
    check_algorithm();
    const std::array<long, 2> mine = {checks_.load(), failures_.load()};
    std::vector<long> all(2 * static_cast<std::size_t>(ranks_));
    MPI_Gather(mine.data(), 2, MPI_LONG, all.data(), 2, MPI_LONG, 0, MPI_COMM_WORLD);
    std::array<long, 2> sum = {0, 0};
    for (std::size_t i = 0; i < all.size(); ++i) {
        sum[i % 2] += all[i];
    }
    MPI_Bcast(sum.data(), 2, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank_ == 0 && sum[1] == 0) {
        std::printf("ok %s: %d ranks, %ld checks\n", name_.c_str(), ranks_, sum[0]);
    } else if (rank_ == 0) {
        std::printf("FAILED %s: %ld of %ld checks\n", name_.c_str(), sum[1], sum[0]);
    }
    std::fflush(stdout);
    counters_.reset();
    names_.reset();
    return sum[1] == 0 ? 0 : 1;
}

int Program::finish()
{
    const int exit_code = summarise();
    close_gpu();
    MPI_Finalize();
    return exit_code;
}

Emulated::Emulated() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
{
    if (library_ != nullptr) {
        calls_ = reinterpret_cast<decltype(calls_)>(dlsym(library_, "emulated_gpu_calls"));
        set_faults_ =
            reinterpret_cast<decltype(set_faults_)>(dlsym(library_, "emulated_gpu_set_faults"));
        hold_devices_ =
            reinterpret_cast<decltype(hold_devices_)>(dlsym(library_, "emulated_gpu_hold_devices"));
    }
}

void Emulated::end_faults(const Gpu &gpu) const
{
    set_faults("");
    CUcontext left = nullptr;
    while (gpu.driver().cuCtxPopCurrent(&left) == CUDA_SUCCESS) {
    }
    gpu.driver().cuCtxSetCurrent(gpu.context());
}

void *Emulated::find(const char *name) const
{
    return library_ != nullptr ? dlsym(library_, name) : nullptr;
}

std::optional<hetcoll_counter> counter_of_call(std::string_view algorithm, std::size_t bytes)
{
    const std::optional<Algorithm> found = find_algorithm(algorithm);
    const bool serves = found && (bytes > kSmallBytes ? *found != Algorithm::kHost
                                                      : contains(kSmallAlgorithms, *found));
    return serves ? counter_of(algorithm) : std::nullopt;
}

std::string describe(const Call &call)
{
    std::array<char, 200> text{};
    std::snprintf(text.data(), text.size(), "%s %s, %zu elements, %s%s%s, offsets %zu %zu",
                  element_name(call.pattern.kind), op_name(call.pattern.op), call.count,
                  call.in_place ? "in place in " : memory_name(call.send),
                  call.in_place ? "" : " to ", memory_name(call.recv), call.send_offset,
                  call.recv_offset);
    return text.data();
}

std::size_t Buffers::start(std::size_t offset) noexcept { return kGuardBytes + offset; }

Buffers::Buffers(Program &program, MPI_Comm comm, const Call &call)
    : program_(program), comm_(comm), call_(call),
      bytes_(call.count * element_bytes(call.pattern.kind))
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    const auto allocate = [&](Memory memory, std::size_t offset) {
        const Gpu *gpu = memory == Memory::kHost ? nullptr : &program_.gpu();
        const std::size_t bytes = start(offset) + bytes_ + kGuardBytes;
        if (memory == Memory::kDevice && call.device_memory != MemoryType::kPlain) {
            auto made = TestMemory::allocate(*gpu, call.device_memory, bytes);
            if (!made.ok()) {
                program_.require(made.status());
            }
            const std::shared_ptr<const TestMemory> memory_of_test = std::move(*made);
            return Buffer::borrow(*gpu, memory_of_test->data(), bytes, memory_of_test);
        }
        Result<Buffer> buffer = Buffer::allocate(gpu, memory, bytes);
        if (!buffer.ok()) {
            program_.require(buffer.status());
        }
        return std::move(*buffer);
    };
    if (!call.in_place) {
        send_ = allocate(call.send, call.send_offset);
    }
    recv_ = allocate(call.recv, call.recv_offset);
}

const void *Buffers::send() const
{
    return call_.in_place ? MPI_IN_PLACE : send_.data() + start(call_.send_offset);
}

void *Buffers::recv() const { return recv_.data() + start(call_.recv_offset); }

void Buffers::fill()
{
    const auto write = [&](const Buffer &buffer, std::size_t offset, bool input) {
        std::vector<char> image(buffer.bytes(), kGuard);
        if (input) {
            fill_input(call_.pattern, rank_, call_.count, image.data() + start(offset));
        } else {
            std::memset(image.data() + start(offset), kGarbage, bytes_);
        }
        program_.require(buffer.write(0, image.data(), image.size()));
    };
    if (!call_.in_place) {
        write(send_, call_.send_offset, true);
    }
    write(recv_, call_.recv_offset, call_.in_place);
}

int Buffers::reduce()
{
    return MPI_Allreduce(send(), recv(), static_cast<int>(call_.count),
                         program_.names().datatype(call_.pattern.kind),
                         program_.names().op(call_.pattern.op, call_.pattern.kind), comm_);
}

void Buffers::check_guards(const Buffer &buffer, std::size_t first, const char *which)
{
    std::vector<char> image(buffer.bytes());
    program_.require(buffer.read(0, image.data(), image.size()));
    std::size_t touched = 0;
    for (std::size_t i = 0; i < image.size(); ++i) {
        touched += (i < first || i >= first + bytes_) && image[i] != kGuard ? 1 : 0;
    }
    program_.check(touched == 0, "%zu bytes outside the %s buffer were written: %s", touched, which,
                   describe(call_).c_str());
}

bool Buffers::is_right()
{
    std::vector<char> result(bytes_);
    program_.require(recv_.read(recv_start(), result.data(), bytes_));
    return compare_result(call_.pattern, ranks_, call_.count, result.data()).wrong == 0;
}

void Buffers::check(bool compare_ranks)
{
    std::vector<char> result(bytes_);
    program_.require(recv_.read(recv_start(), result.data(), bytes_));
    const Mismatch mismatch = compare_result(call_.pattern, ranks_, call_.count, result.data());
    program_.check(mismatch.wrong == 0, "%zu elements wrong, the first at %zu: %s", mismatch.wrong,
                   mismatch.first, describe(call_).c_str());
    check_guards(recv_, recv_start(), "receive");
    if (!call_.in_place) {
        check_guards(send_, start(call_.send_offset), "send");
        std::vector<char> before(bytes_), after(bytes_);
        fill_input(call_.pattern, rank_, call_.count, before.data());
        program_.require(send_.read(start(call_.send_offset), after.data(), bytes_));
        const ElementKind kind = call_.pattern.kind; // a pair's padding may differ
        program_.check(checksum(kind, call_.count, before.data()) ==
                           checksum(kind, call_.count, after.data()),
                       "the send buffer changed: %s", describe(call_).c_str());
    }
    if (compare_ranks) {
        const std::uint64_t mine = checksum(call_.pattern.kind, call_.count, result.data());
        std::uint64_t of_rank0 = mine;
        MPI_Bcast(&of_rank0, 1, MPI_UINT64_T, 0, comm_);
        program_.check(mine == of_rank0, "other bits than on rank 0: %s", describe(call_).c_str());
    }
}

void check_allreduce(Program &program, MPI_Comm comm, const Call &call)
{
    Buffers buffers(program, comm, call);
    buffers.fill();
    const int result = buffers.reduce();
    if (program.check(result == MPI_SUCCESS, "MPI error %d: %s", result, describe(call).c_str())) {
        buffers.check();
    }
}

} // namespace hetcoll::test
