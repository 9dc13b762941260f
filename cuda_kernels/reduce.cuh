// The body of every reduction: element i of each output becomes the left fold of element i of the
// inputs. Thread `thread` of `threads` does its share. reduce.cu instantiates it for the GPU, and
// the emulated GPU runs the same code, so that CPU tests cover the addressing below.
#pragma once

#include "cuda_kernels/packed.cuh"
#include "cuda_kernels/reduction.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hetcoll {

struct TwoInputs {
    const void *input[2];
};
struct OneOutput {
    void *output[1];
};
HETCOLL_HD int input_count(const TwoInputs &) { return 2; }
HETCOLL_HD int input_count(const ListedInputs &inputs) { return inputs.count; }
HETCOLL_HD int output_count(const OneOutput &) { return 1; }
HETCOLL_HD int output_count(const ListedOutputs &outputs) { return outputs.count; }

// How far the loops over the inputs are unrolled: wholly for two, so that the pointers stay in
// registers.
template <class Inputs> inline constexpr int kUnroll = 1;
template <> inline constexpr int kUnroll<TwoInputs> = 2;

// How many packs of sixteen bytes of an input a thread has at once where every thread has as many:
// with two, memory changes less often between reads and writes. Small elements that are combined
// one by one, and floats of sums that are rounded once, leave no registers for it.
template <class Op, class T, class Inputs> HETCOLL_HD constexpr std::size_t packs_together()
{
    constexpr bool kOneByOne = sizeof(T) < 4 && !is_packed<Op, T>();
    return std::is_same_v<Inputs, TwoInputs> || std::is_same_v<Op, SumOnce> || kOneByOne ? 1 : 2;
}

// How many loads a thread has in flight at once, besides those of the first input: few threads fit
// on a multiprocessor, and its share of the memory's bandwidth times latency is some 20 KB.
template <class Inputs> inline constexpr int kTogether = 4;
template <> inline constexpr int kTogether<TwoInputs> = 1;

// The threads that load at once, from addresses that lie together. The number of a launch's threads
// is a multiple of it.
inline constexpr std::size_t kWarp = HETCOLL_ON_GPU ? 32 : 1;

// How the elements are reached: `head` elements one by one, `packs` of sixteen bytes each, and the
// rest one by one.
struct Split {
    std::size_t head;
    std::size_t packs;
    bool element_aligned; // false: not even single elements can be loaded whole
};

template <class T, class Outputs, class Inputs>
HETCOLL_HD Split split(const Outputs &outputs, const Inputs &inputs, std::size_t count)
{
    const auto address = reinterpret_cast<std::uintptr_t>(outputs.output[0]);
    std::uintptr_t differing = 0; // address bits in which a pointer differs from the first output
    HETCOLL_UNROLL(1)
    for (int k = 1; k < output_count(outputs); ++k) {
        differing |= address ^ reinterpret_cast<std::uintptr_t>(outputs.output[k]);
    }
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

// One 128-bit load or store. In words, not elements: nvcc would take the loaded elements apart
// before it combines them, and need more registers than there are.
struct alignas(16) Pack {
    std::uint32_t word[4];
};

HETCOLL_HD Pack load_pack(const void *from)
{
#if HETCOLL_ON_GPU
    Pack pack; // in PTX, as nvcc takes a load apart where elements have padding
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pack.word[0]), "=r"(pack.word[1]), "=r"(pack.word[2]), "=r"(pack.word[3])
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return pack;
#else
    Pack pack;
    std::memcpy(&pack, __builtin_assume_aligned(from, 16), sizeof pack);
    return pack;
#endif
}

HETCOLL_HD void store_pack(void *to, const Pack &pack)
{
#if HETCOLL_ON_GPU
    *static_cast<uint4 *>(to) = bits_as<uint4>(pack);
#else
    std::memcpy(__builtin_assume_aligned(to, 16), &pack, sizeof pack);
#endif
}

// As store_pack(), and the caches may drop it first: large vectors leave them before they are read.
HETCOLL_HD void stream_pack(void *to, const Pack &pack)
{
#if HETCOLL_ON_GPU
    __stcs(static_cast<uint4 *>(to), bits_as<uint4>(pack));
#else
    store_pack(to, pack);
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

template <class T> HETCOLL_HD void store_element(void *to, std::size_t i, T value, bool aligned)
{
    if (aligned) {
        static_cast<T *>(to)[i] = value;
    } else {
        store_bytes(static_cast<unsigned char *>(to) + i * sizeof(T), value);
    }
}

template <class Op, class T> HETCOLL_HD Pack combine_all(const Pack &a, const Pack &b)
{
    if constexpr (is_packed<Op, T>()) {
        Pack result;
        for (int w = 0; w < 4; ++w) {
            result.word[w] = combine_word<Op, T>(a.word[w], b.word[w]);
        }
        return result;
    } else {
        struct Items {
            T item[sizeof(Pack) / sizeof(T)];
        };
        Items left = bits_as<Items>(a);
        const Items right = bits_as<Items>(b);
        for (std::size_t i = 0; i < sizeof(Pack) / sizeof(T); ++i) {
            left.item[i] = combine<Op>(left.item[i], right.item[i]);
        }
        return bits_as<Pack>(left);
    }
}
template <class Op, class T> HETCOLL_HD T combine_all(const T &a, const T &b)
{
    return combine<Op>(a, b);
}

// What a thread has of an input at once.
template <std::size_t kCount> struct Packs {
    Pack pack[kCount];
};
template <class Op, class T, std::size_t kCount>
HETCOLL_HD Packs<kCount> combine_all(const Packs<kCount> &a, const Packs<kCount> &b)
{
    Packs<kCount> result;
    for (std::size_t p = 0; p < kCount; ++p) {
        result.pack[p] = combine_all<Op, T>(a.pack[p], b.pack[p]);
    }
    return result;
}

// What a fold has so far of Packs or an element: the same, or floats that are rounded at the end.
template <class Op, class T, class Value> struct Partial {
    Value value;
    HETCOLL_HD explicit Partial(const Value &first) : value(first) {}
    HETCOLL_HD void add(const Value &next) { value = combine_all<Op, T>(value, next); }
    [[nodiscard]] HETCOLL_HD Value result() const { return value; }
};

template <class T> HETCOLL_HD void widen_all(const Packs<1> &packs, float *to)
{
    for (std::size_t w = 0; w < 4; ++w) {
        widen_word<T>(packs.pack[0].word[w], to + w * (4 / sizeof(T)));
    }
}
template <class T> HETCOLL_HD void widen_all(const T &element, float *to) { *to = widen(element); }

template <class T> HETCOLL_HD void narrow_all(const float *from, Packs<1> &packs)
{
    for (std::size_t w = 0; w < 4; ++w) {
        packs.pack[0].word[w] = narrow_word<T>(from + w * (4 / sizeof(T)));
    }
}
template <class T> HETCOLL_HD void narrow_all(const float *from, T &element)
{
    narrow(*from, element);
}

template <class T, class Value> struct Partial<SumOnce, T, Value> {
    static constexpr std::size_t kCount = sizeof(Value) / sizeof(T); // NOLINT: both may be T
    float sum[kCount];

    HETCOLL_HD explicit Partial(const Value &first) { widen_all<T>(first, sum); }
    HETCOLL_HD void add(const Value &next)
    {
        float term[kCount];
        widen_all<T>(next, term);
        for (std::size_t i = 0; i < kCount; ++i) {
            sum[i] += term[i];
        }
    }
    [[nodiscard]] HETCOLL_HD Value result() const
    {
        Value value;
        narrow_all<T>(sum, value);
        return value;
    }
};

// The left fold of load(0) to load(terms - 1). `kAhead` loads go out before the first of them is
// waited for.
template <class Op, class T, int kAhead, class Load> HETCOLL_HD auto fold(int terms, Load load)
{
    using Value = decltype(load(0));
    Partial<Op, T, Value> result(load(0));
    HETCOLL_UNROLL(1)
    for (int k = 1; k < terms; k += kAhead) {
        Value term[kAhead] = {};
        HETCOLL_UNROLL(kAhead)
        for (int j = 0; j < kAhead; ++j) {
            if (k + j < terms) {
                term[j] = load(k + j);
            }
        }
        HETCOLL_UNROLL(kAhead)
        for (int j = 0; j < kAhead; ++j) {
            if (k + j < terms) {
                result.add(term[j]);
            }
        }
    }
    return result.result();
}

// One fold of a thread: the packs at `offset`, in bytes, and those that follow it, a warp apart.
template <class Op, class T, std::size_t kCount, class Outputs, class Inputs>
HETCOLL_HD void reduce_packs(const Outputs &outputs, const Inputs &inputs, std::size_t offset)
{
    const auto load = [&](int k) {
        Packs<kCount> packs;
        for (std::size_t p = 0; p < kCount; ++p) {
            packs.pack[p] =
                load_pack(static_cast<const char *>(inputs.input[k]) + offset + p * kWarp * 16);
        }
        return packs;
    };
    constexpr int kAhead = kTogether<Inputs> / static_cast<int>(kCount);
    const Packs<kCount> result = fold<Op, T, kAhead>(input_count(inputs), load);
    HETCOLL_UNROLL(1)
    for (int k = 0; k < output_count(outputs); ++k) {
        for (std::size_t p = 0; p < kCount; ++p) {
            void *const to = static_cast<char *>(outputs.output[k]) + offset + p * kWarp * 16;
            if constexpr (kCount > 1) {
                stream_pack(to, result.pack[p]);
            } else {
                store_pack(to, result.pack[p]);
            }
        }
    }
}

// An output may be any one of the inputs, and must not overlap another or an output. Any alignment.
template <class Op, class T, class Outputs, class Inputs>
HETCOLL_HD void reduce_as_thread(const Outputs &outputs, const Inputs &inputs, std::size_t count,
                                 std::size_t thread, std::size_t threads)
{
    constexpr std::size_t kItems = 16 / sizeof(T), kCount = packs_together<Op, T, Inputs>();
    const Split part = split<T>(outputs, inputs, count);
    const int terms = input_count(inputs);

    const std::size_t head_bytes = part.head * sizeof(T);
    std::size_t begin = 0; // of what is left
    if constexpr (kCount > 1) {
        const std::size_t mine = thread / kWarp * kWarp * kCount + thread % kWarp;
        HETCOLL_UNROLL(1)
        for (; begin + kCount * threads <= part.packs; begin += kCount * threads) {
            reduce_packs<Op, T, kCount>(outputs, inputs, head_bytes + (begin + mine) * 16);
        }
    }
    HETCOLL_UNROLL(1)
    for (std::size_t i = begin + thread; i < part.packs; i += threads) {
        reduce_packs<Op, T, 1>(outputs, inputs, head_bytes + i * 16);
    }

    const std::size_t packed = part.packs * kItems;
    HETCOLL_UNROLL(1)
    for (std::size_t i = thread; i < count - packed; i += threads) {
        const std::size_t element = i < part.head ? i : i + packed;
        const auto load = [&](int k) { return static_cast<const T *>(inputs.input[k])[element]; };
        const auto load_unaligned = [&](int k) {
            const auto *const from = static_cast<const unsigned char *>(inputs.input[k]);
            return load_bytes<T>(from + element * sizeof(T));
        };
        const T result = part.element_aligned ? fold<Op, T, kTogether<Inputs>>(terms, load)
                                              : fold<Op, T, 1>(terms, load_unaligned);
        HETCOLL_UNROLL(1)
        for (int k = 0; k < output_count(outputs); ++k) {
            store_element(outputs.output[k], element, result, part.element_aligned);
        }
    }
}

} // namespace hetcoll
