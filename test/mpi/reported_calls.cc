// Calls that users of Open MPI, MPICH, UCX and libraries above them have reported as broken there.
// The argument chooses:
//   complex    complex numbers in views that begin at half an element's alignment
//   nan        MIN and MAX of NaN on one rank and of zeros of both signs: the same bits on all
//   unread     pointers that MPI does not read on this rank: null, freed, wild
//   local      MPI_Reduce_local of host, device and managed memory
//   scatter    reduce-scatter in place, of unequal and empty shares
//   bottom     absolute addresses: a type over two allocations, one of them perhaps in host memory
//   freed      types, operations and communicators that are freed while a call is under way
#include "measure/persistent.h"
#include "test/mpi/vector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>

namespace hetcoll::test {
namespace {

constexpr std::array<int, 4> kCounts = {1, 700, 9'001, 70'001};

int waited(int error, MPI_Request &request)
{
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
}

// ---- complex ----

template <class Real> std::complex<Real> complex_of(int rank, std::size_t i)
{
    const auto at = static_cast<int>(i % 12);
    return {static_cast<Real>(1 + (rank + at) % 3), static_cast<Real>((rank * 2 + at) % 4 - 1)};
}

template <class Real> std::complex<Real> complex_result(MPI_Op op, int upto, std::size_t i)
{
    std::complex<Real> result = complex_of<Real>(0, i);
    for (int rank = 1; rank < upto; ++rank) {
        const std::complex<Real> next = complex_of<Real>(rank, i);
        result = op == MPI_SUM ? result + next : result * next;
    }
    return result;
}

template <class Real>
void complex_calls(Program &program, MPI_Datatype type, MPI_Op op, int count, std::size_t before)
{
    using Number = std::complex<Real>;
    const int rank = program.rank(), ranks = program.ranks(), root = ranks / 2;
    std::vector<Number> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = complex_of<Real>(rank, i);
    }
    const Vector<Number> in(program, values, Memory::kDevice, before);
    const auto expect = [&](int upto, int error, const Vector<Number> &out, const char *what) {
        program.check(error == MPI_SUCCESS, "%s of complex numbers: error %d", what, error);
        if (upto > 0) {
            out.check([&](std::size_t i) { return complex_result<Real>(op, upto, i); }, what);
        }
    };
    const Vector<Number> out(program, values.size(), Memory::kDevice, before);
    const void *const from = in.data();
    MPI_Request request = MPI_REQUEST_NULL;
    expect(ranks, MPI_Allreduce(from, out.data(), count, type, op, MPI_COMM_WORLD), out,
           "Allreduce");
    expect(rank == root ? ranks : 0,
           MPI_Reduce(from, out.data(), count, type, op, root, MPI_COMM_WORLD), out, "Reduce");
    expect(rank + 1, MPI_Scan(from, out.data(), count, type, op, MPI_COMM_WORLD), out, "Scan");
    expect(rank, MPI_Exscan(from, out.data(), count, type, op, MPI_COMM_WORLD), out, "Exscan");
    expect(ranks,
           waited(MPI_Iallreduce(from, out.data(), count, type, op, MPI_COMM_WORLD, &request),
                  request),
           out, "Iallreduce");
    expect(
        rank,
        waited(MPI_Iexscan(from, out.data(), count, type, op, MPI_COMM_WORLD, &request), request),
        out, "Iexscan");
}

void complex_views(Program &program)
{
    for (const int count : kCounts) {
        for (MPI_Op op : {MPI_SUM, MPI_PROD}) {
            for (const bool half : {false, true}) {
                for (MPI_Datatype type :
                     {MPI_C_FLOAT_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_COMPLEX}) {
                    complex_calls<float>(program, type, op, count, half ? sizeof(float) : 0);
                }
                for (MPI_Datatype type :
                     {MPI_C_DOUBLE_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_DOUBLE_COMPLEX}) {
                    complex_calls<double>(program, type, op, count, half ? sizeof(double) : 0);
                }
            }
        }
    }
}

// ---- nan ----

template <class Real> void extremes(Program &program, MPI_Datatype type, MPI_Op op, int count)
{
    const auto ranks = static_cast<std::size_t>(program.ranks());
    const auto rank = static_cast<std::size_t>(program.rank());
    const auto is_special = [&](std::size_t i) { return i % (ranks + 2) < ranks; };
    std::vector<Real> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % (ranks + 2) == rank) {
            values[i] = std::numeric_limits<Real>::quiet_NaN();
        } else if (i % (ranks + 2) == ranks) {
            values[i] = rank % 2 == 0 ? Real{0} : -Real{0};
        } else {
            values[i] = static_cast<Real>(rank + i % 5);
        }
    }
    const Vector<Real> vector(program, values);
    MPI_Allreduce(MPI_IN_PLACE, vector.data(), count, type, op, MPI_COMM_WORLD);
    const std::vector<Real> result = vector.read();
    std::vector<Real> first = result;
    MPI_Bcast(first.data(), count, type, 0, MPI_COMM_WORLD);
    std::size_t from_nothing = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
        from_nothing += !is_special(i) && std::isnan(result[i]);
    }
    program.check(from_nothing == 0, "%zu of %d extremes of numbers are NaN", from_nothing, count);
    program.check(std::memcmp(result.data(), first.data(), result.size() * sizeof(Real)) == 0,
                  "other bits than on rank 0, of %d extremes", count);
}

void not_a_number(Program &program)
{
    for (const int count : kCounts) {
        for (MPI_Op op : {MPI_MIN, MPI_MAX}) {
            extremes<float>(program, MPI_FLOAT, op, count);
            extremes<double>(program, MPI_DOUBLE, op, count);
        }
    }
}

// ---- unread ----

// The calls of one root, with `stray` wherever this rank's buffer counts for nothing.
void unread_calls(Program &program, int count, int root, void *stray, bool blocking)
{
    const bool is_root = program.rank() == root;
    const int rank = program.rank(), ranks = program.ranks();
    const auto share = static_cast<std::size_t>(count);
    std::vector<int> values(share);
    std::iota(values.begin(), values.end(), rank);
    const Vector<int> one(program, values), all(program, share * static_cast<std::size_t>(ranks));
    void *const far = is_root ? all.data() : stray;
    MPI_Request request = MPI_REQUEST_NULL;
    const auto expect = [&](int error, const char *what) {
        program.check(error == MPI_SUCCESS, "%s next to %p: error %d", what, stray, error);
    };
    expect(blocking ? MPI_Reduce(one.data(), far, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD)
                    : waited(MPI_Ireduce(one.data(), far, count, MPI_INT, MPI_SUM, root,
                                         MPI_COMM_WORLD, &request),
                             request),
           "Reduce");
    if (is_root) {
        const std::vector<int> sums = all.read();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < share; ++i) {
            wrong += sums[i] != ranks * (ranks - 1) / 2 + ranks * static_cast<int>(i);
        }
        program.check(wrong == 0, "Reduce: %zu of %d sums are wrong", wrong, count);
    }
    expect(blocking
               ? MPI_Gather(one.data(), count, MPI_INT, far, count, MPI_INT, root, MPI_COMM_WORLD)
               : waited(MPI_Igather(one.data(), count, MPI_INT, far, count, MPI_INT, root,
                                    MPI_COMM_WORLD, &request),
                        request),
           "Gather");
    if (is_root) {
        all.check([&](std::size_t i) { return static_cast<int>(i / share + i % share); }, "Gather");
    }
    void *const to = is_root ? MPI_IN_PLACE : static_cast<void *>(one.data());
    expect(blocking ? MPI_Scatter(far, count, MPI_INT, to, count, MPI_INT, root, MPI_COMM_WORLD)
                    : waited(MPI_Iscatter(far, count, MPI_INT, to, count, MPI_INT, root,
                                          MPI_COMM_WORLD, &request),
                             request),
           "Scatter");
    one.check([&](std::size_t i) { return rank + static_cast<int>(i); }, "Scatter");
    expect(MPI_Allreduce(stray, nullptr, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "nothing");
    expect(MPI_Reduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD), "nothing");
    expect(MPI_Bcast(stray, 0, MPI_INT, root, MPI_COMM_WORLD), "nothing");
}

void unread(Program &program)
{
    std::optional<Vector<char>> gone(std::in_place, program, std::size_t{4} << 20);
    char *const freed = gone->data();
    gone.reset();
    const std::array<void *, 4> strays = {nullptr, freed, freed + 4097,
                                          reinterpret_cast<void *>(std::uintptr_t{0x10})};
    for (const int count : kCounts) {
        for (void *const stray : strays) {
            for (int root = 0; root < program.ranks(); ++root) {
                unread_calls(program, count, root, stray, true);
                unread_calls(program, count, root, stray, false);
            }
        }
    }
}

// ---- local ----

void local(Program &program)
{
    constexpr std::array<Memory, 3> kMemories = {Memory::kHost, Memory::kDevice, Memory::kManaged};
    for (const std::size_t count : {0, 1, 7, 2'401, 823'543}) {
        std::vector<float> in(count), inout(count + 1);
        for (std::size_t i = 0; i <= count; ++i) {
            inout[i] = static_cast<float>(3 * (i % 997));
            if (i < count) {
                in[i] = static_cast<float>(i % 1001);
            }
        }
        for (const Memory from : kMemories) {
            for (const Memory to : kMemories) {
                const Vector<float> a(program, in, from), b(program, inout, to);
                const int error = MPI_Reduce_local(a.data(), b.data(), static_cast<int>(count),
                                                   MPI_FLOAT, MPI_SUM);
                program.check(error == MPI_SUCCESS, "%s to %s memory: error %d", memory_name(from),
                              memory_name(to), error);
                b.check([&](std::size_t i) { return i < count ? in[i] + inout[i] : inout[i]; },
                        "MPI_Reduce_local");
            }
        }
    }
}

// ---- scatter ----

int scattered_value(int rank, std::size_t i) { return (rank + 1) * 7 + static_cast<int>(i % 1013); }

// In place: the input begins where the result does, and what lies behind it stays.
class Scattered {
public:
    Scattered(Program &program, std::vector<int> counts)
        : program_(program), counts_(std::move(counts)),
          first_(std::accumulate(counts_.begin(), counts_.begin() + program.rank(), std::size_t{})),
          own_(static_cast<std::size_t>(counts_[static_cast<std::size_t>(program.rank())])),
          input_(std::accumulate(counts_.begin(), counts_.end(), std::size_t{}) + kBehind),
          vector_(program, input_.size())
    {
        for (std::size_t i = 0; i < input_.size(); ++i) {
            input_[i] = i < input_.size() - kBehind ? scattered_value(program.rank(), i) : kMark;
        }
    }
    void run()
    {
        const bool equal = std::count(counts_.begin(), counts_.end(), counts_[0]) ==
                           static_cast<std::ptrdiff_t>(counts_.size());
        int *const at = vector_.data();
        MPI_Request request = MPI_REQUEST_NULL;
        fill();
        expect(
            MPI_Reduce_scatter(MPI_IN_PLACE, at, counts_.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        fill();
        expect(waited(MPI_Ireduce_scatter(MPI_IN_PLACE, at, counts_.data(), MPI_INT, MPI_SUM,
                                          MPI_COMM_WORLD, &request),
                      request));
        persistent(HETCOLL_PERSISTENT(Reduce_scatter)(MPI_IN_PLACE, at, counts_.data(), MPI_INT,
                                                      MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                                                      &request),
                   request);
        if (!equal) {
            return;
        }
        fill();
        expect(MPI_Reduce_scatter_block(MPI_IN_PLACE, at, counts_[0], MPI_INT, MPI_SUM,
                                        MPI_COMM_WORLD));
        fill();
        expect(waited(MPI_Ireduce_scatter_block(MPI_IN_PLACE, at, counts_[0], MPI_INT, MPI_SUM,
                                                MPI_COMM_WORLD, &request),
                      request));
        persistent(HETCOLL_PERSISTENT(Reduce_scatter_block)(MPI_IN_PLACE, at, counts_[0], MPI_INT,
                                                            MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                                                            &request),
                   request);
    }

private:
    static constexpr std::size_t kBehind = 16;
    static constexpr int kMark = 0x5a5a5a5a;

    void fill() const { vector_.write(input_); }
    void persistent(int error, MPI_Request &request)
    {
        program_.check(error == MPI_SUCCESS, "a persistent call: error %d", error);
        for (int round = 0; round < 3; ++round) {
            fill();
            expect(waited(MPI_Start(&request), request));
        }
        MPI_Request_free(&request);
    }
    void expect(int error) const
    {
        program_.check(error == MPI_SUCCESS, "a reduce-scatter of %zu: error %d", own_, error);
        const std::vector<int> got = vector_.read();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < own_; ++i) {
            int sum = 0;
            for (int rank = 0; rank < program_.ranks(); ++rank) {
                sum += scattered_value(rank, first_ + i);
            }
            wrong += got[i] != sum;
        }
        program_.check(wrong == 0, "%zu of %zu sums are wrong", wrong, own_);
        program_.check(std::equal(got.end() - kBehind, got.end(), input_.end() - kBehind),
                       "what lies behind the input has changed");
    }

    Program &program_;
    std::vector<int> counts_;
    std::size_t first_, own_;
    std::vector<int> input_;
    Vector<int> vector_;
};

void scatter(Program &program)
{
    const auto ranks = static_cast<std::size_t>(program.ranks());
    for (const int count : kCounts) {
        std::vector<int> counts(ranks, count);
        Scattered(program, counts).run();
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            counts[rank] = rank % 2 == 1 ? 0 : count + static_cast<int>(rank);
        }
        Scattered(program, counts).run();
        std::fill(counts.begin(), counts.end() - 1, 0);
        counts.back() = count;
        Scattered(program, counts).run();
    }
}

// ---- bottom ----

// Every second int, or each.
MPI_Datatype ints(int count, int stride)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_vector(count, 1, stride, MPI_INT, &made);
    return made;
}

MPI_Datatype over(const int *first, const int *second, MPI_Datatype each)
{
    const std::array<int, 2> ones = {1, 1};
    const std::array<MPI_Datatype, 2> types = {each, each};
    std::array<MPI_Aint, 2> at{};
    MPI_Get_address(first, &at[0]);
    MPI_Get_address(second, &at[1]);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(2, ones.data(), at.data(), types.data(), &made);
    MPI_Type_commit(&made);
    return made;
}

void absolute_bcast(Program &program, int count, int stride, Memory second)
{
    const auto places = static_cast<std::size_t>(count * stride);
    const Vector<int> a(program, places);
    const Vector<char> between(program, std::size_t{64} << 20);
    const Vector<int> b(program, places, second);
    MPI_Datatype each = ints(count, stride), both = over(a.data(), b.data(), each);
    std::vector<int> own(places);
    for (int root = 0; root < program.ranks(); ++root) {
        for (const bool blocking : {true, false}) {
            std::iota(own.begin(), own.end(), program.rank() * 1'000'000);
            a.write(own);
            b.write(own);
            MPI_Request request = MPI_REQUEST_NULL;
            const int error =
                blocking ? MPI_Bcast(MPI_BOTTOM, 1, both, root, MPI_COMM_WORLD)
                         : waited(MPI_Ibcast(MPI_BOTTOM, 1, both, root, MPI_COMM_WORLD, &request),
                                  request);
            program.check(error == MPI_SUCCESS, "Bcast of absolute addresses: error %d", error);
            const auto value = [&](std::size_t i) {
                const bool sent = i % static_cast<std::size_t>(stride) == 0;
                return (sent ? root : program.rank()) * 1'000'000 + static_cast<int>(i);
            };
            a.check(value, "the first part of a type");
            b.check(value, "the second part of a type");
        }
    }
    MPI_Type_free(&each);
    MPI_Type_free(&both);
}

MPI_Datatype at_address(const int *at, int count)
{
    MPI_Aint place = 0;
    MPI_Get_address(at, &place);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed(1, &count, &place, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
}

void absolute_alltoallw(Program &program, int count)
{
    const auto ranks = static_cast<std::size_t>(program.ranks()),
               share = static_cast<std::size_t>(count);
    std::vector<int> values(ranks * share);
    std::iota(values.begin(), values.end(), program.rank() * 1'000'000);
    const Vector<int> in(program, values), out(program, values.size());
    const std::vector<int> ones(ranks, 1), zeros(ranks, 0);
    std::vector<MPI_Datatype> from, to;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        from.push_back(at_address(in.data() + rank * share, count));
        to.push_back(at_address(out.data() + rank * share, count));
    }
    const auto check = [&](int error, const char *what) {
        program.check(error == MPI_SUCCESS, "%s of absolute addresses: error %d", what, error);
        out.check(
            [&](std::size_t i) {
                return static_cast<int>(i / share) * 1'000'000 + program.rank() * count +
                       static_cast<int>(i % share);
            },
            what);
        out.write(std::vector<int>(ranks * share, -1));
    };
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Alltoallw(MPI_BOTTOM, ones.data(), zeros.data(), from.data(), MPI_BOTTOM, ones.data(),
                        zeros.data(), to.data(), MPI_COMM_WORLD),
          "Alltoallw");
    check(waited(MPI_Ialltoallw(MPI_BOTTOM, ones.data(), zeros.data(), from.data(), MPI_BOTTOM,
                                ones.data(), zeros.data(), to.data(), MPI_COMM_WORLD, &request),
                 request),
          "Ialltoallw");
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        MPI_Type_free(&from[rank]);
        MPI_Type_free(&to[rank]);
    }
}

void bottom(Program &program)
{
    for (const int count : kCounts) {
        for (const Memory second : {Memory::kDevice, Memory::kHost, Memory::kManaged}) {
            absolute_bcast(program, count, 1, second);
            absolute_bcast(program, count, 2, second);
        }
        absolute_alltoallw(program, count);
    }
}

// ---- freed ----

constexpr int kSide = 4; // numbers of a matrix of 2 by 2
using Matrix = std::array<int, kSide>;

Matrix product(const Matrix &a, const Matrix &b)
{
    constexpr int kModulus = 10'007;
    return {(a[0] * b[0] + a[1] * b[2]) % kModulus, (a[0] * b[1] + a[1] * b[3]) % kModulus,
            (a[2] * b[0] + a[3] * b[2]) % kModulus, (a[2] * b[1] + a[3] * b[3]) % kModulus};
}

void multiply(void *in, void *inout, int *count, MPI_Datatype *)
{
    for (int i = 0; i < *count; ++i) {
        auto &to = static_cast<Matrix *>(inout)[i];
        to = product(static_cast<const Matrix *>(in)[i], to);
    }
}

Matrix matrix_of(int rank, std::size_t i)
{
    const auto at = static_cast<int>(i % 5'000);
    return {(rank * 3 + at) % 11 + 1, (rank + 2 * at) % 7, (rank * rank + at) % 5 + 1,
            (at + 5 * rank) % 13};
}

// Types and operations whose handles take the place of those just freed.
void make_others()
{
    std::array<MPI_Datatype, 20> types{};
    std::array<MPI_Op, 20> ops{};
    for (std::size_t i = 0; i < types.size(); ++i) {
        MPI_Type_contiguous(3 + static_cast<int>(i), MPI_CHAR, &types[i]);
        MPI_Type_commit(&types[i]);
        MPI_Op_create(multiply, 1, &ops[i]);
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
        MPI_Type_free(&types[i]);
        MPI_Op_free(&ops[i]);
    }
}

enum class Begun { kIallreduce, kIreduce, kIscan };

void freed_while(Program &program, Begun what, int count, Memory memory)
{
    std::vector<Matrix> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = matrix_of(program.rank(), i);
    }
    const Vector<Matrix> in(program, values, memory), out(program, values.size(), memory);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Type_contiguous(kSide, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op); // in the order of ranks
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const bool frees_comm = memory != Memory::kHost; // Open MPI 4.1.4's own calls need it
    MPI_Request request = MPI_REQUEST_NULL;
    const int root = program.ranks() - 1;
    int error = MPI_SUCCESS;
    switch (what) {
    case Begun::kIallreduce:
        error = MPI_Iallreduce(in.data(), out.data(), count, type, op, comm, &request);
        break;
    case Begun::kIreduce:
        error = MPI_Ireduce(in.data(), out.data(), count, type, op, root, comm, &request);
        break;
    case Begun::kIscan:
        error = MPI_Iscan(in.data(), out.data(), count, type, op, comm, &request);
        break;
    }
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    if (frees_comm) {
        MPI_Comm_free(&comm);
    }
    make_others();
    error = waited(error, request);
    if (!frees_comm) {
        MPI_Comm_free(&comm);
    }
    program.check(error == MPI_SUCCESS, "a call whose handles were freed: error %d", error);
    const int upto = what == Begun::kIscan ? program.rank() + 1 : program.ranks();
    if (what != Begun::kIreduce || program.rank() == root) {
        out.check(
            [&](std::size_t i) {
                Matrix result = matrix_of(upto - 1, i);
                for (int rank = upto - 2; rank >= 0; --rank) {
                    result = product(matrix_of(rank, i), result);
                }
                return result;
            },
            "a product of matrices");
    }
}

void freed(Program &program)
{
    for (const int count : kCounts) {
        for (const Memory memory : {Memory::kHost, Memory::kDevice}) {
            for (const Begun what : {Begun::kIallreduce, Begun::kIreduce, Begun::kIscan}) {
                freed_while(program, what, count, memory);
            }
        }
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::map<std::string, std::function<void(Program &)>> tests = {
        {"complex", complex_views}, {"nan", not_a_number}, {"unread", unread}, {"local", local},
        {"scatter", scatter},       {"bottom", bottom},    {"freed", freed},
    };
    Program program(argc, argv, "reported_calls");
    const auto found = tests.find(argc > 1 ? argv[1] : "");
    if (program.check(found != tests.end(), "which test?")) {
        found->second(program);
    }
    return program.finish();
}
