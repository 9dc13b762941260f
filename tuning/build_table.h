// From raw measurements to the rules of a tuning table. Pure and exact: whole numbers only, the
// same measurements give the same rules, byte for byte.
//
// For every setup it looks for the cheapest path through the measured sizes. A size costs how much
// slower than the best one the chosen algorithm is likely to be (tuning/curves.h), as far as that
// exceeds `noise_ppm`; every change of algorithm costs `switch_ppm`. So a change needs a difference
// that most jobs show, and one bump in a curve makes no rule. Between two sizes the change lies
// where straight lines through the measured times cross.
#pragma once

#include "tuning/measurements.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hetcoll {

struct BuildOptions {
    std::int64_t noise_ppm = 50'000; // below 5 % nothing is a difference
    // Two changes, there and back, must pay 10 %: a choice stays within 15 % of the best, the bound
    // that a table is checked against.
    std::int64_t switch_ppm = 50'000;
};

struct BuiltRules {
    std::vector<RuleSet> sets;
    std::vector<std::string> notes; // what a person should know, a line each
};

// `sets` are for measurements.machine. They cover all sizes, and communicators up to twice the
// largest measured one. One node, and one rank a GPU, stand for themselves only.
[[nodiscard]] BuiltRules build_rules(const Measurements &measurements,
                                     const BuildOptions &options = {});

// Work for another job: the sizes at which the measurements cannot tell whether some
// variant is as good as the best one, and the variants that may be the best there.
struct Undecided {
    std::set<std::int64_t> sizes;
    std::set<Variant> variants;
};
// Requires that all measurements are of one setup.
[[nodiscard]] Undecided undecided(const std::vector<Sample> &samples,
                                  const BuildOptions &options = {});

// Puts them into a table in place of what it has for that machine. `path` is where the measurements
// lie, relative to the table.
void replace_machine(TableFile &table, const Measurements &measurements, const BuiltRules &rules,
                     const std::string &path);

} // namespace hetcoll
