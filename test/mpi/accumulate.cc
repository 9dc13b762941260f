// coll_hetcoll_accumulate: sums of half and bfloat16, bit for bit.
//   accumulate once [WHICH]         exactly the sum, rounded once
//   accumulate element [WHICH]      the left fold of the ranks, rounded after every addition
//   accumulate differ               the same, because rank 1 alone asks for it
//   accumulate nodes 0,0,1,1        rounded once on each of two nodes, and once between them
// WHICH is "small", calls up to the small limit, or "network", larger ones by aggregators.
#include "measure/buffer.h"
#include "measure/persistent.h"
#include "measure/small_floats.h"
#include "test/mpi/check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

using Numbers = std::vector<std::uint16_t>;

// Values of several magnitudes and both signs, so that every addition rounds; but multiples of 1/8
// up to 2046, of which a float holds any sum of so few: so that is exact until it is rounded.
float number(ElementKind kind, int rank, std::size_t i)
{
    std::uint64_t bits =
        (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 29;
    bits *= 0x94d049bb133111ebu;
    bits ^= bits >> 32;
    const int digits = kind == ElementKind::kFloat16 ? 1024 : 128;
    const int whole = static_cast<int>(bits >> 8 & 0xffff) % digits;
    const float value = std::ldexp(static_cast<float>(whole), static_cast<int>(bits % 5) - 3);
    return (bits & 0x80) != 0 ? -value : value;
}

// The sum of these ranks' numbers, rounded once or after every addition.
std::uint16_t sum_of(ElementKind kind, const std::vector<int> &ranks, std::size_t i, bool once)
{
    float sum = number(kind, ranks[0], i);
    for (std::size_t k = 1; k < ranks.size(); ++k) {
        sum += number(kind, ranks[k], i);
        sum = once ? sum : value_of(kind, bits_of(kind, sum));
    }
    return bits_of(kind, sum);
}

// The expected result: `once`, or in the order of the ranks; on each node for itself, if there are
// two.
struct Wanted {
    bool once = true;
    std::vector<std::vector<int>> nodes;

    [[nodiscard]] std::uint16_t at(ElementKind kind, std::size_t i) const
    {
        const std::uint16_t first = sum_of(kind, nodes[0], i, once);
        if (nodes.size() == 1) {
            return first;
        }
        const std::uint16_t second = sum_of(kind, nodes[1], i, once);
        return bits_of(kind, value_of(kind, first) + value_of(kind, second));
    }
};

enum class How { kBlocking, kNonblocking, kPersistent };

void reduce(How how, void *buffer, int count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (how == How::kBlocking) {
        MPI_Allreduce(MPI_IN_PLACE, buffer, count, type, op, MPI_COMM_WORLD);
        return;
    }
    if (how == How::kNonblocking) {
        MPI_Iallreduce(MPI_IN_PLACE, buffer, count, type, op, MPI_COMM_WORLD, &request);
    } else {
        HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, buffer, count, type, op, MPI_COMM_WORLD, MPI_INFO_NULL,
                               &request);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
}

Numbers sum(Program &program, ElementKind kind, std::size_t count, Memory memory, How how)
{
    Numbers numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = bits_of(kind, number(kind, program.rank(), i));
    }
    auto buffer = Buffer::allocate(&program.gpu(), memory, 2 * count);
    program.require(buffer.ok() ? Status() : buffer.take_status());
    program.require(buffer->write(0, numbers.data(), 2 * count));
    reduce(how, buffer->data(), static_cast<int>(count), program.names().datatype(kind),
           program.names().op(ReduceOp::kSum, kind));
    program.require(buffer->read(0, numbers.data(), 2 * count));
    return numbers;
}

void check_sums(Program &program, const Wanted &wanted, std::size_t count, Memory memory, How how)
{
    for (const ElementKind kind : {ElementKind::kFloat16, ElementKind::kBfloat16}) {
        const Numbers got = sum(program, kind, count, memory, how);
        for (std::size_t i = 0; i < count; ++i) {
            if (!program.check(got[i] == wanted.at(kind, i),
                               "%zu numbers, %s, %s memory, call %d: element %zu is %04x, not %04x",
                               count, element_name(kind),
                               memory == Memory::kDevice ? "device" : "host", static_cast<int>(how),
                               i, got[i], wanted.at(kind, i))) {
                break;
            }
        }
    }
}

// However many ranks have which memory, all of them hold the same bits.
void check_mixed(Program &program, std::size_t count)
{
    const Memory memory = program.rank() % 2 == 0 ? Memory::kHost : Memory::kDevice;
    const Numbers got = sum(program, ElementKind::kFloat16, count, memory, How::kBlocking);
    Numbers first = got;
    MPI_Bcast(first.data(), static_cast<int>(2 * count), MPI_BYTE, 0, MPI_COMM_WORLD);
    program.check(got == first, "%zu halves of mixed memory differ from rank 0", count);
}

// Else the checks would prove nothing.
void check_that_rounding_matters(Program &program)
{
    std::vector<int> all;
    for (int rank = 0; rank < program.ranks(); ++rank) {
        all.push_back(rank);
    }
    for (const ElementKind kind : {ElementKind::kFloat16, ElementKind::kBfloat16}) {
        int differ = 0;
        for (std::size_t i = 0; i < 1000; ++i) {
            differ += sum_of(kind, all, i, true) != sum_of(kind, all, i, false) ? 1 : 0;
        }
        program.check(program.ranks() < 3 || differ > 50, "%d of 1000 sums differ", differ);
    }
}

Wanted read_arguments(const Program &program, const std::string &what, const std::string &nodes)
{
    Wanted wanted;
    wanted.once = what != "element" && what != "differ";
    wanted.nodes.resize(what == "nodes" ? 2 : 1);
    for (int rank = 0; rank < program.ranks(); ++rank) {
        const auto at = static_cast<std::size_t>(2 * rank);
        const bool second = what == "nodes" && at < nodes.size() && nodes[at] == '1';
        wanted.nodes[second ? 1 : 0].push_back(rank);
    }
    return wanted;
}

void run(Program &program, const std::string &what, const std::string &more)
{
    check_that_rounding_matters(program);
    const Wanted wanted = read_arguments(program, what, more);
    std::vector<std::size_t> counts = {1, 5, 1'000, 4'096};
    if (more == "network") {
        check_allreduce(
            program, MPI_COMM_WORLD, // joins
            {.pattern = {.kind = ElementKind::kFloat32, .op = ReduceOp::kSum}, .count = 10'000});
        counts = {63'488, 200'001};
    } else if (more != "small") {
        counts.insert(counts.end(), {4'097, 63'488, 200'001});
    }
    for (const std::size_t count : counts) {
        for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
            check_sums(program, wanted, count, Memory::kDevice, how);
        }
        if (2 * count <= kSmallBytes) {
            check_sums(program, wanted, count, Memory::kHost, How::kBlocking);
        }
        check_mixed(program, count);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string what = argc > 1 ? argv[1] : "once";
    const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (what == "differ" && rank != nullptr && *rank == '1') {
        setenv("OMPI_MCA_coll_hetcoll_accumulate", "element", 1); // for all of them
    }
    Program program(argc, argv, "accumulate");
    run(program, what, argc > 2 ? argv[2] : "");
    program.close_gpu();
    return program.finish();
}
