// The body of every kernel: element i of dst becomes the left fold of element i of the inputs. Lane
// `lane` of `lanes` does its share. reduce.cu instantiates it for the GPU, and the emulated GPU
// runs the same code, so that CPU tests cover the addressing below.
#pragma once

#include "cuda_kernels/operations.h"
#include "cuda_kernels/reduction.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

struct TwoInputs {
    const void *input[2];
};
HETCOLL_HD int input_count(const TwoInputs &)
{
    return 2;
}
HETCOLL_HD int input_count(const ReduceInputs &inputs)
{
    return inputs.count;
}

// Of the loops over the inputs: all of two, so that the pointers stay in registers.
template <class Inputs> inline constexpr int kUnroll = 1;
template <> inline constexpr int kUnroll<TwoInputs> = 2;

// How the elements are reached: `head` elements one by one, `packs` of sixteen bytes each, and what
// is left one by one.
struct Split {
    std::size_t head;
    std::size_t packs;
    bool element_aligned; // false: not even single elements can be loaded whole
};

template <class T, class Inputs>
HETCOLL_HD Split split(const void *dst, const Inputs &inputs, std::size_t count)
{
    const auto address = reinterpret_cast<std::uintptr_t>(dst);
    std::uintptr_t differing = 0; // address bits in which a pointer differs from dst
    HETCOLL_UNROLL(kUnroll<Inputs>)
    for (int k = 0; k < input_count(inputs); ++k) {
        differing |= address ^ reinterpret_cast<std::uintptr_t>(inputs.input[k]);
    }
    Split result = {count, 0, (address | differing) % alignof(T) == 0};
    const std::size_t head_bytes = -address % 16, head = head_bytes / sizeof(T);
    if (differing % 16 == 0 && head_bytes % sizeof(T) == 0 && head < count) {
        result.head = head;
        result.packs = (count - head) / (16 / sizeof(T));
    }
    return result;
}

template <class T> struct alignas(16) Pack { // one 128-bit load or store
    T item[16 / sizeof(T)];
};

template <class T> HETCOLL_HD Pack<T> load_pack(const void *from)
{
#if HETCOLL_ON_GPU
    return bits_as<Pack<T>>(*static_cast<const uint4 *>(from));
#else
    Pack<T> pack;
    std::memcpy(&pack, __builtin_assume_aligned(from, 16), sizeof pack);
    return pack;
#endif
}

template <class T> HETCOLL_HD void store_pack(void *to, const Pack<T> &pack)
{
#if HETCOLL_ON_GPU
    *static_cast<uint4 *>(to) = bits_as<uint4>(pack);
#else
    std::memcpy(__builtin_assume_aligned(to, 16), &pack, sizeof pack);
#endif
}

// Elements at odd addresses, which GPUs cannot load whole: rare, so small rather than fast.
template <class T> HETCOLL_HD T load_bytes(const unsigned char *from)
{
    constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
    std::uint64_t word[kWords] = {};
    HETCOLL_UNROLL(1)
    for (unsigned i = 0; i < sizeof(T) / kWords; ++i) {
        for (std::size_t w = 0; w < kWords; ++w) {
            word[w] |= std::uint64_t{from[8 * w + i]} << (8 * i); // GPUs are little endian
        }
    }
    T value;
    std::memcpy(&value, word, sizeof value);
    return value;
}

template <class T> HETCOLL_HD void store_bytes(unsigned char *to, T value)
{
    constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
    std::uint64_t word[kWords] = {};
    std::memcpy(word, &value, sizeof value);
    HETCOLL_UNROLL(1)
    for (unsigned i = 0; i < sizeof(T) / kWords; ++i) {
        for (std::size_t w = 0; w < kWords; ++w) {
            to[8 * w + i] = static_cast<unsigned char>(word[w] >> (8 * i));
        }
    }
}

template <class T> HETCOLL_HD T load_element(const void *from, std::size_t i, bool aligned)
{
    return aligned ? static_cast<const T *>(from)[i]
                   : load_bytes<T>(static_cast<const unsigned char *>(from) + i * sizeof(T));
}

// dst may be any of the inputs, and must not overlap one otherwise. Any alignment.
template <class Op, class T, class Inputs> HETCOLL_HD void
reduce_lane(void *dst, const Inputs &inputs, std::size_t count, std::size_t lane, std::size_t lanes)
{
    constexpr std::size_t kItems = 16 / sizeof(T);
    const Split part = split<T>(dst, inputs, count);
    const int terms = input_count(inputs);

    HETCOLL_UNROLL(1)
    for (std::size_t i = lane; i < part.packs; i += lanes) {
        const std::size_t offset = part.head * sizeof(T) + i * 16;
        const auto load = [&](int k) {
            return load_pack<T>(static_cast<const char *>(inputs.input[k]) + offset);
        };
        Pack<T> result = load(0);
        HETCOLL_UNROLL(kUnroll<Inputs>)
        for (int k = 1; k < terms; ++k) {
            const Pack<T> term = load(k);
            for (std::size_t j = 0; j < kItems; ++j) {
                result.item[j] = combine<Op>(result.item[j], term.item[j]);
            }
        }
        store_pack(static_cast<char *>(dst) + offset, result);
    }

    const std::size_t packed = part.packs * kItems;
    HETCOLL_UNROLL(1)
    for (std::size_t i = lane; i < count - packed; i += lanes) {
        const std::size_t element = i < part.head ? i : i + packed;
        T result = load_element<T>(inputs.input[0], element, part.element_aligned);
        HETCOLL_UNROLL(kUnroll<Inputs>)
        for (int k = 1; k < terms; ++k) {
            result = combine<Op>(result,
                                 load_element<T>(inputs.input[k], element, part.element_aligned));
        }
        if (part.element_aligned) {
            static_cast<T *>(dst)[element] = result;
        } else {
            store_bytes(static_cast<unsigned char *>(dst) + element * sizeof(T), result);
        }
    }
}

} // namespace hetcoll
