// Flags and differences by their names, in what GoogleTest prints of them.
#pragma once

#include "engine/meeting/call_signature.h"
#include "engine/meeting/flags.h"

#include <ostream>
#include <span>

namespace hetcoll {
namespace test {

template <class T> struct Named {
    T bit;
    const char *name;
};
inline constexpr Named<Flags> kFlagNames[] = {
    {kDeviceMemory, "kDeviceMemory"},
    {kHostMemory, "kHostMemory"},
    {kMustStage, "kMustStage"},
    {kFailed, "kFailed"},
    {kNoMapping, "kNoMapping"},
    {kNewBuffers, "kNewBuffers"},
    {kUnknownOp, "kUnknownOp"},
    {kOutOfRange, "kOutOfRange"},
    {kMemoryFreed, "kMemoryFreed or kNoPage"},
    {kNoRecord, "kNoRecord"},
    {kUnreachable, "kUnreachable"},
    {kNoAggregator, "kNoAggregator"},
    {kNeverMap, "kNeverMap"},
    {kNewDevice, "kNewDevice"},
    {kInputGone, "kInputGone"},
    {kCallsDiffer, "kCallsDiffer"},
};
static_assert(kMemoryFreed == kNoPage);
inline constexpr Named<Differences> kDifferenceNames[] = {
    {Differences::kCollective, "kCollective"},
    {Differences::kType, "kType"},
    {Differences::kOp, "kOp"},
    {Differences::kRoot, "kRoot"},
    {Differences::kCount, "kCount"},
    {Differences::kNumber, "kNumber"},
    {Differences::kNoMemory, "kNoMemory"},
    {Differences::kCaptures, "kCaptures"},
};

template <class T> void print_bits(T bits, std::span<const Named<T>> names, std::ostream &to)
{
    const char *separator = "";
    for (const auto &[bit, name] : names) {
        if ((bits & bit) != T{}) {
            to << separator << name;
            separator = " | ";
        }
    }
    to << (bits == T{} ? "none" : "");
}

} // namespace test

inline std::ostream &operator<<(std::ostream &to, Flags flags)
{
    test::print_bits<Flags>(flags, test::kFlagNames, to);
    return to;
}
inline std::ostream &operator<<(std::ostream &to, Differences differences)
{
    test::print_bits<Differences>(differences, test::kDifferenceNames, to);
    return to;
}

} // namespace hetcoll
