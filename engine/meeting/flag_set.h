// The flags of a rank in a meeting: sixteen bits, combined over all ranks by OR. A type of its own,
// so that it mixes with no other integer.
#pragma once

#include <cstdint>

namespace hetcoll {

enum class Flags : std::uint16_t {}; // none: Flags{}

[[nodiscard]] constexpr Flags operator|(Flags a, Flags b) noexcept
{
    return static_cast<Flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr Flags operator&(Flags a, Flags b) noexcept
{
    return static_cast<Flags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
[[nodiscard]] constexpr Flags operator~(Flags a) noexcept
{
    return static_cast<Flags>(static_cast<std::uint16_t>(~static_cast<unsigned>(a)));
}
constexpr Flags &operator|=(Flags &a, Flags b) noexcept { return a = a | b; }
constexpr Flags &operator&=(Flags &a, Flags b) noexcept { return a = a & b; }

// Whether some of `bits` are among the flags.
[[nodiscard]] constexpr bool any(Flags flags, Flags bits) noexcept
{
    return (flags & bits) != Flags{};
}
// `bits` on a condition.
[[nodiscard]] constexpr Flags flags_if(bool condition, Flags bits) noexcept
{
    return condition ? bits : Flags{};
}

} // namespace hetcoll
