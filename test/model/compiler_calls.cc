// The functions that g++ -fsanitize=thread calls at each access to memory, in place of libtsan's;
// and the library functions that touch memory, under the names that test/model/local.mk gives them
// in the code under test. Outside of an exploration they do what they are called for.
#include "state.h"

#include <cerrno>
#include <cstring>

namespace {

using namespace model;

std::uintptr_t number(const volatile void *address)
{
    return reinterpret_cast<std::uintptr_t>(address);
}

Operation operation(Kind kind, const volatile void *address, std::size_t bytes, int order,
                    const void *pc)
{
    Operation op;
    op.kind = kind;
    op.address = number(address);
    op.bytes = static_cast<int>(bytes);
    op.order = order;
    op.pc = pc;
    return op;
}

template <class T> T load(const volatile T *at, int order, const void *pc)
{
    if (!is_watched()) {
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);
    }
    return static_cast<T>(announce(operation(Kind::kLoad, at, sizeof *at, order, pc)));
}

template <class T> void store(volatile T *at, T value, int order, const void *pc)
{
    if (!is_watched()) {
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
        return;
    }
    may_die();
    Operation op = operation(Kind::kStore, at, sizeof *at, order, pc);
    op.value = static_cast<std::uint64_t>(value);
    announce(op);
}

template <class T> T exchange(volatile T *at, T value, int order, Rmw rmw, const void *pc)
{
    Operation op = operation(Kind::kRmw, at, sizeof *at, order, pc);
    op.rmw = rmw;
    op.value = static_cast<std::uint64_t>(value);
    return static_cast<T>(announce(op));
}

template <class T>
int compare_exchange(volatile T *at, T *expected, T value, int order, const void *pc)
{
    if (!is_watched()) {
        return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    }
    Operation op = operation(Kind::kCas, at, sizeof *at, order, pc);
    op.value = static_cast<std::uint64_t>(value);
    op.expected = static_cast<std::uint64_t>(*expected);
    const T old = static_cast<T>(announce(op));
    const bool same = old == *expected;
    *expected = old;
    return same ? 1 : 0;
}

} // namespace

#define PC __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

#define HETCOLL_PLAIN(bytes)                                                                  \
    void __tsan_read##bytes(void *p) { plain_access(number(p), bytes, false, PC); }           \
    void __tsan_write##bytes(void *p) { plain_access(number(p), bytes, true, PC); }           \
    void __tsan_unaligned_read##bytes(void *p) { plain_access(number(p), bytes, false, PC); } \
    void __tsan_unaligned_write##bytes(void *p) { plain_access(number(p), bytes, true, PC); }
HETCOLL_PLAIN(1)
HETCOLL_PLAIN(2)
HETCOLL_PLAIN(4)
HETCOLL_PLAIN(8)
HETCOLL_PLAIN(16)
#undef HETCOLL_PLAIN
void __tsan_read_range(void *p, unsigned long bytes) { plain_access(number(p), bytes, false, PC); }
void __tsan_write_range(void *p, unsigned long bytes) { plain_access(number(p), bytes, true, PC); }

#define HETCOLL_ATOMIC(bits, T)                                                                 \
    T __tsan_atomic##bits##_load(const volatile T *p, int order) { return load(p, order, PC); } \
    void __tsan_atomic##bits##_store(volatile T *p, T value, int order)                         \
    {                                                                                           \
        store(p, value, order, PC);                                                             \
    }                                                                                           \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *expected, T value,      \
                                                      int order, int)                           \
    {                                                                                           \
        return compare_exchange(p, expected, value, order, PC);                                 \
    }                                                                                           \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *expected, T value,        \
                                                    int order, int)                             \
    {                                                                                           \
        return compare_exchange(p, expected, value, order, PC);                                 \
    }
#define HETCOLL_RMW(bits, T, name, builtin, rmw)                      \
    T __tsan_atomic##bits##_##name(volatile T *p, T value, int order) \
    {                                                                 \
        return is_watched() ? exchange(p, value, order, rmw, PC)      \
                            : builtin(p, value, __ATOMIC_SEQ_CST);    \
    }
#define HETCOLL_BITS(bits, T)                                           \
    HETCOLL_ATOMIC(bits, T)                                             \
    HETCOLL_RMW(bits, T, exchange, __atomic_exchange_n, Rmw::kExchange) \
    HETCOLL_RMW(bits, T, fetch_add, __atomic_fetch_add, Rmw::kAdd)      \
    HETCOLL_RMW(bits, T, fetch_sub, __atomic_fetch_sub, Rmw::kSub)      \
    HETCOLL_RMW(bits, T, fetch_and, __atomic_fetch_and, Rmw::kAnd)      \
    HETCOLL_RMW(bits, T, fetch_or, __atomic_fetch_or, Rmw::kOr)         \
    HETCOLL_RMW(bits, T, fetch_xor, __atomic_fetch_xor, Rmw::kXor)
HETCOLL_BITS(8, unsigned char)
HETCOLL_BITS(16, unsigned short)
HETCOLL_BITS(32, unsigned int)
HETCOLL_BITS(64, unsigned long)
#undef HETCOLL_BITS
#undef HETCOLL_RMW
#undef HETCOLL_ATOMIC

void __tsan_atomic_thread_fence(int order)
{
    if (is_watched()) {
        announce(operation(Kind::kFence, nullptr, 0, order, PC));
    }
}
void __tsan_atomic_signal_fence(int) {}

// ---- The library ----

void *model_memcpy(void *to, const void *from, std::size_t bytes)
{
    plain_access(number(from), bytes, false, PC);
    plain_access(number(to), bytes, true, PC);
    return std::memcpy(to, from, bytes);
}
void *model_memmove(void *to, const void *from, std::size_t bytes)
{
    plain_access(number(from), bytes, false, PC);
    plain_access(number(to), bytes, true, PC);
    return std::memmove(to, from, bytes);
}
void *model_memset(void *to, int byte, std::size_t bytes)
{
    plain_access(number(to), bytes, true, PC);
    return std::memset(to, byte, bytes);
}

// std::mutex, whose first word says whether it is held.
int model_mutex_lock(unsigned int *mutex)
{
    if (!is_watched()) {
        return 0;
    }
    for (unsigned int held = 0; compare_exchange(mutex, &held, 1u, __ATOMIC_ACQUIRE, PC) == 0;
         held = 0) {
        model::wait();
    }
    return 0;
}
int model_mutex_trylock(unsigned int *mutex)
{
    unsigned int held = 0;
    if (!is_watched() || compare_exchange(mutex, &held, 1u, __ATOMIC_ACQUIRE, PC) != 0) {
        return 0;
    }
    return EBUSY;
}
int model_mutex_unlock(unsigned int *mutex)
{
    if (is_watched()) {
        store(mutex, 0u, __ATOMIC_RELEASE, PC);
    }
    return 0;
}
}

namespace model {

void copy(void *to, const void *from, std::size_t bytes) { model_memcpy(to, from, bytes); }

} // namespace model
