// Calls in the order of a stream (include/hetcoll_stream.h): what the stream has written before is
// what is reduced, and what comes behind sees the result, without any wait of the host.
//
//   stream_order STREAM [WHAT...]   STREAM: nonblocking, blocking, legacy, perthread
//     all         (the default) chains of calls, every collective, captures
//     meanwhile   calls that wait for the device while a call is pending
//     holding     those that hold what other threads give a stream meanwhile
//     delays N    N calls: an event behind a call is never done before the result is there
//     mutant N    N calls on streams that do not wait: it has to be seen of every one
//     errors      a driver call fails: the stream goes on, and the error is told
//     plain       the calls are not queued: the same results
#include "cuda_kernels/reduction.h"
#include "include/hetcoll_stream.h"
#include "test/mpi/check.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// In test/mpi/stream_of_abi.c.
extern "C" int finds_functions_of_abi(void);

namespace hetcoll::test {
namespace {

using Bytes = std::vector<unsigned char>;

CUdeviceptr address(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

// A stream of the application, attached to a communicator.
class Attached {
public:
    Attached(Program &program, std::string_view kind, MPI_Comm comm, bool queued = true)
        : program_(program), comm_(comm)
    {
        const Driver &driver = program.gpu().driver();
        if (kind == "legacy") {
            stream_ = nullptr;
        } else if (kind == "perthread") {
            stream_ = CU_STREAM_PER_THREAD;
        } else {
            must(driver.cuStreamCreate(&stream_, kind == "blocking" ? CU_STREAM_DEFAULT
                                                                    : CU_STREAM_NON_BLOCKING),
                 "cuStreamCreate");
            made_ = true;
        }
        const int code = hetcoll_stream_attach(comm, stream_, std::size_t{4} << 20);
        program.check(code == MPI_SUCCESS, "attach: MPI error %d", code);
        program.check((hetcoll_stream_is_attached(comm, stream_) != 0) == queued,
                      "a stream that is %sattached", queued ? "not " : "");
    }
    ~Attached()
    {
        const int code = hetcoll_stream_detach(comm_, stream_);
        program_.check(code == MPI_SUCCESS, "detach: MPI error %d", code);
        if (made_) {
            driver().cuStreamDestroy(stream_);
        }
    }
    Attached(const Attached &) = delete;
    Attached &operator=(const Attached &) = delete;

    [[nodiscard]] CUstream stream() const noexcept { return stream_; }
    [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
    [[nodiscard]] const Driver &driver() const { return program_.gpu().driver(); }
    void must(CUresult result, const char *call) const
    {
        program_.require(driver_status(program_.gpu().driver(), result, call, "testing streams"));
    }
    void must_succeed(int code, const char *what) const
    {
        program_.check(code == MPI_SUCCESS, "%s: MPI error %d", what, code);
    }
    void fill(const void *at, unsigned char value, std::size_t bytes) const
    {
        must(driver().cuMemsetD8Async(address(at), value, bytes, stream_), "cuMemsetD8Async");
    }
    void copy(const void *to, const void *from, std::size_t bytes) const
    {
        must(driver().cuMemcpyAsync(address(to), address(from), bytes, stream_), "cuMemcpyAsync");
    }
    void synchronise() const
    {
        must(driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
        must_succeed(hetcoll_stream_check(comm_, stream_), "check");
    }

private:
    Program &program_;
    MPI_Comm comm_;
    CUstream stream_ = nullptr;
    bool made_ = false;
};

Buffer allocate(Program &program, std::size_t bytes, Memory memory = Memory::kDevice)
{
    auto made = Buffer::allocate(&program.gpu(), memory, bytes);
    program.require(made.status());
    return std::move(*made);
}

// Every byte of a word is `value`, which keeps sums of few ranks apart.
std::size_t wrong_bytes(const Buffer &buffer, std::size_t from, std::size_t bytes,
                        unsigned char value, Program &program)
{
    Bytes seen(bytes);
    program.require(buffer.read(from, seen.data(), bytes));
    std::size_t wrong = 0;
    for (const unsigned char byte : seen) {
        wrong += byte != value;
    }
    return wrong;
}

void expect(Program &program, const Buffer &buffer, std::size_t from, std::size_t bytes, int value,
            const char *what)
{
    const std::size_t wrong =
        wrong_bytes(buffer, from, bytes, static_cast<unsigned char>(value), program);
    program.check(wrong == 0, "%s: %zu of %zu bytes are not %d", what, wrong, bytes, value);
}

int sum_of_ranks(const Program &program, int each)
{
    return each * program.ranks() + program.ranks() * (program.ranks() - 1) / 2;
}

// Sums and copies in turn on one stream, which the host does not wait for: b becomes the sum, and a
// what b was; 100 calls are more than may be pending.
void chains(Program &program, const Attached &on)
{
    for (const std::size_t count : {1, 500, 3'000, 70'000, 300'000, 2'000'000}) {
        const std::size_t bytes = count * sizeof(int);
        const Buffer a = allocate(program, bytes), b = allocate(program, bytes);
        const int calls = count < 1'000 ? 100 : 12;
        for (int i = 0; i < calls; ++i) {
            const bool in_place = i % 3 == 2;
            on.fill(in_place ? b.data() : a.data(),
                    static_cast<unsigned char>(program.rank() + i % 7), bytes);
            on.must_succeed(hetcoll_allreduce_enqueue(in_place ? MPI_IN_PLACE : a.data(), b.data(),
                                                      static_cast<int>(count), MPI_INT, MPI_SUM,
                                                      on.comm(), on.stream()),
                            "allreduce");
            on.copy(a.data(), b.data(), bytes);
        }
        on.synchronise();
        const int last = sum_of_ranks(program, (calls - 1) % 7);
        expect(program, a, 0, bytes, last, "what the stream saw behind a call");
        expect(program, b, 0, bytes, last, "the result");
    }
}

void collectives(Program &program, const Attached &on)
{
    const int ranks = program.ranks(), rank = program.rank();
    for (const std::size_t share : {std::size_t{3}, std::size_t{60'000}}) { // ints
        const std::size_t one = share * sizeof(int), whole = one * static_cast<std::size_t>(ranks);
        const Buffer part = allocate(program, one), all = allocate(program, whole);
        const int count = static_cast<int>(share), total = count * ranks, root = ranks - 1;

        on.fill(all.data(), static_cast<unsigned char>(rank + 1), whole);
        on.must_succeed(
            hetcoll_bcast_enqueue(all.data(), total, MPI_INT, root, on.comm(), on.stream()),
            "bcast");
        on.synchronise();
        expect(program, all, 0, whole, root + 1, "bcast");

        on.fill(part.data(), static_cast<unsigned char>(rank + 5), one);
        on.must_succeed(hetcoll_allgather_enqueue(part.data(), count, MPI_INT, all.data(), count,
                                                  MPI_INT, on.comm(), on.stream()),
                        "allgather");
        on.synchronise();
        for (int from = 0; from < ranks; ++from) {
            expect(program, all, one * static_cast<std::size_t>(from), one, from + 5, "allgather");
        }

        on.fill(all.data(), static_cast<unsigned char>(rank + 2), whole);
        on.must_succeed(hetcoll_reduce_scatter_block_enqueue(all.data(), part.data(), count,
                                                             MPI_INT, MPI_SUM, on.comm(),
                                                             on.stream()),
                        "reduce_scatter_block");
        on.synchronise();
        expect(program, part, 0, one, sum_of_ranks(program, 2), "reduce_scatter_block");

        on.fill(part.data(), static_cast<unsigned char>(rank + 3), one);
        on.fill(all.data(), 0, one);
        on.must_succeed(hetcoll_reduce_enqueue(part.data(), all.data(), count, MPI_INT, MPI_SUM,
                                               root, on.comm(), on.stream()),
                        "reduce");
        on.synchronise();
        expect(program, all, 0, one, rank == root ? sum_of_ranks(program, 3) : 0, "reduce");
    }
}

// A blocking call, a nonblocking one and queued ones, in one order on all ranks.
void among_others(Program &program, const Attached &on)
{
    const std::size_t bytes = 40'000;
    const int count = static_cast<int>(bytes / sizeof(int));
    std::vector<Buffer> buffers;
    for (int i = 0; i < 4; ++i) {
        buffers.push_back(allocate(program, bytes));
        on.fill(buffers.back().data(), static_cast<unsigned char>(program.rank() + i), bytes);
    }
    on.synchronise();
    MPI_Request request = MPI_REQUEST_NULL;
    const auto queue = [&](int i) {
        on.must_succeed(hetcoll_allreduce_enqueue(MPI_IN_PLACE, buffers[i].data(), count, MPI_INT,
                                                  MPI_SUM, on.comm(), on.stream()),
                        "allreduce");
    };
    queue(0);
    MPI_Iallreduce(MPI_IN_PLACE, buffers[1].data(), count, MPI_INT, MPI_SUM, on.comm(), &request);
    queue(2);
    MPI_Allreduce(MPI_IN_PLACE, buffers[3].data(), count, MPI_INT, MPI_SUM, on.comm());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    on.synchronise();
    for (int i = 0; i < 4; ++i) {
        expect(program, buffers[i], 0, bytes, sum_of_ranks(program, i), "a call among others");
    }
}

// One rank's vector is host memory, or its input or result alone, so the others' kernels, which
// their streams have already, are not to run.
void host_memory_on_one(Program &program, const Attached &on)
{
    const Memory one = program.rank() == program.ranks() - 1 ? Memory::kHost : Memory::kDevice;
    for (const std::size_t bytes : {std::size_t{400}, std::size_t{200'000}}) {
        const int count = static_cast<int>(bytes / sizeof(int));
        const Buffer a = allocate(program, bytes, one), b = allocate(program, bytes);
        for (int i = 0; i < 4; ++i) { // in place, from there to device memory, and back
            const bool in_place = i < 2;
            const Buffer &from = i == 3 ? b : a, &to = i == 2 ? b : a;
            const auto value = static_cast<unsigned char>(program.rank() + i);
            program.require(from.write(0, Bytes(bytes, value).data(), bytes));
            on.must_succeed(hetcoll_allreduce_enqueue(in_place ? MPI_IN_PLACE : from.data(),
                                                      to.data(), count, MPI_INT, MPI_SUM, on.comm(),
                                                      on.stream()),
                            "allreduce");
            on.synchronise();
            expect(program, to, 0, bytes, sum_of_ranks(program, i), "host memory on one rank");
        }
    }
}

// Other code of the process, run while calls are pending: the device waits for them, so they
// must not wait for it.
void during_other_work(Program &program, const Attached &on)
{
    const std::size_t bytes = 1'000'000;
    const int count = static_cast<int>(bytes / sizeof(int));
    const Buffer a = allocate(program, bytes), b = allocate(program, bytes);
    const Buffer legacy = allocate(program, 4096);
    for (int i = 0; i < 5; ++i) {
        on.fill(a.data(), static_cast<unsigned char>(program.rank() + i), bytes);
        on.must_succeed(hetcoll_allreduce_enqueue(a.data(), b.data(), count, MPI_INT, MPI_SUM,
                                                  on.comm(), on.stream()),
                        "allreduce");
        // The legacy stream waits for blocking streams, and these for it.
        on.must(on.driver().cuMemsetD8Async(address(legacy.data()), 0, 4096, nullptr),
                "cuMemsetD8Async");
        const Buffer other =
            allocate(program, 4096); // may wait for the device, and so on the way out
        on.must(on.driver().cuCtxSynchronize(), "cuCtxSynchronize");
        expect(program, b, 0, bytes, sum_of_ranks(program, i), "alongside other work");
    }
    // A first call of another communicator, whose driver calls may wait.
    on.fill(a.data(), static_cast<unsigned char>(program.rank()), bytes);
    on.must_succeed(hetcoll_allreduce_enqueue(a.data(), b.data(), count, MPI_INT, MPI_SUM,
                                              on.comm(), on.stream()),
                    "allreduce");
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(on.comm(), &copy);
    const Buffer other = allocate(program, bytes);
    Bytes ones(bytes, 1);
    program.require(other.write(0, ones.data(), bytes));
    MPI_Allreduce(MPI_IN_PLACE, other.data(), count, MPI_INT, MPI_SUM, copy);
    MPI_Comm_free(&copy);
    on.synchronise();
    expect(program, other, 0, bytes, program.ranks(), "a new communicator's sum");
    expect(program, b, 0, bytes, sum_of_ranks(program, 0), "the call before it");
}

// Driver calls that wait for the device, and let no other thread give a stream anything meanwhile:
// so a pending call needs nothing more. The awaited work is over when they return.
void holding(Program &program, const Attached &on)
{
    const Driver &driver = on.driver();
    for (const std::size_t bytes : {std::size_t{4'000}, std::size_t{1'000'000}}) {
        const int count = static_cast<int>(bytes / sizeof(int));
        const Buffer a = allocate(program, bytes), b = allocate(program, bytes);
        const Buffer other = allocate(program, 4096);
        Bytes host(4096);
        CUdeviceptr memory = 0;
        void *locked = nullptr;
        CUmodule module = nullptr;
        const std::vector<std::pair<const char *, std::function<CUresult()>>> calls = {
            {"cuMemFree", [&] { return driver.cuMemFree(memory); }},
            {"cuMemFreeHost", [&] { return driver.cuMemFreeHost(locked); }},
            {"cuModuleLoadData", [&] { return driver.cuModuleLoadData(&module, kernel_image()); }},
            {"cuModuleUnload", [&] { return driver.cuModuleUnload(module); }},
            {"cuMemcpyDtoH",
             [&] { return driver.cuMemcpyDtoH(host.data(), address(other.data()), host.size()); }},
        };
        on.must(driver.cuMemAlloc(&memory, 4096), "cuMemAlloc");
        on.must(driver.cuMemHostAlloc(&locked, 4096, 0), "cuMemHostAlloc");
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const auto value = static_cast<unsigned char>(program.rank() + i);
            on.fill(a.data(), value, bytes);
            on.must_succeed(hetcoll_allreduce_enqueue(a.data(), b.data(), count, MPI_INT, MPI_SUM,
                                                      on.comm(), on.stream()),
                            calls[i].first);
            on.copy(a.data(), b.data(), bytes);
            on.must(calls[i].second(), calls[i].first);
            on.synchronise();
            expect(program, a, 0, bytes, sum_of_ranks(program, static_cast<int>(i)),
                   calls[i].first);
        }
    }
}

// A call on a captured stream is refused, and the capture goes on: on all ranks, or on rank 0
// alone, of which the others hear. Then calls are right again.
void captures(Program &program, const Attached &on, const Emulated &emulated, bool all)
{
    const auto begin = reinterpret_cast<decltype(&::cuStreamBeginCapture)>(
        emulated.find("cuStreamBeginCapture_v2"));
    const auto end =
        reinterpret_cast<decltype(&::cuStreamEndCapture)>(emulated.find("cuStreamEndCapture"));
    const auto destroy =
        reinterpret_cast<decltype(&::cuGraphDestroy)>(emulated.find("cuGraphDestroy"));
    if (begin == nullptr || on.stream() == nullptr) { // the legacy stream cannot be captured
        return;
    }
    const std::size_t bytes = 4'000;
    const Buffer a = allocate(program, bytes);
    const auto call = [&] {
        return hetcoll_allreduce_enqueue(MPI_IN_PLACE, a.data(), 1'000, MPI_INT, MPI_SUM, on.comm(),
                                         on.stream());
    };
    if (all || program.rank() == 0) {
        on.must(begin(on.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
        on.fill(a.data(), 1, bytes);
        const int code = call();
        program.check(code == MPI_ERR_OTHER, "a call on a capturing stream returns %d", code);
        CUgraph graph = nullptr;
        on.must(end(on.stream(), &graph), "cuStreamEndCapture");
        program.check(graph != nullptr, "the capture is gone");
        if (destroy != nullptr) {
            destroy(graph);
        }
    } else {
        int code = call();
        on.must(on.driver().cuStreamSynchronize(on.stream()), "cuStreamSynchronize");
        if (code == MPI_SUCCESS) { // it is queued
            code = hetcoll_stream_check(on.comm(), on.stream());
        }
        program.check(code == MPI_ERR_OTHER, "a call that another rank refuses returns %d", code);
    }
    on.fill(a.data(), static_cast<unsigned char>(program.rank() + 1), bytes);
    on.must_succeed(call(), "after a capture");
    on.synchronise();
    expect(program, a, 0, bytes, sum_of_ranks(program, 1), "after a capture");
}

// Calls on a few buffers in turn. The host looks at each as soon as the event behind its call is
// done, through a stream that is ordered with nothing.
class Delays {
public:
    Delays(Program &program, const Attached &on) : program_(program), on_(on)
    {
        on.must(on.driver().cuStreamCreate(&reader_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        for (Turn &turn : turns_) {
            turn.buffer = allocate(program, kBytes);
            turn.seen = allocate(program, kBytes, Memory::kPinned);
            on.must(on.driver().cuEventCreate(&turn.behind, CU_EVENT_DISABLE_TIMING),
                    "cuEventCreate");
        }
    }
    ~Delays()
    {
        for (Turn &turn : turns_) {
            on_.driver().cuEventDestroy(turn.behind);
        }
        on_.driver().cuStreamDestroy(reader_);
    }
    Delays(const Delays &) = delete;
    Delays &operator=(const Delays &) = delete;

    // How many results were not there.
    long run(long calls)
    {
        std::mt19937 random(static_cast<unsigned>(program_.rank() + 1));
        for (long i = 0; i < calls; ++i) {
            Turn &turn = turns_[static_cast<std::size_t>(i) % kTurns];
            look(turn);
            queue(turn, i);
            if (random() % 64 == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            }
        }
        for (Turn &turn : turns_) {
            look(turn);
        }
        return early_;
    }

    // The same, where rank 0 looks before any other rank calls: no result can be there.
    long run_ahead_of_others(long calls)
    {
        Turn &turn = turns_.front();
        int looked = 0;
        for (long i = 0; i < calls; ++i) {
            if (program_.rank() != 0) {
                MPI_Recv(&looked, 1, MPI_INT, 0, 0, on_.comm(), MPI_STATUS_IGNORE);
            }
            queue(turn, i);
            if (program_.rank() == 0) {
                look(turn);
                for (int other = 1; other < program_.ranks(); ++other) {
                    MPI_Send(&looked, 1, MPI_INT, other, 0, on_.comm());
                }
            }
            int one = 1; // behind the call, which uses the buffer still
            MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, on_.comm());
        }
        return early_;
    }

private:
    static constexpr int kCount = 16;
    static constexpr std::size_t kBytes = kCount * sizeof(int), kTurns = 8;
    struct Turn {
        Buffer buffer, seen;
        CUevent behind = nullptr;
        unsigned char value = 0;
        bool pending = false;
    };

    void queue(Turn &turn, long call)
    {
        turn.value = static_cast<unsigned char>(call % 50);
        on_.fill(turn.buffer.data(), static_cast<unsigned char>(program_.rank() + turn.value),
                 kBytes);
        on_.must_succeed(hetcoll_allreduce_enqueue(MPI_IN_PLACE, turn.buffer.data(), kCount,
                                                   MPI_INT, MPI_SUM, on_.comm(), on_.stream()),
                         "allreduce");
        on_.must(on_.driver().cuEventRecord(turn.behind, on_.stream()), "cuEventRecord");
        turn.pending = true;
    }

    void look(Turn &turn)
    {
        if (!turn.pending) {
            return;
        }
        turn.pending = false;
        CUresult state = CUDA_ERROR_NOT_READY;
        while ((state = on_.driver().cuEventQuery(turn.behind)) == CUDA_ERROR_NOT_READY) {
            std::this_thread::yield();
        }
        on_.must(state, "cuEventQuery");
        on_.must(on_.driver().cuMemcpyAsync(address(turn.seen.data()), address(turn.buffer.data()),
                                            kBytes, reader_),
                 "cuMemcpyAsync");
        on_.must(on_.driver().cuStreamSynchronize(reader_), "cuStreamSynchronize");
        const auto right = static_cast<unsigned char>(sum_of_ranks(program_, turn.value));
        for (std::size_t i = 0; i < kBytes; ++i) {
            if (static_cast<unsigned char>(turn.seen.data()[i]) != right) {
                ++early_;
                return;
            }
        }
    }

    Program &program_;
    const Attached &on_;
    CUstream reader_ = nullptr;
    std::array<Turn, kTurns> turns_;
    long early_ = 0;
};

// The driver fails in a call of one rank: all are told, nobody hangs.
void errors(Program &program, const Attached &on, const Emulated &emulated)
{
    const std::size_t bytes = 400'000;
    const int count = static_cast<int>(bytes / sizeof(int));
    const Buffer a = allocate(program, bytes);
    const auto queue = [&] {
        on.fill(a.data(), 1, bytes);
        return hetcoll_allreduce_enqueue(MPI_IN_PLACE, a.data(), count, MPI_INT, MPI_SUM, on.comm(),
                                         on.stream());
    };
    on.must_succeed(queue(), "a call before the error");
    on.synchronise();
    if (program.rank() == 0) {
        emulated.set_faults("cuLaunchKernel:*:1");
    }
    const int first = queue();
    on.must(on.driver().cuStreamSynchronize(on.stream()), "cuStreamSynchronize");
    emulated.set_faults("");
    const int second = hetcoll_stream_check(on.comm(), on.stream());
    const bool told = (first != MPI_SUCCESS) != (second != MPI_SUCCESS);
    program.check(told, "after an error the call returns %d, the check %d", first, second);
    program.check(hetcoll_stream_check(on.comm(), on.stream()) == MPI_SUCCESS,
                  "an error is told twice");
}

void all(Program &program, const Attached &on, const Emulated &emulated)
{
    chains(program, on);
    collectives(program, on);
    among_others(program, on);
    host_memory_on_one(program, on);
    captures(program, on, emulated, true);
    MPI_Comm_set_errhandler(on.comm(), MPI_ERRORS_RETURN);
    captures(program, on, emulated, false);
    MPI_Comm_set_errhandler(on.comm(), MPI_ERRORS_ARE_FATAL);
}

void run(Program &program, int argc, char **argv)
{
    const std::string_view stream = argc > 1 ? argv[1] : "nonblocking";
    const std::string_view what = argc > 2 ? argv[2] : "all";
    const long calls = argc > 3 ? std::atol(argv[3]) : 1'000;
    program.gpu();
    const Emulated emulated;
    const Attached on(program, stream, MPI_COMM_WORLD, what != "plain");
    program.check(finds_functions_of_abi() == 0,
                  "a program of the standard ABI gives its handles to hetcoll");
    if (what == "delays") {
        const long early = Delays(program, on).run(calls);
        program.check(early == 0, "%ld of %ld results were not there when the stream went on",
                      early, calls);
    } else if (what == "mutant") {
        const long early = Delays(program, on).run_ahead_of_others(calls);
        program.check(program.rank() != 0 || early == calls,
                      "of %ld calls that the stream did not wait for only %ld were seen", calls,
                      early);
    } else if (what == "meanwhile") {
        during_other_work(program, on);
    } else if (what == "holding") {
        holding(program, on);
    } else if (what == "errors") {
        errors(program, on, emulated);
    } else if (what == "plain") {
        chains(program, on);
        collectives(program, on);
    } else {
        all(program, on, emulated);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const bool alone = argc > 3 && std::string_view(argv[3]) == "single";
    Program program(argc, argv, "stream_order", alone ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    run(program, argc, argv);
    return program.finish();
}
