// seeds FIRST COUNT [--say]: deterministic runs of whole communicators. Engines of all ranks live
// in one process, over messages in memory and the emulated driver without threads (EMU_STEPPED). A
// seed decides all else: how many ranks on how many nodes and GPUs, their settings and calls, who
// goes on next, which message arrives, which copy or kernel runs, which driver call or message
// fails, who dies, and whether ranks are told, as under --with-ft. Each call ends with the right
// result or with an error; after that its buffers are the program's again, and nobody reads or
// writes them. Where nobody is told of a death or a lost message, calls may also wait for ever. A
// seed runs in a process of its own, so one that fails does so alone: seeds SEED 1 --say.
#include "engine/call/operation_queue.h"
#include "test/unit/engine_process.h"
#include "test/unit/memory_network.h"

#include "engine/call/operation.h"
#include "engine/communicator/engine.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

bool says = false;

class Random {
public:
    explicit Random(unsigned seed) : bits_(seed) {}
    // 0 to n - 1. Not a distribution of the library: these differ between libraries.
    unsigned below(unsigned n) { return static_cast<unsigned>(bits_() % n); }
    bool once_in(unsigned n) { return below(n) == 0; }
    template <class T, std::size_t n> const T &of(const std::array<T, n> &list)
    {
        return list[below(n)];
    }

private:
    std::mt19937 bits_;
};

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *format, ...)
{
    std::va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    std::fflush(stdout);
    _exit(1);
}

// ---- memory of the program ----

enum class Memory { kHost, kPinned, kDevice, kPool, kManaged };

// What the test itself asks of the driver. An injected fault that it meets is over then; false if
// the device is lost.
template <class Call> bool ask(Call call)
{
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (call() == CUDA_SUCCESS) {
            return true;
        }
        cuda().emulated_gpu_set_faults(nullptr);
    }
    return false;
}

struct Gpu {
    CUcontext context = nullptr;
    CUstream stream = nullptr; // of the test
    bool lost = false;
};

CUdeviceptr address_of(const std::vector<std::byte> &bytes)
{
    return reinterpret_cast<CUdeviceptr>(bytes.data());
}

class Buffer {
public:
    static constexpr std::size_t kGuard = 64;

    Buffer(Gpu &gpu, Memory memory, std::size_t bytes) : gpu_(gpu), memory_(memory), bytes_(bytes)
    {
        const Driver &driver = *cuda().driver;
        const std::size_t all = bytes + 2 * kGuard;
        switch (memory) {
        case Memory::kHost: break;
        case Memory::kPinned:
            use([&] { return driver.cuMemHostAlloc(reinterpret_cast<void **>(&start_), all, 0); });
            break;
        case Memory::kDevice: use([&] { return driver.cuMemAlloc(&start_, all); }); break;
        case Memory::kPool:
            use([&] { return cuda().cuMemAllocAsync(&start_, all, gpu.stream); });
            use([&] { return driver.cuStreamSynchronize(gpu.stream); });
            break;
        case Memory::kManaged:
            use([&] { return driver.cuMemAllocManaged(&start_, all, CU_MEM_ATTACH_GLOBAL); });
            break;
        }
        if (start_ == 0) { // as asked for, or because the device is lost
            memory_ = Memory::kHost;
            host_.resize(all);
            start_ = reinterpret_cast<CUdeviceptr>(host_.data());
        }
    }
    ~Buffer()
    {
        const Driver &driver = *cuda().driver;
        switch (memory_) {
        case Memory::kHost: break;
        case Memory::kPinned: use([&] { return driver.cuMemFreeHost(pointer(start_)); }); break;
        case Memory::kDevice:
        case Memory::kManaged: use([&] { return driver.cuMemFree(start_); }); break;
        case Memory::kPool: use([&] { return cuda().cuMemFreeAsync(start_, gpu_.stream); }); break;
        }
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    [[nodiscard]] std::byte *data() const { return reinterpret_cast<std::byte *>(start_) + kGuard; }
    [[nodiscard]] Memory memory() const { return memory_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    // All of it has that content now, and is expected to keep it.
    void fill(std::vector<std::byte> content)
    {
        content.resize(bytes_, std::byte{0xab});
        expected_.assign(bytes_ + 2 * kGuard, std::byte{0xcd});
        std::copy(content.begin(), content.end(), expected_.begin() + kGuard);
        if (memory_ == Memory::kHost) {
            std::copy(expected_.begin(), expected_.end(), host_.begin());
        } else {
            use([&] {
                return cuda().driver->cuMemcpyAsync(start_, address_of(expected_), expected_.size(),
                                                    gpu_.stream);
            });
            use([&] { return cuda().driver->cuStreamSynchronize(gpu_.stream); });
        }
    }
    // Empty if the device is lost.
    [[nodiscard]] std::vector<std::byte> read() const
    {
        if (memory_ == Memory::kHost) {
            return host_;
        }
        std::vector<std::byte> content(expected_.size());
        use([&] {
            return cuda().driver->cuMemcpyDtoHAsync(content.data(), start_, content.size(),
                                                    gpu_.stream);
        });
        use([&] { return cuda().driver->cuStreamSynchronize(gpu_.stream); });
        return gpu_.lost ? std::vector<std::byte>() : content;
    }
    // Whether it still has what fill() has put there, but for `undefined` bytes from `offset`.
    [[nodiscard]] bool has_kept(std::size_t offset = 0, std::size_t undefined = 0) const
    {
        const auto now = read();
        const std::size_t from = kGuard + offset, to = from + undefined;
        return now.empty() || (std::equal(now.begin(), now.begin() + from, expected_.begin()) &&
                               std::equal(now.begin() + to, now.end(), expected_.begin() + to));
    }
    // By its place behind data(). Requires that has_kept() is false.
    [[nodiscard]] std::size_t first_changed() const
    {
        const auto now = read();
        const auto pair = std::mismatch(now.begin(), now.end(), expected_.begin());
        return static_cast<std::size_t>(pair.first - now.begin()) - kGuard;
    }
    bool in_use = false;

private:
    template <class Call> void use(Call call) const
    {
        if (!gpu_.lost) {
            gpu_.lost =
                !ask([this] { return cuda().driver->cuCtxSetCurrent(gpu_.context); }) || !ask(call);
        }
    }

    Gpu &gpu_;
    Memory memory_;
    std::size_t bytes_;
    CUdeviceptr start_ = 0;
    std::vector<std::byte> host_, expected_;
};

// ---- what a seed makes ----

struct Type {
    hetcoll_kind kind;
    hetcoll_op op;
    std::size_t bytes;
};
constexpr std::array<Type, 5> kTypes = {{{HETCOLL_INT32, HETCOLL_SUM, 4},
                                         {HETCOLL_FLOAT32, HETCOLL_SUM, 4},
                                         {HETCOLL_UINT8, HETCOLL_MAX, 1},
                                         {HETCOLL_FLOAT64, HETCOLL_MIN, 8},
                                         {HETCOLL_INT64, HETCOLL_BXOR, 8}}};

struct PlannedCall {
    hetcoll_collective collective = HETCOLL_ALLREDUCE;
    Type type = kTypes[0];
    int root = 0;
    std::size_t count = 0;
    int communicator = 0;
    bool blocking = true;
    int differs = -1; // a rank that calls with another count
    unsigned salt = 0;
};

long number_of(const PlannedCall &call, int rank, std::size_t i)
{
    return static_cast<long>((i * 7 + static_cast<std::size_t>(rank) * 13 + call.salt) % 50);
}

std::vector<std::byte> as_bytes(const Type &type, const std::vector<long> &numbers)
{
    std::vector<std::byte> bytes(numbers.size() * type.bytes);
    std::byte *to = bytes.data();
    const auto put = [&to](auto number) {
        std::memcpy(to, &number, sizeof number);
        to += sizeof number;
    };
    for (const long number : numbers) {
        switch (type.kind) {
        case HETCOLL_INT32: put(static_cast<std::int32_t>(number)); break;
        case HETCOLL_FLOAT32: put(static_cast<float>(number)); break;
        case HETCOLL_UINT8: put(static_cast<std::uint8_t>(number)); break;
        case HETCOLL_FLOAT64: put(static_cast<double>(number)); break;
        default: put(static_cast<std::int64_t>(number)); break;
        }
    }
    return bytes;
}

long reduced(const PlannedCall &call, int ranks, std::size_t i)
{
    long result = number_of(call, 0, i);
    for (int rank = 1; rank < ranks; ++rank) {
        const long next = number_of(call, rank, i);
        switch (call.type.op) {
        case HETCOLL_SUM: result += next; break;
        case HETCOLL_MAX: result = std::max(result, next); break;
        case HETCOLL_MIN: result = std::min(result, next); break;
        default: result ^= next; break;
        }
    }
    return result;
}

template <class Number> std::vector<long> numbers(std::size_t first, std::size_t count, Number at)
{
    std::vector<long> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        all[i] = at(first + i);
    }
    return all;
}

// ---- a rank's call while it runs ----

struct Running {
    PlannedCall plan;
    std::size_t number = 0; // in the program of the ranks
    Buffer *send = nullptr, *recv = nullptr;
    std::vector<std::byte> input;    // of this rank
    std::vector<std::byte> expected; // in recv, from its start
    bool spoiled = false;            // the previous module got other numbers
    hetcoll_call call{};
    std::optional<Operation> operation;
};

struct Communicator {
    std::unique_ptr<MemoryNetwork> network;
    std::vector<std::unique_ptr<Engine>> engines;
    std::vector<std::unique_ptr<OperationQueue>> queues;
};

enum class Trouble { kNone, kDriver, kDeath, kMessage };

Trouble some_trouble(Random &random)
{
    if (random.once_in(3)) {
        return Trouble::kDriver;
    }
    if (random.once_in(8)) {
        return Trouble::kDeath;
    }
    return random.once_in(12) ? Trouble::kMessage : Trouble::kNone;
}

class Run {
public:
    explicit Run(unsigned seed);
    void go(); // to the end of all calls, or the program's

private:
    struct Rank {
        std::unique_ptr<Process> process;
        Gpu *gpu = nullptr;
        std::deque<std::unique_ptr<Buffer>> buffers;
        std::list<Running> running;
        std::size_t next = 0; // call of the program
        unsigned weight = 1, node = 0;
        bool dead = false;
    };

    void plan_calls();
    void make_communicators();
    void inject();
    void start_call(int rank);
    Buffer *buffer_for(int rank, Memory memory, std::size_t bytes);
    void end_calls(int rank);
    void check(int rank, Running &call);
    static void require_kept(int number, const Buffer &buffer);
    static void use_again(Buffer *buffer);
    [[nodiscard]] bool goes_on(int rank, const Running &call) const;
    [[nodiscard]] bool is_over() const;
    void break_later();
    [[nodiscard]] bool may_fail() const
    {
        return trouble_ == Trouble::kDriver || some_dead_ || network_fails_;
    }
    // Open MPI without fault tolerance tells nobody of a dead rank or a lost message.
    [[nodiscard]] bool may_hang() const { return !tolerant_ && (some_dead_ || network_fails_); }
    void check_alike();
    void say_where_ranks_are();

    unsigned seed_;
    Random random_;
    std::deque<Gpu> gpus_;
    std::deque<Rank> ranks_;
    std::deque<Communicator> communicators_;
    std::vector<PlannedCall> program_;
    std::vector<std::vector<int>> results_; // of each call: of each rank
    hetcoll_settings settings_ = default_settings();
    std::string algorithm_;
    const Trouble trouble_;
    const bool tolerant_; // ranks learn of it, each at its time, as under --with-ft
    bool network_fails_ = false, some_dead_ = false; // by now
    std::size_t last_turn_ = 0;
    std::vector<std::pair<std::size_t, int>> deaths_, network_faults_, breaks_;
    std::vector<std::pair<std::size_t, std::string>> driver_faults_;
    std::string about_;
};

constexpr int kNoResult = -1000000;
constexpr int kBroken = -75; // what a table says of a broken communicator

Run::Run(unsigned seed)
    : seed_(seed), random_(seed), trouble_(some_trouble(random_)), tolerant_(random_.once_in(2))
{
    constexpr std::array<int, 6> kRanks = {2, 2, 3, 3, 4, 5};
    constexpr std::array<const char *, 12> kAlgorithms = {
        "auto",   "auto", "recursive_doubling", "rabenseifner", "ring",   "one_shot", "two_shot",
        "leader", "tree", "hierarchical",       "copy_in",      "ordered"};
    const int ranks = random_.of(kRanks), devices = 1 + static_cast<int>(random_.below(ranks));
    settings_.algorithm = random_.of(kAlgorithms);
    settings_.chunk_bytes = random_.once_in(2) ? 4096 : 0;
    settings_.check = random_.once_in(4) ? HETCOLL_CHECK_OFF : HETCOLL_CHECK_ON;
    settings_.skew = random_.once_in(6);
    // A dead process's kernels die with it; here they are of this process, and would go on in
    // peers' memory.
    const bool maps = trouble_ != Trouble::kDeath && !random_.once_in(4);
    settings_.ipc = maps ? HETCOLL_IPC_AUTO : HETCOLL_IPC_NEVER;
    settings_.reproducible = random_.once_in(6);
    settings_.fixed_point = random_.once_in(6) ? 8 : 0;
    settings_.report_after = 0;
    if (random_.once_in(8)) {
        settings_.max_memory = 512ul << 10;
    }
    if (random_.once_in(8)) {
        settings_.small_limit = 0;
    }
    about_ = std::to_string(ranks) + " ranks, " + std::to_string(devices) + " GPUs, " +
             settings_.algorithm + (tolerant_ ? ", tolerant" : "");

    setenv("EMU_STEPPED", "1", 1);
    setenv("EMU_SEED", std::to_string(seed).c_str(), 1);
    setenv("EMU_NUM_DEVICES", std::to_string(devices).c_str(), 1);
    setenv("EMU_HOSTILE", random_.once_in(3) ? "0" : "waits,handles,contexts,errors,limits", 1);
    for (int device = 0; device < devices; ++device) {
        Gpu &gpu = gpus_.emplace_back();
        HETCOLL_REQUIRE(cuda().driver->cuDevicePrimaryCtxRetain(&gpu.context, device));
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(gpu.context));
        HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING));
    }
    for (const Gpu &gpu : gpus_) { // as IPC would between processes
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(gpu.context));
        for (const Gpu &other : gpus_) {
            if (&other != &gpu) {
                HETCOLL_REQUIRE(cuda().driver->cuCtxEnablePeerAccess(other.context, 0));
            }
        }
    }
    for (int rank = 0; rank < ranks; ++rank) {
        Rank &made = ranks_.emplace_back();
        made.process = make_process(settings_);
        made.gpu = &gpus_[static_cast<std::size_t>(rank % devices)];
        made.weight = random_.once_in(4) ? 1 : 20;
    }
    make_communicators();
    plan_calls();
}

void Run::make_communicators()
{
    const int ranks = static_cast<int>(ranks_.size());
    std::vector<hetcoll_facts> facts;
    for (Rank &rank : ranks_) {
        facts.push_back(rank.process->facts());
    }
    const unsigned nodes = random_.once_in(3) ? 2 : 1;
    for (int rank = 0; rank < ranks; ++rank) {
        const unsigned node = random_.below(nodes);
        ranks_[static_cast<std::size_t>(rank)].node = node;
        facts[static_cast<std::size_t>(rank)].identity.host += node;
        facts[static_cast<std::size_t>(rank)].identity.machine += node;
        about_ += rank == 0 ? ", on nodes " : " ";
        about_ += std::to_string(node);
    }
    const hetcoll_facts agreed = [&] {
        hetcoll_facts merged = facts[0];
        for (const hetcoll_facts &other : facts) {
            hetcoll_facts_merge(&merged, &other);
        }
        return merged;
    }();
    const int count = random_.once_in(3) ? 2 : 1;
    for (int made = 0; made < count; ++made) {
        Communicator &communicator = communicators_.emplace_back();
        communicator.network =
            std::make_unique<MemoryNetwork>(ranks, !random_.once_in(4), random_.below(1u << 30));
        communicator.network->allow_shorter(); // as MPI does
        communicator.network->has_one_thread();
        if (tolerant_) {
            communicator.network->may_break();
        }
        for (int rank = 0; rank < ranks; ++rank) {
            communicator.engines.push_back(
                std::make_unique<Engine>(*ranks_[static_cast<std::size_t>(rank)].process,
                                         communicator.network->rank(rank), agreed, facts));
            communicator.queues.push_back(std::make_unique<OperationQueue>());
        }
    }
}

void Run::plan_calls()
{
    constexpr std::array<std::size_t, 7> kCounts = {1, 3, 100, 2048, 5000, 12000, 40000};
    constexpr std::array<hetcoll_collective, 4> kOthers = {
        HETCOLL_BCAST, HETCOLL_REDUCE, HETCOLL_ALLGATHER, HETCOLL_REDUCE_SCATTER};
    const std::size_t ranks = ranks_.size();
    for (unsigned left = 1 + random_.below(6); left > 0; --left) {
        PlannedCall call;
        call.collective = random_.once_in(4) ? random_.of(kOthers) : HETCOLL_ALLREDUCE;
        call.type = random_.of(kTypes);
        call.root = static_cast<int>(random_.below(static_cast<unsigned>(ranks)));
        call.count = random_.of(kCounts);
        call.communicator =
            static_cast<int>(random_.below(static_cast<unsigned>(communicators_.size())));
        call.blocking = call.collective != HETCOLL_ALLREDUCE || random_.once_in(2);
        call.salt = random_.below(1000);
        if (call.collective != HETCOLL_ALLREDUCE) {
            call.count *= ranks;
        }
        program_.push_back(call);
    }
    if (settings_.check == HETCOLL_CHECK_ON && random_.once_in(20)) {
        program_.back().differs = static_cast<int>(random_.below(static_cast<unsigned>(ranks)));
    }
    results_.assign(program_.size(), std::vector<int>(ranks, kNoResult));

    if (trouble_ == Trouble::kDriver) {
        constexpr std::array<const char *, 22> kCalls = {
            "cuMemAlloc",         "cuMemHostAlloc",         "cuMemcpyHtoDAsync",
            "cuMemcpyDtoHAsync",  "cuMemcpyDtoDAsync",      "cuMemcpyAsync",
            "cuLaunchKernel",     "cuEventRecord",          "cuEventQuery",
            "cuEventCreate",      "cuStreamCreate",         "cuStreamCreateWithPriority",
            "cuStreamWaitEvent",  "cuStreamQuery",          "cuIpcGetMemHandle",
            "cuIpcOpenMemHandle", "cuPointerGetAttributes", "cuPointerGetAttribute",
            "cuCtxPushCurrent",   "cuModuleLoadData",       "cuMemAllocManaged",
            "cuCtxSetCurrent"};
        constexpr std::array<const char *, 5> kCodes = {"2", "700", "709", "719", "999"};
        const std::string nth =
            std::string(random_.once_in(4) ? "+" : "") + std::to_string(1 + random_.below(20));
        driver_faults_.emplace_back(random_.below(4000), std::string(random_.of(kCalls)) + ":" +
                                                             nth + ":" + random_.of(kCodes));
        about_ += ", " + driver_faults_.back().second + " at turn " +
                  std::to_string(driver_faults_.back().first);
    } else if (trouble_ == Trouble::kDeath) {
        deaths_.emplace_back(random_.below(20000),
                             random_.below(static_cast<unsigned>(ranks_.size())));
        about_ += ", rank " + std::to_string(deaths_.back().second) + " dies at turn " +
                  std::to_string(deaths_.back().first);
    } else if (trouble_ == Trouble::kMessage) {
        network_faults_.emplace_back(random_.below(10000), 1 + random_.below(10));
        about_ += ", a message fails";
    }
}

// What happens at this turn.
void Run::inject()
{
    const auto is_now = [this](const auto &event) { return event.first == last_turn_; };
    for (const auto &fault : driver_faults_) {
        if (is_now(fault)) {
            cuda().emulated_gpu_set_faults(fault.second.c_str());
        }
    }
    for (const auto &death : deaths_) {
        if (is_now(death)) {
            ranks_[static_cast<std::size_t>(death.second)].dead = some_dead_ = true;
            break_later();
        }
    }
    for (const auto &fault : network_faults_) {
        if (is_now(fault)) {
            network_fails_ = true;
            communicators_.front().network->fail_send(fault.second);
            break_later();
        }
    }
    for (const auto &broken : breaks_) {
        if (is_now(broken)) {
            for (Communicator &communicator : communicators_) {
                communicator.network->break_for(broken.second, kBroken);
                communicator.network->end_requests(broken.second);
            }
        }
    }
}

void Run::break_later()
{
    for (int rank = 0; tolerant_ && rank < static_cast<int>(ranks_.size()); ++rank) {
        breaks_.emplace_back(last_turn_ + random_.below(20000), rank);
    }
}

// One that an earlier call had, or a new one.
Buffer *Run::buffer_for(int number, Memory memory, std::size_t bytes)
{
    Rank &rank = ranks_[static_cast<std::size_t>(number)];
    for (const auto &known : rank.buffers) {
        if (!known->in_use && known->memory() == memory && known->bytes() >= bytes &&
            !random_.once_in(3)) {
            known->in_use = true;
            return known.get();
        }
    }
    rank.buffers.push_back(std::make_unique<Buffer>(*rank.gpu, memory, bytes));
    rank.buffers.back()->in_use = true;
    return rank.buffers.back().get();
}

void Run::start_call(int number)
{
    Rank &rank = ranks_[static_cast<std::size_t>(number)];
    const int ranks = static_cast<int>(ranks_.size());
    Running &made = rank.running.emplace_back();
    made.number = rank.next++;
    made.plan = program_[made.number];
    if (made.plan.differs == number) {
        made.plan.count += made.plan.collective == HETCOLL_ALLREDUCE ? 1 : ranks_.size();
    }
    const PlannedCall &plan = made.plan;
    const std::size_t share = plan.count / ranks_.size(),
                      first = share * static_cast<std::size_t>(number);
    const std::size_t bytes = plan.count * plan.type.bytes;

    const auto own = [&](std::size_t i) { return number_of(plan, number, i); };
    const auto of_root = [&](std::size_t i) { return number_of(plan, plan.root, i); };
    const auto sum = [&](std::size_t i) { return reduced(plan, ranks, i); };
    const auto of_owner = [&](std::size_t i) {
        return number_of(plan, static_cast<int>(i / share), i);
    };
    const auto encoded = [&](const std::vector<long> &of) { return as_bytes(plan.type, of); };

    // Mostly all on the GPU; programs mix.
    const bool mixed = (plan.salt % 4) == 0;
    const Memory memory = mixed ? static_cast<Memory>(random_.below(5))
                                : (plan.salt % 16 == 1 ? Memory::kHost : Memory::kDevice);
    const bool in_place = random_.once_in(2);
    const bool is_root = plan.root == number;

    std::size_t send_bytes = bytes, recv_bytes = bytes;
    switch (plan.collective) {
    case HETCOLL_ALLREDUCE:
        made.input = encoded(numbers(0, plan.count, own));
        made.expected = encoded(numbers(0, plan.count, sum));
        break;
    case HETCOLL_BCAST:
        made.input = is_root ? encoded(numbers(0, plan.count, own)) : std::vector<std::byte>();
        made.expected = encoded(numbers(0, plan.count, of_root));
        break;
    case HETCOLL_REDUCE:
        made.input = encoded(numbers(0, plan.count, own));
        if (is_root) {
            made.expected = encoded(numbers(0, plan.count, sum));
        }
        break;
    case HETCOLL_ALLGATHER:
        made.input = encoded(numbers(first, share, own));
        made.expected = encoded(numbers(0, plan.count, of_owner));
        send_bytes = share * plan.type.bytes;
        break;
    case HETCOLL_REDUCE_SCATTER:
        made.input = encoded(numbers(0, plan.count, own));
        made.expected = encoded(numbers(first, share, sum));
        recv_bytes = share * plan.type.bytes;
        break;
    }
    const bool one_buffer = plan.collective == HETCOLL_BCAST || in_place;
    made.recv = buffer_for(number, memory, std::max(send_bytes, recv_bytes));
    made.send = made.recv;
    if (!one_buffer || (plan.collective == HETCOLL_REDUCE && !is_root)) {
        made.send = buffer_for(number, memory, std::max(send_bytes, recv_bytes));
        made.recv->fill({});
    }
    if (one_buffer && plan.collective == HETCOLL_ALLGATHER) { // each share where it belongs
        std::vector<std::byte> whole(first * plan.type.bytes, std::byte{0xee});
        whole.insert(whole.end(), made.input.begin(), made.input.end());
        made.send->fill(whole);
    } else {
        made.send->fill(made.input);
    }

    hetcoll_call &call = made.call;
    call.send = made.send->data();
    call.recv = made.recv->data();
    if (plan.collective == HETCOLL_REDUCE && !is_root) {
        call.recv = nullptr;
    }
    call.collective = plan.collective;
    call.root = plan.root;
    call.kind = plan.type.kind;
    call.op = plan.type.op;
    call.count = plan.count;
    call.span = bytes;
    call.dense = 1;
    call.tag = HETCOLL_TAGS;
    call.context = &made;
    if (plan.blocking && plan.collective == HETCOLL_ALLREDUCE) {
        // Open MPI's own would be given each rank's input, and gives each the sum.
        call.host_allreduce = [](void *context, const void *in, void *out) {
            Running &of = *static_cast<Running *>(context);
            of.spoiled = std::memcmp(in, of.input.data(), of.input.size()) != 0;
            std::memcpy(out, of.expected.data(), of.expected.size());
            return 0;
        };
    }
    Communicator &communicator = communicators_[static_cast<std::size_t>(plan.communicator)];
    made.operation.emplace(*communicator.engines[static_cast<std::size_t>(number)], call);
    communicator.queues[static_cast<std::size_t>(number)]->push(*made.operation);
    if (says) {
        std::printf("turn %zu: rank %d begins call %zu: collective %d, %zu elements, kind %d, op "
                    "%d, memory %d%s\n",
                    last_turn_, number, made.number, plan.collective, plan.count, plan.type.kind,
                    plan.type.op, static_cast<int>(memory), one_buffer ? ", in place" : "");
    }
}

void Run::check(int number, Running &call)
{
    const int result = call.operation->result();
    results_[call.number][static_cast<std::size_t>(number)] = result;
    if (says) {
        std::printf("turn %zu: rank %d ends call %zu: %d\n", last_turn_, number, call.number,
                    result);
    }
    const bool sends_and_receives = call.send == call.recv;
    if (!sends_and_receives && !call.send->has_kept()) {
        fail("call %zu changed rank %d's input", call.number, number);
    }
    if (result != HETCOLL_SUCCESS) {
        return;
    }
    if (call.spoiled) {
        fail("call %zu of rank %d: the previous module got other numbers, yet success", call.number,
             number);
    }
    const auto now = call.recv->read();
    const bool right = now.empty() || std::equal(call.expected.begin(), call.expected.end(),
                                                 now.begin() + Buffer::kGuard);
    if (!right) {
        fail("call %zu of rank %d: success with a wrong result", call.number, number);
    }
    if (!call.recv->has_kept(0, call.recv->bytes())) {
        fail("call %zu of rank %d wrote beside its buffer", call.number, number);
    }
}

// What the program has put into a buffer after a call is still there.
void Run::require_kept(int number, const Buffer &buffer)
{
    if (!buffer.in_use && !buffer.has_kept()) {
        const std::size_t byte = buffer.first_changed();
        fail("rank %d's buffer was written after its call: byte %zu, at %p", number, byte,
             static_cast<void *>(buffer.data() + byte));
    }
}

// The program's own numbers, in place of the call's.
void Run::use_again(Buffer *buffer)
{
    buffer->fill(std::vector<std::byte>(buffer->bytes(), std::byte{0x5a}));
    buffer->in_use = false;
}

// Whether peers go on with a call that has failed on this rank, because nobody has told them. They
// write to the program's memory by messages, if it is host memory, or by the GPUs of the node, if
// they have mapped it. The program never has it back, then. All else is over, and that is checked.
bool Run::goes_on(int number, const Running &call) const
{
    const unsigned node = ranks_[static_cast<std::size_t>(number)].node;
    const auto on_node = std::count_if(ranks_.begin(), ranks_.end(),
                                       [&](const Rank &rank) { return rank.node == node; });
    const int result = call.operation->result();
    const bool told = result == HETCOLL_SUCCESS || result == kBroken;
    const Memory memory = call.recv->memory();
    const bool on_host = memory == Memory::kHost || memory == Memory::kPinned;
    return (some_dead_ || network_fails_) && !told &&
           (on_host || (settings_.ipc != HETCOLL_IPC_NEVER && on_node > 1));
}

void Run::end_calls(int number)
{
    Rank &rank = ranks_[static_cast<std::size_t>(number)];
    for (auto call = rank.running.begin(); call != rank.running.end();) {
        if (!call->operation->is_complete()) {
            ++call;
            continue;
        }
        check(number, *call);
        if (!goes_on(number, *call)) {
            use_again(call->send);
            use_again(call->recv);
        }
        call->operation.reset();
        call = rank.running.erase(call);
    }
    if (random_.once_in(50)) {
        std::erase_if(rank.buffers, [&](const auto &buffer) {
            require_kept(number, *buffer);
            return !buffer->in_use;
        });
    }
}

bool Run::is_over() const
{
    return std::all_of(ranks_.begin(), ranks_.end(), [this](const Rank &rank) {
        return rank.dead || (rank.next == program_.size() && rank.running.empty());
    });
}

// All ranks agree whether a call has succeeded.
void Run::check_alike()
{
    for (std::size_t call = 0; call < program_.size(); ++call) {
        int good = 0, bad = 0;
        for (const int result : results_[call]) {
            good += result == HETCOLL_SUCCESS;
            bad += result != HETCOLL_SUCCESS && result != kNoResult;
        }
        if (bad > 0 && !may_fail() && program_[call].differs < 0) {
            const auto code = *std::find_if(results_[call].begin(), results_[call].end(),
                                            [](int result) { return result != 0; });
            if ((code != HETCOLL_DECLINED && code != HETCOLL_DECLINED_TO_STAGE) || good > 0) {
                fail("call %zu failed with %d, though nothing did", call, code);
            }
        }
        if (program_[call].differs >= 0 && good > 0 && !may_fail()) {
            fail("call %zu: ranks call differently, and %d of them succeed", call, good);
        }
    }
}

// What each rank has said in the last two meetings of each communicator.
void Run::say_where_ranks_are()
{
    for (std::size_t number = 0; number < ranks_.size(); ++number) {
        for (Communicator &communicator : communicators_) {
            NodeGroup &group = communicator.engines[number]->group();
            if (group.page().exists()) {
                const ControlPage::Slot &slot = group.own_slot();
                std::printf("rank %zu: %u meetings, said %x and %x\n", number,
                            static_cast<unsigned>(slot.arrived),
                            static_cast<unsigned>(slot.said[0]),
                            static_cast<unsigned>(slot.said[1]));
            }
        }
    }
    for (const std::string &line : take_log()) {
        std::printf("log: %s\n", line.c_str());
    }
}

void Run::go()
{
    constexpr std::size_t kMostTurns = 3000000, kQuiet = 300000;
    if (says) {
        std::printf("seed %u: %s\n", seed_, about_.c_str());
    }
    unsigned weights = 0;
    for (const Rank &rank : ranks_) {
        weights += rank.weight;
    }
    std::size_t ended_at = 0;
    std::size_t open = 0;
    while (!is_over()) {
        inject();
        if (random_.once_in(3)) {
            cuda().emulated_gpu_step();
        }
        if (random_.once_in(3)) {
            for (Communicator &communicator : communicators_) {
                const hetcoll_p2p table = communicator.network->rank(0);
                table.progress(table.context);
            }
        }
        unsigned pick = random_.below(weights);
        int number = 0;
        while (pick >= ranks_[static_cast<std::size_t>(number)].weight) {
            pick -= ranks_[static_cast<std::size_t>(number)].weight;
            ++number;
        }
        Rank &rank = ranks_[static_cast<std::size_t>(number)];
        if (!rank.dead) {
            cuda().driver->cuCtxSetCurrent(rank.gpu->context);
            const bool waits = !rank.running.empty() && rank.running.back().plan.blocking;
            if (rank.next < program_.size() && !waits && random_.once_in(20)) {
                start_call(number);
                cuda().driver->cuCtxSetCurrent(rank.gpu->context);
            }
            for (Communicator &communicator : communicators_) {
                communicator.queues[static_cast<std::size_t>(number)]->step();
            }
            end_calls(number);
        }
        std::size_t now_open = 0;
        for (const Rank &each : ranks_) {
            now_open += each.running.size() + program_.size() - each.next;
        }
        if (now_open != open) {
            open = now_open;
            ended_at = last_turn_;
        }
        ++last_turn_;
        if (last_turn_ - ended_at > kQuiet || last_turn_ > kMostTurns) {
            if (may_hang()) { // with calls that never end
                check_alike();
                std::_Exit(0);
            }
            say_where_ranks_are();
            fail("no call has begun or ended for %zu turns, %zu are open", last_turn_ - ended_at,
                 open);
        }
    }
    while (cuda().emulated_gpu_step() != 0) {
    }
    for (std::size_t number = 0; number < ranks_.size(); ++number) {
        for (const auto &buffer : ranks_[number].buffers) {
            require_kept(static_cast<int>(number), *buffer);
        }
    }
    check_alike();
    if (some_dead_) {
        std::_Exit(0);
    }
}

// True if the seed ends well.
bool run_alone(unsigned seed)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setenv("EMU_NODE", "seeds", 0);
        setenv("HWLOC_SYNTHETIC", "node:2 core:2 pu:1", 0); // the same on any machine
        alarm(120);
        {
            Run run(seed);
            run.go();
        }
        if (says) {
            std::printf("all right\n");
            for (const std::string &line : take_log()) {
                std::printf("log: %s\n", line.c_str());
            }
        }
        std::exit(0); // the emulated node goes with its last process
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
        if (WIFSIGNALED(status)) {
            std::printf("signal %d\n", WTERMSIG(status));
        }
        std::printf("FAILED  seed %u\n", seed);
    }
    return status == 0;
}

} // namespace
} // namespace hetcoll::test

// In place of libc's: a run has no chance of its own.
extern "C" ssize_t getrandom(void *buffer, std::size_t bytes, unsigned)
{
    static std::mt19937 bits;
    auto *const to = static_cast<unsigned char *>(buffer);
    std::generate_n(to, bytes, [] { return static_cast<unsigned char>(bits()); });
    return static_cast<ssize_t>(bytes);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        std::fprintf(stderr, "usage: seeds FIRST COUNT [--say]\n");
        return 2;
    }
    const auto first = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
    const auto count = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
    hetcoll::test::says = argc > 3 && std::strcmp(argv[3], "--say") == 0;
    if (hetcoll::test::says) { // also of a seed that hangs
        std::setvbuf(stdout, nullptr, _IOLBF, 0);
    }
    unsigned failed = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        failed += hetcoll::test::run_alone(seed) ? 0 : 1;
    }
    std::printf("%u passed, %u failed\n", count - failed, failed);
    return failed == 0 ? 0 : 1;
}
