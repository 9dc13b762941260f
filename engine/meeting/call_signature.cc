#include "engine/meeting/call_signature.h"

#include "base/element.h"

#include <cstdio>
#include <iterator>

namespace hetcoll {
namespace {

int collective_number(const CallSignature &call) noexcept
{
    return static_cast<int>(call.what >> kCollectiveShift) - 1;
}
std::uint64_t kind_number(const CallSignature &call) noexcept
{
    return call.what >> kKindShift & 31;
}
std::uint64_t op_number(const CallSignature &call) noexcept { return call.what >> kOpShift & 15; }

struct Collective {
    const char *name, *mpi_name;
    bool has_root = false;
    bool moves_only = false; // bytes, whatever they mean: types may differ in all but their sizes
};
// By their numbers.
constexpr Collective kCollectives[] = {
    {"allreduce", "MPI_Allreduce"},
    {"bcast", "MPI_Bcast", true, true},
    {"reduce", "MPI_Reduce", true},
    {"allgather", "MPI_Allgather", false, true},
    {"reduce_scatter", "MPI_Reduce_scatter"},
    {"barrier", "MPI_Barrier", false, true},
    {"allgatherv", "MPI_Allgatherv", false, true},
    {"alltoall", "MPI_Alltoall", false, true},
    {"alltoallv", "MPI_Alltoallv", false, true},
    {"alltoallw", "MPI_Alltoallw", false, true},
    {"exscan", "MPI_Exscan"},
    {"gather", "MPI_Gather", true, true},
    {"gatherv", "MPI_Gatherv", true, true},
    {"scan", "MPI_Scan"},
    {"scatter", "MPI_Scatter", true, true},
    {"scatterv", "MPI_Scatterv", true, true},
    {"allreduce_init", "MPI_Allreduce_init"},
};
static_assert(std::size(kCollectives) == HETCOLL_INIT_ALLREDUCE + 1);

constexpr Collective kNoCollective = {"collective", "a collective"};
const Collective &collective(int number) noexcept
{
    return number >= 0 && number < static_cast<int>(std::size(kCollectives)) ? kCollectives[number]
                                                                             : kNoCollective;
}

bool has_root(const CallSignature &call) noexcept
{
    return collective(collective_number(call)).has_root;
}
bool moves_only(const CallSignature &call) noexcept
{
    return collective(collective_number(call)).moves_only;
}

static_assert(HETCOLL_FLOAT8_E5M2 < static_cast<int>(kUnknownKind));
static_assert(HETCOLL_MIN_FIRST < static_cast<int>(kUserOp));

Differences why_refused(const CallSignature &call) noexcept
{
    if (call.what != 0) {
        return Differences::kNone;
    }
    return call.root() == HETCOLL_CAPTURES ? Differences::kCaptures : Differences::kNoMemory;
}

} // namespace

Differences differences_of(const CallSignature &a, const CallSignature &b) noexcept
{
    if (a == b) {
        return Differences::kNone;
    }
    const Differences refused = why_refused(a) | why_refused(b);
    if (a.number() != b.number()) {
        return Differences::kNumber | refused;
    }
    if (refused != Differences::kNone) {
        return refused;
    }
    if (collective_number(a) != collective_number(b)) {
        return Differences::kCollective;
    }
    Differences found = Differences::kNone;
    const std::uint64_t op_a = op_number(a), op_b = op_number(b);
    if (op_a != op_b && op_a != kNoOp && op_b != kNoOp) {
        found |= Differences::kOp;
    }
    if (kind_number(a) != kind_number(b) && op_a != kUserOp && op_b != kUserOp) {
        found |= Differences::kType; // a user-defined op's is not known
    }
    if (a.root() != b.root()) {
        found |= has_root(a) ? Differences::kRoot : Differences::kCount;
    }
    if (bytes_of(a) != bytes_of(b)) {
        found |= Differences::kCount;
    }
    return found != Differences::kNone ? found : Differences::kOp;
}

namespace {

struct Consequence {
    Differences difference;
    int error;
    const char *name;
};
constexpr Consequence kConsequences[] = {
    {Differences::kNoMemory, HETCOLL_ERROR_NO_MEMORY, "MPI_ERR_NO_MEM"},
    {Differences::kCaptures, HETCOLL_ERROR_COLLECTIVE, "MPI_ERR_OTHER"},
    {Differences::kNumber, HETCOLL_ERROR_COLLECTIVE, "MPI_ERR_OTHER"},
    {Differences::kCollective, HETCOLL_ERROR_COLLECTIVE, "MPI_ERR_OTHER"},
    {Differences::kType, HETCOLL_ERROR_TYPE, "MPI_ERR_TYPE"},
    {Differences::kOp, HETCOLL_ERROR_OP, "MPI_ERR_OP"},
    {Differences::kRoot, HETCOLL_ERROR_ROOT, "MPI_ERR_ROOT"},
    {Differences::kCount, HETCOLL_ERROR_COUNT, "MPI_ERR_COUNT"},
};

const Consequence &consequence_of(Differences differences) noexcept
{
    for (const Consequence &consequence : kConsequences) {
        if ((static_cast<unsigned>(differences) & static_cast<unsigned>(consequence.difference)) !=
            0) {
            return consequence;
        }
    }
    return kConsequences[0];
}

} // namespace

int error_of(Differences differences) noexcept { return consequence_of(differences).error; }

const char *mpi_error_name(Differences differences) noexcept
{
    return consequence_of(differences).name;
}

bool is_signature(const CallSignature &call) noexcept
{
    if (call.what == 0) {
        return true;
    }
    const std::uint64_t kind = kind_number(call), op = op_number(call);
    return collective_number(call) >= HETCOLL_ALLREDUCE &&
           collective_number(call) <= HETCOLL_INIT_ALLREDUCE &&
           (kind <= HETCOLL_FLOAT8_E5M2 || kind == kUnknownKind) &&
           (op <= HETCOLL_MIN_FIRST || op == kUserOp || op == kNoOp);
}

CallText describe(const CallSignature &call, const char *name) noexcept
{
    CallText line;
    if (call.what == 0) {
        std::snprintf(line.text, sizeof line.text, "no call");
        return line;
    }
    if (!is_signature(call)) {
        std::snprintf(line.text, sizeof line.text, "bytes that are no call");
        return line;
    }
    char elements[64] = "", op[32] = "", root[24] = "";
    const auto bytes = static_cast<unsigned long long>(bytes_of(call));
    if (bytes != 0 || !moves_only(call)) { // else it has none, or as many as a rank likes
        std::snprintf(elements, sizeof elements, " of %llu bytes", bytes);
    }
    if (!moves_only(call) && kind_number(call) != kUnknownKind) {
        const auto kind = static_cast<ElementKind>(kind_number(call));
        std::snprintf(elements, sizeof elements, " of %llu %s (%llu bytes)",
                      bytes / element_bytes(kind), element_name(kind), bytes);
        std::snprintf(op, sizeof op, ", %s", op_of(call));
    } else if (!moves_only(call)) {
        std::snprintf(op, sizeof op, ", %s",
                      op_number(call) == kUserOp ? "a user-defined op" : "an unknown type");
    }
    if (has_root(call)) {
        std::snprintf(root, sizeof root, ", root %u", call.root());
    }
    std::snprintf(line.text, sizeof line.text, "%s%s%s%s",
                  name != nullptr ? name : mpi_name(collective_number(call)), elements, op, root);
    return line;
}

const char *collective_of(const CallSignature &call) noexcept
{
    return call.what == 0 ? "none" : collective_name(collective_number(call));
}

const char *type_of(const CallSignature &call) noexcept
{
    return call.what == 0 || moves_only(call) || kind_number(call) == kUnknownKind
               ? "none"
               : element_name(static_cast<ElementKind>(kind_number(call)));
}

const char *op_of(const CallSignature &call) noexcept
{
    if (call.what == 0 || moves_only(call) || op_number(call) == kNoOp) {
        return "none";
    }
    return op_number(call) == kUserOp ? "user-defined"
                                      : op_name(static_cast<ReduceOp>(op_number(call)));
}

std::uint64_t bytes_of(const CallSignature &call) noexcept
{
    return call.what & ((std::uint64_t{1} << kOpShift) - 1);
}

const char *collective_name(int number) noexcept { return collective(number).name; }

const char *mpi_name(int number) noexcept { return collective(number).mpi_name; }

} // namespace hetcoll
