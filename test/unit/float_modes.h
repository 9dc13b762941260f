// The settings that programs, and libraries built with -ffast-math, make in a thread's
// floating-point control register.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hetcoll::test {

enum class FloatMode : std::uint8_t { kFlush, kUp, kDown, kTowardZero, kTraps };
inline constexpr FloatMode kFloatModes[] = {FloatMode::kFlush, FloatMode::kUp, FloatMode::kDown,
                                            FloatMode::kTowardZero, FloatMode::kTraps};
inline constexpr const char *kFloatModeNames[] = {"flush", "up", "down", "zero", "traps"};

// This thread's register, without the exceptions that it has noted.
inline std::uint64_t float_control() noexcept
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu;
#elif defined(__aarch64__)
    std::uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
#else
    return static_cast<std::uint64_t>(std::fegetround());
#endif
}

inline void flush_subnormals() noexcept
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); // FTZ and DAZ
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(float_control() | 1u << 24));
#endif
}

// In this thread, until it goes.
class UnderFloatMode {
public:
    explicit UnderFloatMode(FloatMode mode)
    {
        std::fegetenv(&found_);
        switch (mode) {
        case FloatMode::kFlush: flush_subnormals(); break;
        case FloatMode::kUp: std::fesetround(FE_UPWARD); break;
        case FloatMode::kDown: std::fesetround(FE_DOWNWARD); break;
        case FloatMode::kTowardZero: std::fesetround(FE_TOWARDZERO); break;
        case FloatMode::kTraps: feenableexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO); break;
        }
        set_ = float_control();
    }
    ~UnderFloatMode() { std::fesetenv(&found_); }
    UnderFloatMode(const UnderFloatMode &) = delete;
    UnderFloatMode &operator=(const UnderFloatMode &) = delete;

    [[nodiscard]] bool is_as_set() const noexcept { return float_control() == set_; }

private:
    std::fenv_t found_{};
    std::uint64_t set_ = 0;
};

} // namespace hetcoll::test
