// coll_hetcoll_fixed_point 16: every sum of floats is the sum of the integers that stand for them,
// bit for bit, whatever the size, the memory, the algorithm and the nodes that the command line
// asks for. A float that has no such integer is an error on every rank. With "staged" the GPUs'
// kernels do not load; "range" tests the errors, "once" one of them, "differ" ranks with different
// settings.
#include "measure/buffer.h"
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr double kScale = 65536; // of 16 bits

// Within +-2^11: 8 ranks can add them in 31 bits.
template <class T> T number(std::size_t i, int rank)
{
    std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 40503u;
    bits ^= bits >> 31;
    bits *= 0x94d049bb133111ebu;
    const int exponent = static_cast<int>(bits % 30) - 20;
    const double value = std::ldexp(1.0 + static_cast<double>(bits >> 12) * 0x1p-52, exponent);
    return static_cast<T>((bits & 64) != 0 ? -value : value);
}

template <class T> std::vector<T> input(std::size_t count, int rank)
{
    std::vector<T> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = number<T>(i, rank);
    }
    return numbers;
}

template <class T> std::vector<T> sum(std::size_t count, int ranks)
{
    std::vector<T> result(count);
    for (std::size_t i = 0; i < count; ++i) {
        long long total = 0;
        for (int rank = 0; rank < ranks; ++rank) {
            total += std::llrint(static_cast<double>(number<T>(i, rank)) * kScale);
        }
        result[i] = static_cast<T>(total) / static_cast<T>(kScale);
    }
    return result;
}

enum class Where { kDevice, kHost, kMixed, kForeign, kBack };
constexpr Where kEverywhere[] = {Where::kDevice, Where::kHost, Where::kMixed, Where::kForeign,
                                 Where::kBack};
constexpr const char *kWhere[] = {"device", "host", "mixed", "device to host", "host to device"};
enum class How { kBlocking, kNonblocking, kPersistent };
constexpr const char *kHow[] = {"", ", nonblocking", ", persistent"};

class Sums {
public:
    Sums(Program &program, MPI_Comm comm) : program_(program), comm_(comm)
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &ranks_);
    }

    template <class T> void check(std::size_t count, Where where, bool in_place, How how)
    {
        const std::vector<T> mine = input<T>(count, rank_), wanted = sum<T>(count, ranks_);
        std::vector<T> got(count);
        const CounterValues before = program_.counters().read();
        const int code = call(mine, where, in_place, how, &got);
        check_served(count * sizeof(T), where, how, before);
        program_.check(code == MPI_SUCCESS &&
                           std::memcmp(got.data(), wanted.data(), count * sizeof(T)) == 0,
                       "%zu elements of %zu bytes on %d ranks, %s%s%s: not the sum of the integers",
                       count, sizeof(T), ranks_, kWhere[static_cast<int>(where)],
                       in_place ? ", in place" : "", kHow[static_cast<int>(how)]);
    }

    // The last rank's element in the middle has no integer.
    template <class T> void check_range(std::size_t count, Where where, How how, T bad)
    {
        std::vector<T> mine = input<T>(count, rank_), got(count);
        if (rank_ == ranks_ - 1) {
            mine[count / 2] = bad;
        }
        const int code = call(mine, where, false, how, &got);
        program_.check(code != MPI_SUCCESS, "%zu elements, %s: %g was added", count,
                       kWhere[static_cast<int>(where)], static_cast<double>(bad));
        check<T>(count, where, false, how); // and the next call is as if nothing had been
    }

    template <class T>
    int call(const std::vector<T> &mine, Where where, bool in_place, How how, std::vector<T> *got)
    {
        const std::size_t bytes = mine.size() * sizeof(T);
        const bool device = where == Where::kDevice || (where == Where::kMixed && rank_ % 2 == 0);
        const auto memory = [](bool on_device) {
            return on_device ? Memory::kDevice : Memory::kHost;
        };
        const Buffer send = allocate(memory(device || where == Where::kForeign), bytes);
        const Buffer recv = allocate(memory(device || where == Where::kBack), bytes);
        program_.require((in_place ? recv : send).write(0, mine.data(), bytes));
        const void *from = in_place ? MPI_IN_PLACE : static_cast<const void *>(send.data());
        const MPI_Datatype type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
        const int count = static_cast<int>(mine.size());
        int code = MPI_SUCCESS;
        if (how == How::kNonblocking) {
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Iallreduce(from, recv.data(), count, type, MPI_SUM, comm_, &request);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (how == How::kPersistent) {
            MPI_Request request = MPI_REQUEST_NULL;
            HETCOLL_ALLREDUCE_INIT(from, recv.data(), count, type, MPI_SUM, comm_, MPI_INFO_NULL,
                                   &request);
            for (int start = 0; start < 3 && code == MPI_SUCCESS; ++start) {
                program_.require((in_place ? recv : send).write(0, mine.data(), bytes));
                MPI_Start(&request);
                code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            MPI_Request_free(&request);
        } else {
            code = MPI_Allreduce(from, recv.data(), count, type, MPI_SUM, comm_);
        }
        program_.require(recv.read(0, got->data(), bytes));
        if (!in_place) {
            std::vector<T> after(mine.size());
            program_.require(send.read(0, after.data(), bytes));
            program_.check(std::memcmp(after.data(), mine.data(), bytes) == 0,
                           "the send buffer was changed");
        }
        return code;
    }

private:
    // A call that names an algorithm shows nothing if another one has served it. Parts of the job
    // may lack what it needs, and the first call finds out what all have.
    void check_served(std::size_t bytes, Where where, How how, const CounterValues &before)
    {
        const char *const algorithm = std::getenv("OMPI_MCA_coll_hetcoll_algorithm");
        if (algorithm == nullptr || where != Where::kDevice || how != How::kBlocking ||
            comm_ != MPI_COMM_WORLD) {
            return;
        }
        const CounterValues used = program_.counters().read() - before;
        const std::optional<hetcoll_counter> counter = counter_of_call(algorithm, bytes);
        program_.check(!counter || used[*counter] == 1, "%zu bytes on %d ranks: not served by %s",
                       bytes, ranks_, algorithm);
    }

    Buffer allocate(Memory memory, std::size_t bytes)
    {
        auto buffer = Buffer::allocate(&program_.gpu(), memory, bytes);
        program_.require(buffer.ok() ? Status() : buffer.take_status());
        return std::move(*buffer);
    }

    Program &program_;
    MPI_Comm comm_;
    int rank_ = 0, ranks_ = 0;
};

template <class T> void every_size(Program &program, MPI_Comm comm)
{
    Sums sums(program, comm);
    for (const std::size_t count : {std::size_t{1}, std::size_t{250}, std::size_t{2048},
                                    std::size_t{2051}, std::size_t{100'003}}) {
        for (const Where where : kEverywhere) {
            sums.check<T>(count, where, false, How::kBlocking);
            sums.check<T>(count, where, false, How::kNonblocking);
            sums.check<T>(count, where, false, How::kPersistent);
            if (where <= Where::kMixed) {
                sums.check<T>(count, where, true, How::kBlocking);
            }
        }
        sums.check<T>(count, Where::kDevice, true, How::kNonblocking);
        sums.check<T>(count, Where::kDevice, true, How::kPersistent);
    }
}

// Anything but a sum of floats is not changed.
void check_others(Program &program)
{
    double most = 1e30 * (program.rank() + 1);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    program.check(most == 1e30 * program.ranks(), "a maximum of large doubles: %g", most);
    long long whole = 1LL << 58;
    MPI_Allreduce(MPI_IN_PLACE, &whole, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    program.check(whole == (1LL << 58) * program.ranks(), "a sum of integers");
    double fraction = 0x1p-40;
    MPI_Reduce(program.rank() == 0 ? MPI_IN_PLACE : &fraction, &fraction, 1, MPI_DOUBLE, MPI_SUM, 0,
               MPI_COMM_WORLD);
    program.check(program.rank() != 0 || fraction == 0x1p-40 * program.ranks(), "MPI_Reduce");
}

void check_range(Program &program)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    Sums sums(program, MPI_COMM_WORLD);
    for (const std::size_t count : {std::size_t{7}, std::size_t{30'001}}) {
        for (const Where where : kEverywhere) {
            for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
                sums.check_range<float>(count, where, how, std::nanf(""));
                sums.check_range<float>(count, where, how, 40000.0f);
                sums.check_range<double>(count, where, how, -1e15);
                sums.check_range<double>(count, where, how,
                                         std::numeric_limits<double>::infinity());
            }
        }
    }
}

void run(Program &program, std::string_view what)
{
    if (what == "staged") {
        program.gpu();
        const Emulated emulated;
        emulated.set_faults(
            "cuModuleLoadData:*:209,cuModuleLoadDataEx:*:209,cuLibraryLoadData:*:209");
    }
    if (what == "once") {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        Sums(program, MPI_COMM_WORLD).check_range<float>(9, Where::kDevice, How::kBlocking, 1e9f);
        return;
    }
    if (what == "range") {
        check_range(program);
        return;
    }
    if (what == "differ") { // as floats: 2^-40 is 0 in 16 bits
        double fraction = 0x1p-40;
        MPI_Allreduce(MPI_IN_PLACE, &fraction, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        program.check(fraction == 0x1p-40 * program.ranks(), "not added as floats: %g", fraction);
        return;
    }
    check_allreduce(program, MPI_COMM_WORLD,
                    {{ElementKind::kInt32, ReduceOp::kSum, Values::kExact, 1}, 70'001});
    every_size<float>(program, MPI_COMM_WORLD);
    every_size<double>(program, MPI_COMM_WORLD);
    check_others(program);
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -program.rank(), &reversed);
    Sums(program, reversed).check<float>(5001, Where::kMixed, false, How::kBlocking);
    MPI_Comm_free(&reversed);
    Sums(program, MPI_COMM_SELF).check<float>(5001, Where::kDevice, false, How::kBlocking);
    Sums(program, MPI_COMM_SELF).check<float>(5001, Where::kHost, false, How::kNonblocking);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "";
    const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const bool other = what == "differ" && rank != nullptr && *rank == '1';
    setenv("OMPI_MCA_coll_hetcoll_fixed_point", other ? "20" : "16", 1);
    Program program(argc, argv, "fixed_point");
    run(program, what);
    program.close_gpu();
    return program.finish();
}
