// R5: user-defined operations on two-byte types, such as Horovod's half. Those that hetcoll knows
// by the symbol of their function run in its kernels and have the function's bits; all others are
// staged and never called for a trial. The argument says what hetcoll knows: "known", "off",
// "differ" or "wrong".
#include "cuda_kernels/numbers.h"
#include "measure/buffer.h"
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

using Numbers = std::vector<std::uint16_t>;
using Function = MPI_User_function *;

constexpr std::size_t kSmall = 1'001, kLarge = 63'488; // elements, around coll_hetcoll_small_limit

class Library {
public:
    explicit Library(Program &program)
    {
        std::array<char, PATH_MAX> self{};
        const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
        std::string path(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
        path.resize(path.rfind('/') + 1);
        handle_ = dlopen((path + "user_functions.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ == nullptr) {
            program.require(error(Errc::kUnsupported, "%s", dlerror()));
        }
    }
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;
    ~Library() { dlclose(handle_); }

    [[nodiscard]] Function horovod(const char *name) const
    {
        const std::string length = std::to_string(std::strlen(name));
        return find("_ZN7horovod6common" + length + name + "EPvS1_PiPP15ompi_datatype_t");
    }
    [[nodiscard]] Function find(const std::string &symbol) const
    {
        return reinterpret_cast<Function>(dlsym(handle_, symbol.c_str()));
    }
    [[nodiscard]] long calls() const
    {
        return reinterpret_cast<long (*)()>(dlsym(handle_, "user_function_calls"))();
    }

private:
    void *handle_;
};

// The type and an operation, as Horovod makes them.
class Half {
public:
    explicit Half(Function function)
    {
        MPI_Type_contiguous(2, MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
        MPI_Op_create(function, 1, &op_);
    }
    Half(const Half &) = delete;
    Half &operator=(const Half &) = delete;
    ~Half()
    {
        MPI_Op_free(&op_);
        MPI_Type_free(&type_);
    }
    [[nodiscard]] MPI_Datatype type() const { return type_; }
    [[nodiscard]] MPI_Op op() const { return op_; }

private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op op_ = MPI_OP_NULL;
};

enum class How { kBlocking, kNonblocking, kPersistent };

void call(How how, void *buffer, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (how) {
    case How::kBlocking: MPI_Allreduce(MPI_IN_PLACE, buffer, count, type, op, comm); return;
    case How::kNonblocking:
        MPI_Iallreduce(MPI_IN_PLACE, buffer, count, type, op, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    case How::kPersistent:
        HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, buffer, count, type, op, comm, MPI_INFO_NULL,
                               &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        return;
    }
}

// In place, in device memory.
Numbers reduce(Program &program, MPI_Comm comm, const Numbers &mine, MPI_Datatype type, MPI_Op op,
               How how = How::kBlocking)
{
    auto buffer = Buffer::allocate(&program.gpu(), Memory::kDevice, 2 * mine.size());
    program.require(buffer.ok() ? Status() : buffer.take_status());
    program.require(buffer->write(0, mine.data(), 2 * mine.size()));
    call(how, buffer->data(), static_cast<int>(mine.size()), type, op, comm);
    Numbers result(mine.size());
    program.require(buffer->read(0, result.data(), 2 * result.size()));
    return result;
}

Numbers reduce(Program &program, MPI_Comm comm, const Numbers &mine, Function function)
{
    const Half half(function);
    return reduce(program, comm, mine, half.type(), half.op());
}

// What MPI makes of a user's function: inout = in op inout.
Numbers combine(Function function, const Numbers &lower, const Numbers &higher)
{
    Numbers in = lower, inout = higher;
    int count = static_cast<int>(in.size());
    MPI_Datatype type = MPI_BYTE;
    function(in.data(), inout.data(), &count, &type);
    return inout;
}

// Every finite half, or `count` of them, another rotation for every rank. Zeros are positive, so
// that the larger of two is one number.
Numbers finite_halves(std::size_t count, int rank, unsigned shift)
{
    Numbers all;
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        if ((bits & 0x7c00) != 0x7c00 && bits != 0x8000) {
            all.push_back(static_cast<std::uint16_t>(bits));
        }
    }
    Numbers numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = all[(i * 61 + static_cast<std::size_t>(rank) * shift) % all.size()];
    }
    return numbers;
}

// Two ranks at a time: with more the order of a sum is the algorithm's.
MPI_Comm make_pairs(const Program &program)
{
    MPI_Comm pair = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, program.rank() / 2, program.rank(), &pair);
    return pair;
}

constexpr std::array kHorovod = {"float16_sum", "float16_prod", "float16_min", "float16_max"};

std::uint64_t staged(const Program &program)
{
    return program.counters().read()[HETCOLL_CALLS_STAGED];
}

void finite_values_have_the_bits_of_the_function(Program &program, const Library &library)
{
    MPI_Comm pair = make_pairs(program);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(pair, &rank);
    MPI_Comm_size(pair, &ranks);
    const std::uint64_t before = staged(program);
    for (const char *name : kHorovod) {
        const Function function = library.horovod(name);
        for (const std::size_t count : {std::size_t{1}, kSmall, kLarge}) {
            for (const unsigned shift : {0u, 1u, 977u, 31'744u, 40'123u}) {
                const Numbers lower = finite_halves(count, 0, shift);
                const Numbers higher = finite_halves(count, 1, shift);
                const Numbers wanted = ranks == 2 ? combine(function, lower, higher) : lower;
                const Numbers got = reduce(program, pair, rank == 0 ? lower : higher, function);
                program.check(got == wanted, "%s of %zu halves, shifted by %u, has other bits",
                              name, count, shift);
            }
        }
    }
    program.check(staged(program) == before, "known operations are staged");
    MPI_Comm_free(&pair);
}

// As std::min(lower, higher) and std::max have it; a NaN is the canonical one.
std::uint16_t keep_first(bool max, std::uint16_t lower, std::uint16_t higher)
{
    const float a = widen(hetcoll::Half{lower}), b = widen(hetcoll::Half{higher});
    const bool second = max ? a < b : b < a;
    const std::uint16_t kept = second ? higher : lower;
    return (kept & 0x7fff) > 0x7c00 ? std::uint16_t{0x7fff} : kept;
}

void nan_and_zeros_of_the_lower_rank_stay(Program &program, const Library &library)
{
    constexpr std::array<std::uint16_t, 10> kSpecial = {0x7fff, 0x7e00, 0x7c01, 0xfe00, 0x0000,
                                                        0x8000, 0x7c00, 0xfc00, 0x3c00, 0xbc00};
    MPI_Comm pair = make_pairs(program);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(pair, &rank);
    MPI_Comm_size(pair, &ranks);
    for (const bool max : {false, true}) {
        const Function function = library.horovod(max ? "float16_max" : "float16_min");
        for (const std::size_t count : {kSmall, kLarge}) {
            Numbers lower(count), higher(count), wanted(count);
            for (std::size_t i = 0; i < count; ++i) {
                lower[i] = kSpecial[i % kSpecial.size()];
                higher[i] = kSpecial[i / kSpecial.size() % kSpecial.size()];
                wanted[i] = ranks == 2 ? keep_first(max, lower[i], higher[i]) : lower[i];
            }
            const Numbers got = reduce(program, pair, rank == 0 ? lower : higher, function);
            program.check(got == wanted, "%s of %zu special halves differs",
                          max ? "float16_max" : "float16_min", count);
        }
    }
    MPI_Comm_free(&pair);
}

// R8: NaN in the padding of Horovod's fusion buffer, and everywhere else: all ranks hold the same
// bits.
void all_ranks_hold_the_same_bits(Program &program, const Library &library)
{
    for (const char *name : kHorovod) {
        for (const std::size_t count : {kSmall, kLarge}) {
            Numbers mine(count);
            for (std::size_t i = 0; i < count; ++i) {
                mine[i] = static_cast<std::uint16_t>(
                    40'503 * (i + 977 * static_cast<std::size_t>(program.rank())));
            }
            Numbers got = reduce(program, MPI_COMM_WORLD, mine, library.horovod(name));
            Numbers first = got;
            MPI_Bcast(first.data(), static_cast<int>(2 * count), MPI_BYTE, 0, MPI_COMM_WORLD);
            program.check(got == first, "%s of %zu halves differs from rank 0", name, count);
        }
    }
}

// Ones, whose sum is exact in any order.
bool is_sum_of_ones(Program &program, const Numbers &got)
{
    const std::array<std::uint16_t, 9> kWhole = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                                 0x4500, 0x4600, 0x4700, 0x4800};
    return got == Numbers(got.size(), kWhole[static_cast<std::size_t>(program.ranks())]);
}

// Sums of `function`, each size: right, and staged or not.
void sum_ones(Program &program, Function function, bool is_staged, const char *what)
{
    for (const std::size_t count : {kSmall, kLarge}) {
        const std::uint64_t before = staged(program);
        const Numbers got = reduce(program, MPI_COMM_WORLD, Numbers(count, 0x3c00), function);
        program.check(is_sum_of_ones(program, got), "%s: wrong sum of %zu", what, count);
        const bool was_staged = staged(program) != before;
        program.check(program.ranks() == 1 || was_staged == is_staged, "%s: %s of %zu", what,
                      was_staged ? "staged" : "not staged", count);
    }
}

// R18: Open MPI gives a new op the address of one that was freed.
void a_handle_may_become_another_operation(Program &program, const Library &library)
{
    const Numbers ones(kSmall, 0x3c00), twos(kSmall, 0x4000);
    for (int i = 0; i < 3; ++i) {
        sum_ones(program, library.horovod("float16_sum"), false, "a sum");
        const Numbers most = reduce(program, MPI_COMM_WORLD, program.rank() == 0 ? twos : ones,
                                    library.horovod("float16_max"));
        program.check(most == twos, "a maximum after a sum was freed is wrong");
        sum_ones(program, library.find("unknown_half_sum"), true, "unknown after known");
    }
}

void one_rank_may_not_know_it(Program &program, const Library &library)
{
    const bool knows = program.rank() != program.ranks() - 1;
    sum_ones(program, knows ? library.horovod("float16_sum") : library.find("unknown_half_sum"),
             true, "an operation that one rank does not know");
    sum_ones(program, library.horovod("float16_sum"), false, "and one that all know");
}

// Also where one rank does not know the operation.
void all_ways_to_call_give_one_result(Program &program, const Library &library)
{
    const bool last = program.rank() == program.ranks() - 1;
    const Half sum(library.horovod("float16_sum")), unknown(library.find("unknown_half_sum"));
    for (const Half *half : {&sum, &unknown, last ? &unknown : &sum}) {
        for (const How how : {How::kNonblocking, How::kPersistent}) {
            for (const std::size_t count : {kSmall, kLarge}) {
                const Numbers ones(count, 0x3c00);
                const Numbers got =
                    reduce(program, MPI_COMM_WORLD, ones, half->type(), half->op(), how);
                program.check(is_sum_of_ones(program, got), "wrong sum of %zu, %s", count,
                              how == How::kPersistent ? "persistent" : "nonblocking");
            }
        }
    }
}

// A call is as many agreements as one with an operation of MPI's.
void it_costs_no_agreement_more(Program &program, const Library &library)
{
    const Half half(library.horovod("float16_sum"));
    for (const std::size_t count : {kSmall, kLarge}) {
        const auto agreements = [&](MPI_Datatype type, MPI_Op op) {
            const CounterValues before = program.counters().read();
            reduce(program, MPI_COMM_WORLD, Numbers(count, 0x3c00), type, op);
            return (program.counters().read() - before)[HETCOLL_AGREEMENTS];
        };
        const std::uint64_t of_mpi = agreements(MPI_INT16_T, MPI_SUM);
        const std::uint64_t of_user = agreements(half.type(), half.op());
        program.check(of_user <= of_mpi, "%llu agreements for %zu halves, %llu for integers",
                      static_cast<unsigned long long>(of_user), count,
                      static_cast<unsigned long long>(of_mpi));
    }
}

void known(Program &program, const Library &library)
{
    static_cast<void>(library.calls());
    const Half half(library.horovod("float16_sum"));
    for (const std::size_t count : {kSmall, kLarge, kSmall}) {
        reduce(program, MPI_COMM_WORLD, Numbers(count, 0x3c00), half.type(), half.op());
    }
    program.check(library.calls() == 1, "a known function is called more than once, or never");
    reduce(program, MPI_COMM_SELF, Numbers(kLarge, 0x3c00), library.find("unknown_half_sum"));
    program.check(library.calls() == 0, "an unknown function is called for a trial");
    finite_values_have_the_bits_of_the_function(program, library);
    nan_and_zeros_of_the_lower_rank_stay(program, library);
    all_ranks_hold_the_same_bits(program, library);
    sum_ones(program, library.horovod("float16_sum"), false, "Horovod's sum");
    sum_ones(program, library.find("unknown_half_sum"), true, "an unknown sum");
    a_handle_may_become_another_operation(program, library);
    one_rank_may_not_know_it(program, library);
    all_ways_to_call_give_one_result(program, library);
    it_costs_no_agreement_more(program, library);
    const std::uint64_t before = staged(program);
    const Numbers most = reduce(program, MPI_COMM_WORLD, Numbers(kLarge, 0x3f80),
                                library.find("project_bfloat16_max"));
    program.check(most == Numbers(kLarge, 0x3f80) && staged(program) == before,
                  "an operation of coll_hetcoll_user_ops is wrong or staged");
}

void run(Program &program, const std::string &what)
{
    const Library library(program);
    if (what == "known") {
        known(program, library);
    } else if (what == "wrong") {
        sum_ones(program, library.find("project_half_prod"), true, "not what its name says");
        sum_ones(program, library.horovod("float16_sum"), false, "next to it");
    } else { // off, differ
        static_cast<void>(library.calls());
        reduce(program, MPI_COMM_SELF, Numbers(kLarge, 0x3c00), library.horovod("float16_sum"));
        program.check(what == "differ" || library.calls() == 0, "a function is called for a trial");
        sum_ones(program, library.horovod("float16_sum"), true, "recognised no more");
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string what = argc > 1 ? argv[1] : "known";
    if (const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
        what == "differ" && rank != nullptr) {
        setenv("OMPI_MCA_coll_hetcoll_user_ops", *rank == '0' ? "a=half:sum" : "a=half:prod", 1);
    }
    Program program(argc, argv, "user_ops");
    run(program, what);
    program.close_gpu();
    return program.finish();
}
