// Small vectors in device memory that the processor reads and writes itself. The first argument:
//   sizes WHO   around the limits, in place and not, at any alignment, of memory of all kinds
//   chosen      few bytes go by the processor by price, though GPUs are mapped
//   reuse       buffers that are freed, and others that are allocated where they were
//   requests    nonblocking and persistent operations
//   faults      GDRCopy's functions fail, each at every step of a buffer's first calls, on any rank
// WHO: on which ranks the processor has to have done so: all, none, or "not R".
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr int kCallsBefore = 8; // the ninth goes that way
constexpr std::size_t kReadLimit = 2'048, kFloat = sizeof(float);

Call sum_of(std::size_t count, std::uint32_t seed, bool in_place)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, seed},
            count,
            Memory::kDevice,
            Memory::kDevice,
            in_place};
}

void repeat(Program &program, const Call &call, int calls)
{
    Buffers buffers(program, MPI_COMM_WORLD, call);
    for (int i = 0; i < calls; ++i) {
        buffers.fill();
        program.check(buffers.reduce() == MPI_SUCCESS, "%s failed", describe(call).c_str());
        buffers.check(false);
    }
    buffers.check(); // all ranks have the same
}

struct Used {
    std::uint64_t reads, writes;
};
Used used(Program &program, const CounterValues &before)
{
    const CounterValues now = program.counters().read() - before;
    return {now[HETCOLL_CPU_READS], now[HETCOLL_CPU_WRITES]};
}

// Whether this rank has to take the path.
bool takes_it(const Program &program, std::string_view who)
{
    if (who.starts_with("not ")) {
        return std::to_string(program.rank()) != who.substr(4);
    }
    return who == "all";
}

void sizes(Program &program, std::string_view who)
{
    const std::array<std::size_t, 9> kCounts = {1,
                                                2,
                                                64,
                                                kReadLimit / kFloat - 1,
                                                kReadLimit / kFloat,
                                                kReadLimit / kFloat + 1,
                                                1'000,
                                                kSmallBytes / kFloat,
                                                2 * kSmallBytes / kFloat + 1};
    repeat(program, sum_of(1, 0, false), 2); // the ranks find out whose memory is within reach
    const bool takes = takes_it(program, who);
    std::uint32_t seed = 1;
    for (const bool in_place : {false, true}) {
        for (const std::size_t count : kCounts) {
            const CounterValues before = program.counters().read();
            repeat(program, sum_of(count, ++seed, in_place), kCallsBefore + 3);
            const Used now = used(program, before);
            const bool reads = takes && count * kFloat <= kReadLimit;
            const bool writes = takes && count * kFloat <= kSmallBytes;
            program.check(now.reads == (reads ? 3u : 0u) && now.writes == (writes ? 3u : 0u),
                          "%zu floats%s: the processor read %llu times and wrote %llu times", count,
                          in_place ? " in place" : "", static_cast<unsigned long long>(now.reads),
                          static_cast<unsigned long long>(now.writes));
        }
    }
    for (const Memory other : {Memory::kHost, Memory::kManaged}) { // results right, that is all
        Call call = sum_of(50, ++seed, false);
        (program.rank() % 2 == 0 ? call.send : call.recv) = other;
        repeat(program, call, kCallsBefore + 3);
    }
    Call odd{{ElementKind::kInt8, ReduceOp::kSum, Values::kExact, ++seed}, 37};
    odd.send_offset = 3, odd.recv_offset = 5;
    repeat(program, odd, kCallsBefore + 3);
}

void chosen(Program &program)
{
    repeat(program, sum_of(100'000, 0, false), 2); // the ranks find out and price
    const CounterValues before = program.counters().read();
    repeat(program, sum_of(64, 1, false), kCallsBefore + 3);
    const Used now = used(program, before);
    program.check(now.reads == 3, "the processor read %llu times",
                  static_cast<unsigned long long>(now.reads));
}

void reuse(Program &program)
{
    std::mt19937 random(7); // the same on all ranks
    const CounterValues before = program.counters().read();
    for (int round = 0; round < 60; ++round) {
        const std::size_t count = 1 + random() % (kReadLimit / kFloat);
        const bool in_place = random() % 2 == 0;
        // Sometimes in a block of its own, of which a stale view shows 0xDB.
        const bool large = random() % 2 == 0;
        Call call = sum_of(count, static_cast<std::uint32_t>(round), in_place);
        call.recv_offset = large ? std::size_t{3} << 20 : 0;
        call.send_offset = large && !in_place ? std::size_t{3} << 20 : call.recv_offset;
        repeat(program, call, 1 + static_cast<int>(random() % (2 * kCallsBefore)));
    }
    program.check(used(program, before).writes > 60, "the path was not taken");
}

void requests(Program &program)
{
    const CounterValues before = program.counters().read();
    std::vector<Buffers> buffers;
    std::vector<MPI_Request> persistent(4, MPI_REQUEST_NULL);
    buffers.reserve(persistent.size());
    const MPI_Op op = program.names().op(ReduceOp::kSum, ElementKind::kFloat32);
    std::vector<Call> calls;
    for (std::size_t i = 0; i < persistent.size(); ++i) {
        calls.push_back(sum_of(10 + 300 * i, static_cast<std::uint32_t>(i), i % 2 == 0));
        buffers.emplace_back(program, MPI_COMM_WORLD, calls[i]);
    }
    const auto send = [&](std::size_t i) {
        return calls[i].in_place ? MPI_IN_PLACE : buffers[i].send();
    };
    for (std::size_t i = 0; i < persistent.size(); ++i) {
        HETCOLL_ALLREDUCE_INIT(send(i), buffers[i].recv(), static_cast<int>(calls[i].count),
                               MPI_FLOAT, op, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent[i]);
    }
    const auto check_all = [&] {
        for (Buffers &one : buffers) {
            one.check(false);
            one.fill();
        }
    };
    for (Buffers &one : buffers) {
        one.fill();
    }
    for (int round = 0; round < 2 * kCallsBefore; ++round) {
        MPI_Startall(static_cast<int>(persistent.size()), persistent.data());
        MPI_Waitall(static_cast<int>(persistent.size()), persistent.data(), MPI_STATUSES_IGNORE);
        check_all();
        std::vector<MPI_Request> once(persistent.size());
        for (std::size_t i = 0; i < once.size(); ++i) {
            MPI_Iallreduce(send(i), buffers[i].recv(), static_cast<int>(calls[i].count), MPI_FLOAT,
                           op, MPI_COMM_WORLD, &once[i]);
        }
        MPI_Waitall(static_cast<int>(once.size()), once.data(), MPI_STATUSES_IGNORE);
        check_all();
    }
    for (MPI_Request &request : persistent) {
        MPI_Request_free(&request);
    }
    program.check(used(program, before).reads > 20, "the path was not taken");
}

// ---- Faults ----

void set_gdr_faults(const char *faults)
{
    void *const library = dlopen("libgdrapi.so.2", RTLD_NOW);
    const auto set =
        library == nullptr
            ? nullptr
            : reinterpret_cast<void (*)(const char *)>(dlsym(library, "emulated_gdr_set_faults"));
    if (set != nullptr) {
        set(faults);
    }
}

void faults(Program &program)
{
    constexpr std::array kFunctions = {"gdr_pin_buffer",      "gdr_map",
                                       "gdr_unmap",           "gdr_unpin_buffer",
                                       "gdr_copy_to_mapping", "gdr_copy_from_mapping"};
    std::uint32_t seed = 1;
    for (const char *const function : kFunctions) {
        for (const char *const when : {"1", "2", "3", "5", "+2"}) {
            for (int victim = 0; victim < program.ranks(); ++victim) {
                const bool in_place = ++seed % 2 == 0;
                const std::string fault = std::string(function) + ":" + when + ":22";
                set_gdr_faults(program.rank() == victim ? fault.c_str() : nullptr);
                repeat(program, sum_of(1 + seed % 600, seed, in_place), kCallsBefore + 5);
                set_gdr_faults(nullptr);
            }
        }
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "";
    Program program(argc, argv, "cpu_path", MPI_THREAD_MULTIPLE);
    program.gpu();
    if (what == "sizes") {
        sizes(program, argc > 2 ? argv[2] : "all");
    } else if (what == "chosen") {
        chosen(program);
    } else if (what == "reuse") {
        reuse(program);
    } else if (what == "requests") {
        requests(program);
    } else if (what == "faults") {
        faults(program);
    } else {
        program.check(false, "usage: cpu_path sizes WHO|chosen|reuse|requests|faults");
    }
    return program.finish();
}
