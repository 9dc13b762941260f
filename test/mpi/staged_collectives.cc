// R1: every collective on device memory, blocking, nonblocking and persistent. Each must leave in
// its buffers, to the byte, what the same call leaves in host memory, which all_collectives checks.
// The tests also run them in place, with gaps, with other memory on other ranks or sides, many at
// once, in threads, and with a driver that fails. Arguments choose the tests.
#include "test/mpi/collective_calls.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::size_t kGuardBytes = 64;

// A buffer with guards, or MPI_IN_PLACE.
class Side {
public:
    Side(Program &program, Memory memory, const std::vector<char> &image)
        : program_(program), in_place_(image.empty())
    {
        Result<Buffer> made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(),
                                               memory, image.size());
        if (!made.ok()) {
            program.require(made.status());
        }
        buffer_ = std::move(*made);
        fill(image);
    }
    void fill(const std::vector<char> &image) const
    {
        program_.require(buffer_.write(0, image.data(), image.size()));
    }
    [[nodiscard]] std::vector<char> image() const
    {
        std::vector<char> bytes(buffer_.bytes());
        program_.require(buffer_.read(0, bytes.data(), bytes.size()));
        return bytes;
    }
    [[nodiscard]] void *pointer() const
    {
        return in_place_ ? MPI_IN_PLACE : buffer_.data() + kGuardBytes;
    }

private:
    Program &program_;
    bool in_place_;
    Buffer buffer_;
};

std::vector<char> image_of(std::ptrdiff_t bytes, int seed)
{
    if (bytes < 0) {
        return {};
    }
    std::vector<char> image(static_cast<std::size_t>(bytes) + 2 * kGuardBytes);
    std::vector<int> values(image.size() / sizeof(int) + 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<int>((i * 7 + static_cast<std::size_t>(seed) * 31) % 1000);
    }
    std::memcpy(image.data(), values.data(), image.size());
    return image;
}

struct Where {
    const char *name;
    Memory send, recv;
};

// The same call on host memory and on `where`: the same bytes, or the same error.
void compare(Program &p, const Collective &call, How how, const Where &where)
{
    const std::vector<char> send = image_of(call.send_bytes, p.rank() + 1),
                            recv = image_of(call.recv_bytes, p.rank() + 100);
    const Side host_send(p, Memory::kHost, send), host_recv(p, Memory::kHost, recv);
    const Side device_send(p, where.send, send), device_recv(p, where.recv, recv);
    const int rounds = how == How::kPersistent ? 3 : 1;
    const int expected = run(call, how, host_send.pointer(), host_recv.pointer(), rounds);
    const int got = run(call, how, device_send.pointer(), device_recv.pointer(), rounds);
    const char *in_place = call.send_bytes < 0 || call.recv_bytes < 0 ? " in place" : "";
    const std::string what = std::string(how_name(how)) + " " + call.name + in_place + " with " +
                             call.detail + ", " + where.name;
    p.check(got == expected, "error %d: %s", got, what.c_str());
    std::vector<char> result = device_recv.image(), expected_result = host_recv.image();
    if (call.result_bytes >= 0) {
        const std::size_t defined = kGuardBytes + static_cast<std::size_t>(call.result_bytes);
        result.resize(defined);
        expected_result.resize(defined);
    }
    p.check(result == expected_result, "wrong result: %s", what.c_str());
    p.check(device_send.image() == host_send.image(), "send buffer changed: %s", what.c_str());
}

void everything(Program &p, MPI_Comm comm, bool brief)
{
    const bool odd = p.rank() % 2 == 1;
    const Memory here = odd ? Memory::kHost : Memory::kDevice;
    const std::vector<Where> places = {
        {"on devices", Memory::kDevice, Memory::kDevice},
        {"from devices to the host", Memory::kDevice, Memory::kHost},
        {"from the host to devices", Memory::kHost, Memory::kDevice},
        {"on devices of some ranks", here, here},
        {"managed", Memory::kManaged, Memory::kManaged},
    };
    for (const int count : {1, 1001}) {
        for (const Collective &call : all_calls(comm, count)) {
            for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
                for (const Where &where : places) {
                    if (!brief || &where == places.data() || &where == &places[3]) {
                        compare(p, call, how, where);
                    }
                }
            }
        }
    }
}

// More than a chunk, and more than is pinned with coll_hetcoll_stage_pinned 1M.
void large(Program &p)
{
    for (const Collective &call : plain_calls(MPI_COMM_WORLD, 1'000'003)) {
        compare(p, call, How::kBlocking, {"on devices", Memory::kDevice, Memory::kDevice});
    }
}

void reduce_local(Program &p)
{
    const std::vector<char> in = image_of(4000, 1), inout = image_of(4000, 2);
    const Side host_in(p, Memory::kHost, in), host_inout(p, Memory::kHost, inout);
    const Side device_in(p, Memory::kDevice, in), device_inout(p, Memory::kDevice, inout);
    MPI_Reduce_local(host_in.pointer(), host_inout.pointer(), 1000, MPI_INT, MPI_SUM);
    MPI_Reduce_local(device_in.pointer(), device_inout.pointer(), 1000, MPI_INT, MPI_SUM);
    p.check(device_inout.image() == host_inout.image(), "Reduce_local");
}

// Each buffer is copied in its own context.
void two_devices(Program &p)
{
    auto other = Gpu::open(p.rank() + 1);
    if (!other.ok()) {
        p.require(other.status());
    }
    const std::vector<char> in = image_of(4000, p.rank()), garbage = image_of(4000, 77);
    Result<Buffer> made = Buffer::allocate(other->get(), Memory::kDevice, in.size());
    if (!made.ok()) {
        p.require(made.status());
    }
    p.require(made->write(0, in.data(), in.size()));
    p.gpu().driver().cuCtxSetCurrent(p.gpu().context());
    const Side host_in(p, Memory::kHost, in), host_out(p, Memory::kHost, garbage),
        device_out(p, Memory::kDevice, garbage);
    MPI_Scan(host_in.pointer(), host_out.pointer(), 1000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(made->data() + kGuardBytes, device_out.pointer(), 1000, MPI_INT, MPI_SUM,
             MPI_COMM_WORLD);
    p.check(device_out.image() == host_out.image(), "Scan from one device to another");
}

// Bytes that others write into the gaps of a type while a collective receives around them stay.
void gaps_are_left_alone(Program &p)
{
    constexpr int kRows = 100;
    MPI_Datatype column = MPI_DATATYPE_NULL;
    MPI_Type_vector(kRows, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    std::vector<int> both(2 * static_cast<std::size_t>(kRows)), want(both.size());
    for (std::size_t i = 0; i < both.size(); ++i) {
        want[i] = static_cast<int>(i) * 3;
        both[i] = p.rank() == 0 ? want[i] : -1;
    }
    std::vector<char> image(both.size() * sizeof(int) + 2 * kGuardBytes);
    std::memcpy(image.data() + kGuardBytes, both.data(), both.size() * sizeof(int));
    const Side matrix(p, Memory::kDevice, image);
    auto *first = static_cast<char *>(matrix.pointer());
    std::vector<MPI_Request> requests(2);
    MPI_Ibcast(first, 1, column, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(first + sizeof(int), 1, column, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    const std::vector<char> got = matrix.image();
    p.check(std::memcmp(got.data() + kGuardBytes, want.data(), want.size() * sizeof(int)) == 0,
            "two columns of one matrix at the same time");
    MPI_Type_free(&column);
}

// Open MPI issue 12045: a crash, because its nonblocking reductions read device memory.
void ireduce_in_a_loop(Program &p)
{
    const std::vector<char> send = image_of(4096, p.rank()), recv = image_of(4096, 50);
    const Side device_send(p, Memory::kDevice, send), device_recv(p, Memory::kDevice, recv);
    const Side host_send(p, Memory::kHost, send), host_recv(p, Memory::kHost, recv);
    MPI_Reduce(host_send.pointer(), host_recv.pointer(), 1024, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int round = 0; round < 50; ++round) {
        device_recv.fill(recv);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Ireduce(device_send.pointer(), device_recv.pointer(), 1024, MPI_INT, MPI_SUM, 0,
                    MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        p.check(device_recv.image() == host_recv.image(), "Ireduce, round %d", round);
    }
}

// Completed in another order than they were called, on each rank in another.
void many_at_once(Program &p)
{
    constexpr int kOutstanding = 64;
    std::vector<Side> sides;
    std::vector<MPI_Request> requests(kOutstanding, MPI_REQUEST_NULL);
    sides.reserve(kOutstanding);
    for (int i = 0; i < kOutstanding; ++i) {
        const int root = i % p.ranks();
        sides.emplace_back(p, Memory::kDevice,
                           image_of(100 * (i + 1), p.rank() == root ? i : 1000));
        MPI_Ibcast(sides.back().pointer(), 25 * (i + 1), MPI_INT, root, MPI_COMM_WORLD,
                   &requests[static_cast<std::size_t>(i)]);
    }
    for (int left = kOutstanding; left > 0; --left) {
        int index = -1;
        if (p.rank() % 2 == 0) {
            MPI_Waitany(kOutstanding, requests.data(), &index, MPI_STATUS_IGNORE);
        } else {
            index = left - 1;
            MPI_Wait(&requests[static_cast<std::size_t>(index)], MPI_STATUS_IGNORE);
        }
        const std::vector<char> got = sides[static_cast<std::size_t>(index)].image(),
                                want = image_of(100 * (index + 1), index);
        p.check(std::equal(got.begin() + kGuardBytes, got.end() - kGuardBytes,
                           want.begin() + kGuardBytes),
                "operation %d of many", index);
    }
}

// Every driver call that may fail, on one rank.
std::vector<std::string> all_faults()
{
    std::vector<std::string> faults = {"cuMemcpyAsync:+1:999,cuMemcpy:+1:999",
                                       "cuMemcpyAsync:+2:999,cuMemcpy:+1:999"};
    for (const char *name : {
#define HETCOLL_CALL_NAME(name) #name,
             HETCOLL_DRIVER_CALLS(HETCOLL_CALL_NAME)
#undef HETCOLL_CALL_NAME
         }) {
        for (const char *when : {":1:999", ":2:999", ":+1:999"}) {
            faults.push_back(std::string(name) + when);
        }
    }
    return faults;
}

// One call in which one rank has faults. That rank alone may return an error, and nobody waits for
// it. Where all ranks succeed the result is right. Returns the rank's error.
int with_fault(Program &p, const Collective &call, How how, const std::string &fault, int victim,
               const std::vector<char> &want)
{
    const Emulated emulated;
    const Side send(p, Memory::kDevice, image_of(call.send_bytes, p.rank() + 1)),
        recv(p, Memory::kDevice, image_of(call.recv_bytes, p.rank() + 100));
    if (p.rank() == victim) {
        emulated.set_faults(fault.c_str());
    }
    int error = run(call, how, send.pointer(), recv.pointer(), 1);
    emulated.end_faults(p.gpu());
    const char *name = call.name;
    p.check(error == MPI_SUCCESS || p.rank() == victim, "error %d, of another rank: %s, %s", error,
            name, fault.c_str());
    int victims_error = error;
    MPI_Bcast(&victims_error, 1, MPI_INT, victim, MPI_COMM_WORLD);
    if (victims_error == MPI_SUCCESS) {
        p.check(call.result_bytes >= 0 || recv.image() == want, "wrong result, no error: %s %s, %s",
                how_name(how), name, fault.c_str());
    }
    return error;
}

void failing_copies(Program &p)
{
    p.gpu();
    if (!Emulated().present()) {
        return;
    }
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    // Open MPI 4.1's MPI_Wait takes this communicator's for requests of collectives.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (const Collective &call : plain_calls(comm, 500)) {
        const Side send(p, Memory::kHost, image_of(call.send_bytes, p.rank() + 1)),
            recv(p, Memory::kHost, image_of(call.recv_bytes, p.rank() + 100));
        static_cast<void>(run(call, How::kBlocking, send.pointer(), recv.pointer(), 1));
        const std::vector<char> want = recv.image();
        // All that can fail is the same for all collectives, so one of them meets everything.
        const bool one = std::strcmp(call.name, "Allgather") == 0;
        for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
            const std::vector<std::string> faults = all_faults();
            // A copy in that fails for good ends a job of several ranks, see lose_input().
            for (std::size_t i = p.ranks() > 1 ? 1 : 0; i < (one ? faults.size() : 2); ++i) {
                const int victim = static_cast<int>(i) % p.ranks();
                const int error = with_fault(p, call, how, faults[i], victim, want);
                p.check(i > 0 || p.ranks() == 1 || error != MPI_SUCCESS,
                        "%s %s without a copy succeeded", how_name(how), call.name);
            }
        }
        compare(p, call, How::kBlocking, {"after failures", Memory::kDevice, Memory::kDevice});
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

// R22: one rank cannot copy in what the others receive, and they do not agree: no rank succeeds,
// and none waits. The job ends before the call returns anywhere.
void lose_input(Program &p, std::string_view name, How how)
{
    p.gpu();
    const MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (const Collective &call : plain_calls(comm, 500)) {
        if (call.name != name) {
            continue;
        }
        const Side send(p, Memory::kDevice, image_of(call.send_bytes, p.rank() + 1)),
            recv(p, Memory::kDevice, image_of(call.recv_bytes, p.rank() + 100));
        if (p.rank() == p.ranks() - 1) { // the root of those that have one
            Emulated().set_faults("cuMemcpyAsync:+1:999,cuMemcpy:+1:999");
        }
        const int error = run(call, how, send.pointer(), recv.pointer(), 1);
        p.check(false, "%s %s returned %d without the data of a rank", how_name(how), call.name,
                error);
    }
}

// R22: of the larger vectors that the ranks agree about. Where a rank has host memory, all decline
// and stage. Whose copy in fails makes all ranks fail; a copy of a finished result fails that rank
// alone. Whoever succeeds has the right result.
void check_together(Program &p, const Collective &call, bool rank_0_on_host,
                    const std::string &fault, bool all_fail, const std::vector<char> &want)
{
    const Emulated emulated;
    const int victim = p.ranks() - 1; // the root of those that have one
    const Memory memory = rank_0_on_host && p.rank() == 0 ? Memory::kHost : Memory::kDevice;
    const Side send(p, memory, image_of(call.send_bytes, p.rank() + 1)),
        recv(p, memory, image_of(call.recv_bytes, p.rank() + 100));
    if (p.rank() == victim) {
        emulated.set_faults(fault.c_str());
    }
    const int error = run(call, How::kBlocking, send.pointer(), recv.pointer(), 1);
    emulated.set_faults("");
    const int failed = error != MPI_SUCCESS ? 1 : 0;
    int failures = 0, victim_failed = failed;
    MPI_Allreduce(&failed, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&victim_failed, 1, MPI_INT, victim, MPI_COMM_WORLD);
    const bool alone = failures == 1 && victim_failed != 0;
    p.check(failures == p.ranks() || (!all_fail && (failures == 0 || alone)),
            "%d of %d ranks fail: %s, %s", failures, p.ranks(), call.name, fault.c_str());
    p.check(failed != 0 || call.result_bytes < 0 || recv.image() == want,
            "wrong result, no error: %s, %s", call.name, fault.c_str());
}

std::vector<Collective> calls_together(MPI_Comm comm)
{
    constexpr int kCount = 70'000; // of each rank, 280 kB
    std::vector<Collective> calls = plain_calls(comm, kCount);
    std::erase_if(calls, [](const Collective &call) {
        const std::string name = call.name;
        return name != "Bcast" && name != "Reduce" && name != "Allgather" &&
               name != "Reduce_scatter_block";
    });
    return calls;
}

// The same call on host memory.
std::vector<char> wanted(Program &p, const Collective &call)
{
    const Side send(p, Memory::kHost, image_of(call.send_bytes, p.rank() + 1)),
        recv(p, Memory::kHost, image_of(call.recv_bytes, p.rank() + 100));
    static_cast<void>(run(call, How::kBlocking, send.pointer(), recv.pointer(), 1));
    return recv.image();
}

MPI_Comm new_comm()
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

void failing_together(Program &p)
{
    p.gpu();
    if (!Emulated().present() || p.ranks() < 2) {
        return;
    }
    MPI_Comm comm = new_comm();
    for (const Collective &call : calls_together(comm)) {
        const std::vector<char> want = wanted(p, call);
        const std::vector<std::string> faults = all_faults();
        for (std::size_t i = 0; i < faults.size(); ++i) {
            check_together(p, call, true, faults[i], i == 0, want);
        }
        check_together(p, call, true, "", false, want);
    }
    MPI_Comm_free(&comm);
}

// The driver calls that a rank makes in a call, each with how often.
using DriverCalls = std::vector<std::pair<std::string, std::uint64_t>>;

DriverCalls driver_calls()
{
    const Emulated emulated;
    return {
#define HETCOLL_CALL_NAME(name) {#name, emulated.calls(#name)},
        HETCOLL_DRIVER_CALLS(HETCOLL_CALL_NAME)
#undef HETCOLL_CALL_NAME
    };
}

// So many faults, drawn from calls, memory, the driver calls that the last rank makes there, times
// and codes, by the seed, and in new communicators and used ones.
void random_faults(Program &p, unsigned seed, long count)
{
    p.gpu();
    if (!Emulated().present() || p.ranks() < 2) {
        return;
    }
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t n) { return random() % n; };
    for (long i = 0; i < count; ++i) {
        MPI_Comm comm = new_comm();
        const std::vector<Collective> calls = calls_together(comm);
        const Collective &call = calls[below(calls.size())];
        const bool staged = below(2) == 0;
        const std::vector<char> want = wanted(p, call);
        DriverCalls made = driver_calls();
        check_together(p, call, staged, "", false, want);
        const DriverCalls after = driver_calls();
        for (std::size_t one = 0; one < made.size(); ++one) {
            made[one].second = after[one].second - made[one].second;
        }
        std::erase_if(made, [](const auto &one) { return one.second == 0; });
        if (made.empty()) { // what matters is the last rank's
            made.emplace_back("cuMemcpy", 1);
        }
        const auto &[name, times] = made[below(made.size())];
        static constexpr std::array kTimes = {1, 2, 5, 20, 0};
        const std::uint64_t nth =
            std::min(static_cast<std::uint64_t>(kTimes[below(kTimes.size())]), times);
        static constexpr std::array kCodes = {"2", "709", "999"};
        const std::string fault = name + (nth == 0 ? ":+1:" : ":" + std::to_string(nth) + ":") +
                                  kCodes[below(kCodes.size())];
        if (below(2) == 0) {
            MPI_Comm_free(&comm);
            comm = new_comm();
        }
        for (const Collective &again : calls_together(comm)) {
            if (again.name == std::string(call.name)) {
                check_together(p, again, staged, fault, false, want);
                check_together(p, again, staged, "", false, want);
                break;
            }
        }
        MPI_Comm_free(&comm);
    }
}

// Where something fails once there is another way, and the result is right.
void one_failure(Program &p)
{
    p.gpu();
    const Emulated emulated;
    if (!emulated.present()) {
        return;
    }
    for (const Collective &call : plain_calls(MPI_COMM_WORLD, 500)) {
        for (const char *fault : {"cuMemHostAlloc:+1:2", "cuStreamCreateWithPriority:+1:999",
                                  "cuMemcpyAsync:1:999", "cuEventRecord:1:999"}) {
            emulated.set_faults(fault);
            compare(p, call, How::kBlocking, {fault, Memory::kDevice, Memory::kDevice});
            emulated.set_faults("");
        }
    }
}

// Four threads, each with its own communicator.
void threads(Program &p)
{
    constexpr int kThreads = 4, kRounds = 8;
    p.gpu();
    std::vector<std::thread> running;
    for (int i = 0; i < kThreads; ++i) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        running.emplace_back([&p, comm] {
            p.gpu().driver().cuCtxSetCurrent(p.gpu().context());
            for (int round = 0; round < kRounds; ++round) {
                for (const Collective &call : plain_calls(comm, 100 + round)) {
                    for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
                        compare(p, call, how, {"in a thread", Memory::kDevice, Memory::kDevice});
                    }
                }
            }
        });
    }
    for (std::thread &thread : running) {
        thread.join();
    }
}

// The program answers MPIX_Query_cuda_support() for Open MPI, below: then reductions are staged,
// and of the rest only memory that its CUDA support would not take. The real Open MPI crashes on
// what is not staged.
void where_open_mpi_is_cuda_aware(Program &p)
{
    for (const Collective &call : plain_calls(MPI_COMM_WORLD, 300)) {
        const std::string name = call.name;
        const bool reduces = name.find("Reduce") == 0 || name == "Scan" || name == "Exscan";
        const Memory memory = reduces ? Memory::kDevice : Memory::kManaged;
        for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
            compare(p, call, how, {"as if CUDA-aware", memory, memory});
        }
    }
}

bool chosen(int argc, char **argv, const char *test)
{
    return argc < 2 || std::find(argv + 1, argv + argc, std::string(test)) != argv + argc;
}

} // namespace
} // namespace hetcoll::test

// In place of Open MPI's, which its internals do not use.
extern "C" int MPIX_Query_cuda_support(void)
{
    return std::getenv("HETCOLL_TEST_CUDA_AWARE") != nullptr ? 1 : 0;
}

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const bool with_threads = argc >= 2 && chosen(argc, argv, "threads");
    Program program(argc, argv, "staged_collectives",
                    with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (with_threads) {
        threads(program);
    }
    if (argc >= 2 && chosen(argc, argv, "aware")) {
        where_open_mpi_is_cuda_aware(program);
    }
    if (chosen(argc, argv, "all")) {
        everything(program, MPI_COMM_WORLD, false);
        MPI_Comm half = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, program.rank() % 2, program.rank(), &half);
        everything(program, half, true);
        MPI_Comm_free(&half);
    }
    if (chosen(argc, argv, "more")) {
        large(program);
        reduce_local(program);
        two_devices(program);
        program.gpu().driver().cuCtxSetCurrent(program.gpu().context()); // closing one cleared it
        gaps_are_left_alone(program);
        ireduce_in_a_loop(program);
        many_at_once(program);
    }
    if (argc == 4 && chosen(argc, argv, "random")) {
        random_faults(program, static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)),
                      std::strtol(argv[3], nullptr, 10));
    }
    if (argc == 4 && std::strcmp(argv[1], "lost") == 0) {
        for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
            if (std::string_view(argv[3]) == how_name(how)) {
                lose_input(program, argv[2], how);
            }
        }
    }
    if (argc >= 2 && chosen(argc, argv, "faults")) {
        one_failure(program);
        failing_together(program);
        failing_copies(program);
    }
    return program.finish();
}
