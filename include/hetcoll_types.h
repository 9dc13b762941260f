/* MPI datatypes and operations for half (IEEE 754 binary16), bfloat16 and the 8-bit floats E4M3 and
 * E5M2 (OCP 8-bit floating point specification), for C and C++.
 *
 *     struct hetcoll_types types;
 *     hetcoll_types_create(&types);                     // after MPI_Init
 *     MPI_Allreduce(MPI_IN_PLACE, gradients, count, types.float16, types.float16_sum, comm);
 *     hetcoll_types_free(&types);                       // before MPI_Finalize
 *
 * Nothing to link: the operations are functions of this header, and work on host memory under any
 * MPI and any collective component. If hetcoll serves the communicator, it runs its own kernels
 * instead, on device memory too. Either way the bits are the same: a pair of numbers is combined in
 * float and rounded once, to nearest even; a NaN result is 0x7fff; MIN and MAX put -0 below +0 and
 * prefer a number to a NaN. Where hetcoll adds the numbers of several ranks in one pass it rounds
 * their sum once (docs/precision.md).
 *
 * 8-bit floats have SUM, MIN and MAX. A sum of two is rounded to nearest even; what is too large,
 * or infinite, becomes the largest number, 448 or 57344 (__NV_SATFINITE of cuda_fp8.h), so no sum
 * is infinite; a NaN is 0x7f. MIN and MAX answer one of their operands, an infinity of E5M2 too.
 * Under hetcoll a sum of many ranks is always kept in float and rounded once. Under other
 * components each addition is rounded, which costs most of what three bits of fraction hold: prefer
 * few ranks.
 *
 * How hetcoll knows these operations. MPI hides what a user-defined operation does, and its address
 * differs from program to program. So each operation carries a mark in its code, which survives
 * stripping, hidden visibility, static linking and any number of copies in a process: the function
 * is aligned to 256 bytes, and within its first 256 bytes, jumped over when it runs, stands the
 * text HETCOLL_TYPES_MARK "float16:sum;" (or another type and operation). The recogniser reads
 * nothing unless the address is a multiple of 256, and then only that block, which lies in one page
 * with the function's first instruction and so can be read. Nothing but a function made by
 * HETCOLL_TYPES_OPERATION_ below has the text there: no other function begins in its block. With an
 * unknown compiler or processor there is no mark, and the operation is correct but not recognised.
 * The answer depends on the program alone, so ranks that run the same program agree.
 */
#ifndef HETCOLL_TYPES_H
#define HETCOLL_TYPES_H

#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "hetcoll_version.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hetcoll_types {
    MPI_Datatype float16, bfloat16; /* two bytes, no padding */
    MPI_Op float16_sum, float16_prod, float16_min, float16_max;
    MPI_Op bfloat16_sum, bfloat16_prod, bfloat16_min, bfloat16_max;
    MPI_Datatype float8_e4m3, float8_e5m2; /* one byte */
    MPI_Op float8_e4m3_sum, float8_e4m3_min, float8_e4m3_max;
    MPI_Op float8_e5m2_sum, float8_e5m2_min, float8_e5m2_max;
};

/* Makes the types and operations. MPI_SUCCESS, or the error code of the MPI call that failed; then
 * nothing is left to free. */
static int hetcoll_types_create(struct hetcoll_types *types) __attribute__((unused));

/* Frees them. MPI_SUCCESS, or the first error code. */
static int hetcoll_types_free(struct hetcoll_types *types) __attribute__((unused));

/* Internal: do not use the names below. */

#define HETCOLL_TYPES_MARK "hetcoll_types:1:9d41c7e0b36a582f:"

#if defined(__GNUC__) && defined(__x86_64__)
#define HETCOLL_TYPES_JUMP_ "jmp"
#elif defined(__GNUC__) && defined(__aarch64__)
#define HETCOLL_TYPES_JUMP_ "b"
#endif

#ifdef HETCOLL_TYPES_JUMP_
#define HETCOLL_TYPES_MARKED_ __attribute__((noinline, aligned(256)))
#define HETCOLL_TYPES_PUT_MARK_(name)                                               \
    __asm__ volatile(HETCOLL_TYPES_JUMP_ " 1f\n\t.ascii \"" HETCOLL_TYPES_MARK name \
                                         ";\"\n\t.balign 4\n1:" ::                  \
                                             : "memory")
#else
#define HETCOLL_TYPES_MARKED_
#define HETCOLL_TYPES_PUT_MARK_(name) (void)0
#endif

static inline float hetcoll_types_to_float_(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t hetcoll_types_to_bits_(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float hetcoll_types_widen_float16_(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    const uint32_t shifted = magnitude << 13;
    if (magnitude >= 0x7c00u) { /* infinity and NaN */
        return hetcoll_types_to_float_(sign | (0x70000000u + shifted));
    }
    if (magnitude < 0x400u) { /* subnormal: no intermediate is a subnormal float */
        const float value =
            hetcoll_types_to_float_(0x38800000u + shifted) - hetcoll_types_to_float_(0x38800000u);
        return hetcoll_types_to_float_(sign | hetcoll_types_to_bits_(value));
    }
    return hetcoll_types_to_float_(sign | (0x38000000u + shifted));
}

static inline uint16_t hetcoll_types_narrow_float16_(float value)
{
    const uint32_t bits = hetcoll_types_to_bits_(value);
    const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
        return 0x7fffu;
    }
    if (magnitude >= 0x47800000u) { /* 65536 and more */
        result = 0x7c00u;
    } else if (magnitude < 0x38800000u) { /* one bit of 0.5 is the smallest half */
        const float rounded = hetcoll_types_to_float_(magnitude) + 0.5f;
        result = hetcoll_types_to_bits_(rounded) - 0x3f000000u;
    } else {
        result = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    }
    return (uint16_t)(result | sign);
}

static inline float hetcoll_types_widen_bfloat16_(uint16_t number)
{
    return hetcoll_types_to_float_((uint32_t)number << 16);
}

static inline uint16_t hetcoll_types_narrow_bfloat16_(float value)
{
    const uint32_t bits = hetcoll_types_to_bits_(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fffu;
    }
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* E5M2 is the upper half of a half. As a half an E4M3 has an exponent that is 8 too small. */
static inline float hetcoll_types_widen_float8_e5m2_(uint8_t number)
{
    return hetcoll_types_widen_float16_((uint16_t)(number << 8));
}

static inline float hetcoll_types_widen_float8_e4m3_(uint8_t number)
{
    const uint32_t sign = (uint32_t)(number & 0x80u) << 8, magnitude = number & 0x7fu;
    if (magnitude == 0x7fu) {
        return hetcoll_types_to_float_(0x7fffffffu);
    }
    return 256.0f * hetcoll_types_widen_float16_((uint16_t)(sign | magnitude << 7));
}

/* `fraction` bits of fraction, biased exponents of a float from `least` on, the largest number. */
static inline uint8_t hetcoll_types_narrow_float8_(float value, unsigned fraction, unsigned least,
                                                   unsigned largest)
{
    const uint32_t bits = hetcoll_types_to_bits_(value);
    const uint32_t sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
    const unsigned dropped = 23u - fraction;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
        return 0x7fu;
    }
    if (magnitude < least << 23) { /* one bit of this is the smallest number */
        const uint32_t units = (least + dropped) << 23;
        const float rounded = hetcoll_types_to_float_(magnitude) + hetcoll_types_to_float_(units);
        result = hetcoll_types_to_bits_(rounded) - units;
    } else {
        result = (magnitude + (1u << (dropped - 1u)) - 1u + ((magnitude >> dropped) & 1u) -
                  ((least - 1u) << 23)) >>
                 dropped;
    }
    return (uint8_t)((result < largest ? result : largest) | sign);
}

static inline uint8_t hetcoll_types_narrow_float8_e4m3_(float value)
{
    return hetcoll_types_narrow_float8_(value, 3, 121, 0x7e);
}

static inline uint8_t hetcoll_types_narrow_float8_e5m2_(float value)
{
    return hetcoll_types_narrow_float8_(value, 2, 113, 0x7b);
}

/* True for numbers and infinities. */
static inline uint8_t hetcoll_types_keep_float8_e4m3_(float value)
{
    return hetcoll_types_narrow_float8_e4m3_(value);
}

static inline uint8_t hetcoll_types_keep_float8_e5m2_(float value)
{
    const uint32_t bits = hetcoll_types_to_bits_(value);
    return (bits & 0x7fffffffu) == 0x7f800000u ? (uint8_t)((bits >> 24 & 0x80u) | 0x7cu)
                                               : hetcoll_types_narrow_float8_e5m2_(value);
}

static inline float hetcoll_types_sum_(float a, float b) { return a + b; }
static inline float hetcoll_types_prod_(float a, float b) { return a * b; }

static inline float hetcoll_types_max_(float a, float b)
{
    if (a == b) { /* zeros: -0 only if both are */
        return hetcoll_types_to_float_(hetcoll_types_to_bits_(a) & hetcoll_types_to_bits_(b));
    }
    return a > b || b != b ? a : b;
}

static inline float hetcoll_types_min_(float a, float b)
{
    if (a == b) {
        return hetcoll_types_to_float_(hetcoll_types_to_bits_(a) | hetcoll_types_to_bits_(b));
    }
    return a < b || b != b ? a : b;
}

/* The operation as MPI calls it: little code around the mark, so that the mark is near the start.
 */
#define HETCOLL_TYPES_OPERATION_(type, op, word, narrow)                                          \
    static __attribute__((noinline)) void hetcoll_types_loop_##type##_##op##_(                    \
        const unsigned char *in, unsigned char *inout, const int *length, MPI_Datatype *datatype) \
    {                                                                                             \
        int bytes = 0;                                                                            \
        size_t at, all;                                                                           \
        MPI_Type_size(*datatype, &bytes); /* of a type made of several of ours, too */            \
        all = (size_t)bytes * (size_t)*length;                                                    \
        for (at = 0; at + sizeof(word) <= all; at += sizeof(word)) {                              \
            word a, b;                                                                            \
            memcpy(&a, in + at, sizeof a);                                                        \
            memcpy(&b, inout + at, sizeof b);                                                     \
            b = hetcoll_types_##narrow##_##type##_(hetcoll_types_##op##_(                         \
                hetcoll_types_widen_##type##_(a), hetcoll_types_widen_##type##_(b)));             \
            memcpy(inout + at, &b, sizeof b);                                                     \
        }                                                                                         \
    }                                                                                             \
    static HETCOLL_TYPES_MARKED_ void hetcoll_types_##type##_##op##_(                             \
        void *in, void *inout, int *length, MPI_Datatype *datatype)                               \
    {                                                                                             \
        HETCOLL_TYPES_PUT_MARK_(#type ":" #op);                                                   \
        hetcoll_types_loop_##type##_##op##_((const unsigned char *)in, (unsigned char *)inout,    \
                                            length, datatype);                                    \
    }

HETCOLL_TYPES_OPERATION_(float16, sum, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(float16, prod, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(float16, min, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(float16, max, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(bfloat16, sum, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(bfloat16, prod, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(bfloat16, min, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(bfloat16, max, uint16_t, narrow)
HETCOLL_TYPES_OPERATION_(float8_e4m3, sum, uint8_t, narrow)
HETCOLL_TYPES_OPERATION_(float8_e4m3, min, uint8_t, keep)
HETCOLL_TYPES_OPERATION_(float8_e4m3, max, uint8_t, keep)
HETCOLL_TYPES_OPERATION_(float8_e5m2, sum, uint8_t, narrow)
HETCOLL_TYPES_OPERATION_(float8_e5m2, min, uint8_t, keep)
HETCOLL_TYPES_OPERATION_(float8_e5m2, max, uint8_t, keep)

static inline int hetcoll_types_make_(MPI_Datatype *type, int bytes, const char *name)
{
    int error = MPI_Type_contiguous(bytes, MPI_BYTE, type);
    if (error == MPI_SUCCESS) {
        error = MPI_Type_set_name(*type, name);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Type_commit(type);
    }
    return error;
}

static int hetcoll_types_free(struct hetcoll_types *types)
{
    MPI_Op *const ops[] = {
        &types->float16_sum,     &types->float16_prod,    &types->float16_min,
        &types->float16_max,     &types->bfloat16_sum,    &types->bfloat16_prod,
        &types->bfloat16_min,    &types->bfloat16_max,    &types->float8_e4m3_sum,
        &types->float8_e4m3_min, &types->float8_e4m3_max, &types->float8_e5m2_sum,
        &types->float8_e5m2_min, &types->float8_e5m2_max};
    MPI_Datatype *const kinds[] = {&types->float16, &types->bfloat16, &types->float8_e4m3,
                                   &types->float8_e5m2};
    int first = MPI_SUCCESS;
    size_t i;
    for (i = 0; i < sizeof ops / sizeof *ops; ++i) {
        if (*ops[i] != MPI_OP_NULL) {
            const int error = MPI_Op_free(ops[i]);
            first = first == MPI_SUCCESS ? error : first;
        }
    }
    for (i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (*kinds[i] != MPI_DATATYPE_NULL) {
            const int error = MPI_Type_free(kinds[i]);
            first = first == MPI_SUCCESS ? error : first;
        }
    }
    return first;
}

static int hetcoll_types_create(struct hetcoll_types *types)
{
    const struct {
        MPI_User_function *function;
        MPI_Op *op;
    } ops[] = {{hetcoll_types_float16_sum_, &types->float16_sum},
               {hetcoll_types_float16_prod_, &types->float16_prod},
               {hetcoll_types_float16_min_, &types->float16_min},
               {hetcoll_types_float16_max_, &types->float16_max},
               {hetcoll_types_bfloat16_sum_, &types->bfloat16_sum},
               {hetcoll_types_bfloat16_prod_, &types->bfloat16_prod},
               {hetcoll_types_bfloat16_min_, &types->bfloat16_min},
               {hetcoll_types_bfloat16_max_, &types->bfloat16_max},
               {hetcoll_types_float8_e4m3_sum_, &types->float8_e4m3_sum},
               {hetcoll_types_float8_e4m3_min_, &types->float8_e4m3_min},
               {hetcoll_types_float8_e4m3_max_, &types->float8_e4m3_max},
               {hetcoll_types_float8_e5m2_sum_, &types->float8_e5m2_sum},
               {hetcoll_types_float8_e5m2_min_, &types->float8_e5m2_min},
               {hetcoll_types_float8_e5m2_max_, &types->float8_e5m2_max}};
    const struct {
        MPI_Datatype *type;
        int bytes;
        const char *name;
    } kinds[] = {{&types->float16, 2, "hetcoll_float16"},
                 {&types->bfloat16, 2, "hetcoll_bfloat16"},
                 {&types->float8_e4m3, 1, "hetcoll_float8_e4m3"},
                 {&types->float8_e5m2, 1, "hetcoll_float8_e5m2"}};
    int error = MPI_SUCCESS;
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        *kinds[i].type = MPI_DATATYPE_NULL;
    }
    for (i = 0; i < sizeof ops / sizeof *ops; ++i) {
        *ops[i].op = MPI_OP_NULL;
    }
    for (i = 0; error == MPI_SUCCESS && i < sizeof kinds / sizeof *kinds; ++i) {
        error = hetcoll_types_make_(kinds[i].type, kinds[i].bytes, kinds[i].name);
    }
    for (i = 0; error == MPI_SUCCESS && i < sizeof ops / sizeof *ops; ++i) {
        error = MPI_Op_create(ops[i].function, 1, ops[i].op);
    }
    if (error != MPI_SUCCESS) {
        hetcoll_types_free(types);
    }
    return error;
}

#ifdef __cplusplus
}
#endif
#endif
