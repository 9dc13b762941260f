// hetcoll_types.h: its operations answer what hetcoll's own code answers, bit for bit, in C and in
// C++. hetcoll recognises every copy of them, and nothing else.
#include "cuda_kernels/reduction.h"
#include "cuda_kernels/user_op.h"
#include "include/hetcoll_types.h"
#include "test/mpi/check.h"
#include "test/mpi/types_in_c.h"

#include <cstring>
#include <iterator>
#include <vector>

namespace hetcoll::test {
namespace {

struct Operation {
    ElementKind kind;
    ReduceOp op;
};
constexpr Operation kOperations[] = {
    {ElementKind::kFloat16, ReduceOp::kSum},    {ElementKind::kFloat16, ReduceOp::kProd},
    {ElementKind::kFloat16, ReduceOp::kMin},    {ElementKind::kFloat16, ReduceOp::kMax},
    {ElementKind::kBfloat16, ReduceOp::kSum},   {ElementKind::kBfloat16, ReduceOp::kProd},
    {ElementKind::kBfloat16, ReduceOp::kMin},   {ElementKind::kBfloat16, ReduceOp::kMax},
    {ElementKind::kFloat8E4m3, ReduceOp::kSum}, {ElementKind::kFloat8E4m3, ReduceOp::kMin},
    {ElementKind::kFloat8E4m3, ReduceOp::kMax}, {ElementKind::kFloat8E5m2, ReduceOp::kSum},
    {ElementKind::kFloat8E5m2, ReduceOp::kMin}, {ElementKind::kFloat8E5m2, ReduceOp::kMax},
};
constexpr int kOperationCount = static_cast<int>(std::size(kOperations));

MPI_Op op_of(const hetcoll_types &types, int i)
{
    const MPI_Op ops[] = {types.float16_sum,     types.float16_prod,    types.float16_min,
                          types.float16_max,     types.bfloat16_sum,    types.bfloat16_prod,
                          types.bfloat16_min,    types.bfloat16_max,    types.float8_e4m3_sum,
                          types.float8_e4m3_min, types.float8_e4m3_max, types.float8_e5m2_sum,
                          types.float8_e5m2_min, types.float8_e5m2_max};
    return ops[i];
}

MPI_Datatype type_of(const hetcoll_types &types, ElementKind kind)
{
    switch (kind) {
    case ElementKind::kFloat16: return types.float16;
    case ElementKind::kBfloat16: return types.bfloat16;
    case ElementKind::kFloat8E4m3: return types.float8_e4m3;
    default: return types.float8_e5m2;
    }
}

// Every number with numbers from all over the range; of 8-bit floats every pair.
template <class Number>
bool check_result(Program &program, const hetcoll_types &types, int i, const char *language)
{
    const auto [kind, op] = kOperations[i];
    constexpr unsigned kStep = 1021;
    std::vector<Number> every(65536), other(65536), wanted(65536);
    for (unsigned shift = 0; shift < 65536; shift += kStep) {
        for (unsigned u = 0; u < 65536; ++u) {
            every[u] = static_cast<Number>(u);
            other[u] = static_cast<Number>(sizeof(Number) == 2 ? shift + 257 * u : u >> 8);
        }
        host_reduce(op, kind)(wanted.data(), every.data(), other.data(), 65536);
        MPI_Reduce_local(every.data(), other.data(), 65536, type_of(types, kind), op_of(types, i));
        if (!program.check(other == wanted, "%s: %s of %s differs from hetcoll's", language,
                           op_name(op), element_name(kind))) {
            return false;
        }
        if (sizeof(Number) == 1) {
            break; // all pairs
        }
    }
    return true;
}

void check_results(Program &program, const hetcoll_types &types, const char *language)
{
    for (int i = 0; i < kOperationCount; ++i) {
        const bool right = element_bytes(kOperations[i].kind) == 2
                               ? check_result<std::uint16_t>(program, types, i, language)
                               : check_result<std::uint8_t>(program, types, i, language);
        if (!right) {
            return;
        }
    }
}

void check_allreduce_on_host(Program &program, const hetcoll_types &types)
{
    const std::vector<std::uint16_t> ones(1000, 0x3c00); // 1.0
    std::vector<std::uint16_t> sum(ones.size());
    MPI_Allreduce(ones.data(), sum.data(), static_cast<int>(ones.size()), types.float16,
                  types.float16_sum, MPI_COMM_WORLD);
    const std::uint16_t wanted[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
    for (const std::uint16_t s : sum) {
        if (!program.check(s == wanted[program.ranks() - 1], "the sum of %d halves 1.0 is 0x%04x",
                           program.ranks(), s)) {
            break;
        }
    }
}

// A type made of several halves works too: MPI hands the operation the larger type.
void check_composed_type(Program &program, const hetcoll_types &types)
{
    MPI_Datatype three;
    MPI_Type_contiguous(3, types.float16, &three);
    MPI_Type_commit(&three);
    const std::uint16_t in[] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
    std::uint16_t inout[] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
    MPI_Reduce_local(in, inout, 2, three, types.float16_sum);
    for (const std::uint16_t x : inout) {
        program.check(x == 0x4000, "of a contiguous type, 1.0 + 1.0 is 0x%04x", x);
    }
    MPI_Type_free(&three);
}

void check_known(Program &program, MPI_User_function *function, int i, const char *language)
{
    int op = -1, kind = -1;
    const int known = hetcoll_user_op(reinterpret_cast<void (*)()>(function), &op, &kind);
    program.check(known == 1 && op == static_cast<int>(kOperations[i].op) &&
                      kind == static_cast<int>(kOperations[i].kind),
                  "%s: operation %d is not recognised: %d, op %d, kind %d", language, i, known, op,
                  kind);
}

// A user's own operation, at an address like ours, that calls one of ours.
[[gnu::aligned(256), gnu::noinline]] void users_own(void *in, void *inout, int *length,
                                                    MPI_Datatype *datatype)
{
    hetcoll_types_float16_sum_(in, inout, length, datatype);
    hetcoll_types_float16_sum_(in, inout, length, datatype);
}

void check_unknown(Program &program)
{
    int op = -1, kind = -1;
    const auto known = [&](auto *function) {
        return hetcoll_user_op(reinterpret_cast<void (*)()>(function), &op, &kind) != 0;
    };
    program.check(!known(users_own), "a user's operation is taken for ours");
    program.check(!known(std::memcpy), "memcpy is taken for an operation");
    program.check(hetcoll_user_op(nullptr, &op, &kind) == 0, "no function is taken for ours");
    program.check(op == -1 && kind == -1, "an unrecognised operation has an op");
}

void run(Program &program)
{
    hetcoll_types types, types_in_c;
    program.check(hetcoll_types_create(&types) == MPI_SUCCESS, "create fails");
    program.check(types_in_c_create(&types_in_c) == MPI_SUCCESS, "create fails in C");
    MPI_User_function *const functions[] = {
        hetcoll_types_float16_sum_,     hetcoll_types_float16_prod_,
        hetcoll_types_float16_min_,     hetcoll_types_float16_max_,
        hetcoll_types_bfloat16_sum_,    hetcoll_types_bfloat16_prod_,
        hetcoll_types_bfloat16_min_,    hetcoll_types_bfloat16_max_,
        hetcoll_types_float8_e4m3_sum_, hetcoll_types_float8_e4m3_min_,
        hetcoll_types_float8_e4m3_max_, hetcoll_types_float8_e5m2_sum_,
        hetcoll_types_float8_e5m2_min_, hetcoll_types_float8_e5m2_max_};
    for (int i = 0; i < kOperationCount; ++i) {
        check_known(program, functions[i], i, "C++");
        check_known(program, types_in_c_function(i), i, "C");
        int commutes = 0;
        MPI_Op_commutative(op_of(types, i), &commutes);
        program.check(commutes == 1, "operation %d does not commute", i);
    }
    check_unknown(program);
    check_results(program, types, "C++");
    check_results(program, types_in_c, "C");
    check_allreduce_on_host(program, types);
    check_composed_type(program, types);
    program.check(hetcoll_types_free(&types) == MPI_SUCCESS, "free fails");
    program.check(types_in_c_free(&types_in_c) == MPI_SUCCESS, "free fails in C");
    program.check(types.float16 == MPI_DATATYPE_NULL && types.bfloat16_max == MPI_OP_NULL,
                  "free leaves a handle");
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    hetcoll::test::Program program(argc, argv, "types");
    hetcoll::test::run(program);
    return program.finish();
}
