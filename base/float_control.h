// The floating-point control register of this thread: a program, or a library built with
// -ffast-math, may have it flush subnormal numbers to zero, round another way or trap. Ranks that
// add the same numbers get the same bits only if all of them add under the same register.
#pragma once

#if defined(__x86_64__) || defined(__aarch64__)
#include <cstdint>
#else
#include <cfenv>
#endif

namespace hetcoll {

// Until it goes, this thread computes under the default: round to nearest, subnormal numbers kept,
// nothing traps. Where that is so already it costs one read and one comparison. The caller's
// register comes back as it was, with the exceptions that it had noted.
class DefaultFloats {
public:
    DefaultFloats() noexcept : found_(read())
    {
        if (found_differs()) [[unlikely]] {
            write(kDefault);
        }
    }
    ~DefaultFloats()
    {
        if (found_differs()) [[unlikely]] {
            write(found_);
        }
    }
    // For code in which even a scope's end would cost.
    [[nodiscard]] static bool are_set() noexcept
    {
        return (read() & kControls) == (kDefault & kControls);
    }
    DefaultFloats(const DefaultFloats &) = delete;
    DefaultFloats &operator=(const DefaultFloats &) = delete;

private:
    [[nodiscard]] bool found_differs() const noexcept
    {
        return (found_ & kControls) != (kDefault & kControls);
    }

// The clobber orders loads and stores, and so the arithmetic between them, after the register.
#if defined(__x86_64__)
    using Register = std::uint32_t;                                           // MXCSR
    static constexpr Register kDefault = 0x1f80, kControls = ~Register{0x3f}; // exceptions noted

    static Register read() noexcept
    {
        Register value;
        __asm__ volatile("stmxcsr %0" : "=m"(value));
        return value;
    }
    static void write(Register value) noexcept
    {
        __asm__ volatile("ldmxcsr %0" : : "m"(value) : "memory");
    }
#elif defined(__aarch64__)
    using Register = std::uint64_t; // FPCR, which notes no exceptions
    static constexpr Register kDefault = 0, kControls = ~Register{0};

    static Register read() noexcept
    {
        Register value;
        __asm__ volatile("mrs %0, fpcr" : "=r"(value));
        return value;
    }
    static void write(Register value) noexcept
    {
        __asm__ volatile("msr fpcr, %0" : : "r"(value) : "memory");
    }
#else
    using Register = int; // all that C++ knows of it
    static constexpr Register kDefault = FE_TONEAREST, kControls = ~0;

    static Register read() noexcept { return std::fegetround(); }
    static void write(Register value) noexcept { std::fesetround(value); }
#endif

    const Register found_;
};

} // namespace hetcoll
