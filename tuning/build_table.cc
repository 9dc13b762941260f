#include "tuning/build_table.h"

#include "base/counted.h"
#include "tuning/curves.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

namespace hetcoll {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
// A switch lies on a whole number of elements of any kind.
constexpr std::int64_t kSizeMultiple = 16;
constexpr int kLargestGrowth = 3; // of the time, when the size doubles

// By how much a variant is likely to be slower than the best one at a size, beyond what is no
// difference.
std::int64_t excess_ppm(const Curves &curves, std::size_t variant, std::size_t size,
                        std::int64_t noise_ppm)
{
    return curves.measured(variant, size)
               ? std::max<std::int64_t>(curves.loss_ppm(variant, size).likely() - noise_ppm, 0)
               : Curves::kNever;
}

struct Cost {
    std::int64_t ppm = 0;      // excess and changes
    std::int64_t loss_ppm = 0; // on a tie, the faster one: sum of its losses
    friend auto operator<=>(const Cost &, const Cost &) = default;
};

// The variant of each size on the cheapest path; on a tie the earlier one.
std::vector<std::size_t> cheapest_path(const Curves &curves, const BuildOptions &options)
{
    const std::size_t variants = curves.variants().size(), sizes = curves.sizes().size();
    std::vector<Cost> cost(variants);
    std::vector<std::vector<std::size_t>> from(sizes, std::vector<std::size_t>(variants));
    for (std::size_t s = 0; s < sizes; ++s) {
        const std::size_t cheapest =
            static_cast<std::size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
        std::vector<Cost> next(variants);
        for (std::size_t v = 0; v < variants; ++v) {
            Cost change = cost[cheapest];
            change.ppm += options.switch_ppm;
            const bool stay = s == 0 || cost[v] <= change;
            from[s][v] = stay ? v : cheapest;
            next[v] = stay ? cost[v] : change;
            next[v].ppm =
                std::min(Curves::kNever, next[v].ppm + excess_ppm(curves, v, s, options.noise_ppm));
            next[v].loss_ppm += curves.measured(v, s) ? curves.loss_ppm(v, s).middle : 0;
        }
        cost = std::move(next);
    }
    std::vector<std::size_t> path(sizes);
    std::size_t at =
        static_cast<std::size_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    for (std::size_t s = sizes; s-- > 0;) {
        path[s] = at;
        at = from[s][at];
    }
    return path;
}

// The last size that `before` serves, when `after` serves sizes[s + 1].
std::int64_t last_size(const Curves &curves, std::size_t before, std::size_t after, std::size_t s)
{
    const std::int64_t low = curves.sizes()[s], high = curves.sizes()[s + 1];
    if (!curves.measured(before, s + 1)) { // perhaps it cannot run there
        return low;
    }
    if (!curves.measured(after, s)) {
        return high - 1;
    }
    const std::int64_t gain_low = curves.longer_ns(after, before, s);
    const std::int64_t gain_high = curves.longer_ns(before, after, s + 1);
    if (gain_low + gain_high == 0) {
        return low;
    }
    const std::int64_t share_ppm = gain_low * kMillion / (gain_low + gain_high);
    const std::int64_t share =
        (high - low) / kMillion * share_ppm + (high - low) % kMillion * share_ppm / kMillion;
    return std::min((low + share) / kSizeMultiple * kSizeMultiple, high - 1);
}

std::vector<SizeRule> rules_of(const Curves &curves, const std::vector<std::size_t> &path)
{
    std::vector<SizeRule> rules;
    std::int64_t first = 0;
    for (std::size_t s = 0; s < path.size(); ++s) {
        const bool last = s + 1 == path.size();
        if (!last && path[s + 1] == path[s]) {
            continue;
        }
        const Variant &variant = curves.variants()[path[s]];
        std::int64_t end = Range::kInfinite;
        if (!last) { // never before the size that was measured
            end = std::max(last_size(curves, path[s], path[s + 1], s), curves.sizes()[s]);
        }
        rules.push_back({.bytes = {first, end},
                         .algorithm = variant.algorithm,
                         .between_nodes = variant.between_nodes,
                         .chunk_bytes = static_cast<std::size_t>(variant.chunk_bytes)});
        first = last ? 0 : end + 1;
    }
    return rules;
}

std::string place(const Setup &setup)
{
    char text[96];
    std::snprintf(text, sizeof text, "%d ranks on %s, %d a GPU", setup.ranks,
                  counted(setup.nodes, "node").c_str(), setup.ranks_per_gpu);
    return text;
}

// Where the time jumps although the size does not: a person should look.
void note_jumps(const Curves &curves, const std::vector<std::size_t> &path, const Setup &setup,
                std::vector<std::string> &notes)
{
    for (std::size_t s = 0; s + 1 < path.size(); ++s) {
        const std::int64_t before = curves.median_ns(path[s], s);
        const std::int64_t after = curves.median_ns(path[s + 1], s + 1);
        if (curves.sizes()[s + 1] > 2 * curves.sizes()[s] || after <= kLargestGrowth * before) {
            continue;
        }
        char text[256];
        std::snprintf(
            text, sizeof text,
            "%s: %s takes %.1f us at %lld bytes, %s only %.1f us at %lld: more than %d "
            "times for at most twice the size",
            place(setup).c_str(), algorithm_name(curves.variants()[path[s + 1]].algorithm),
            static_cast<double>(after) / 1e3, static_cast<long long>(curves.sizes()[s + 1]),
            algorithm_name(curves.variants()[path[s]].algorithm), static_cast<double>(before) / 1e3,
            static_cast<long long>(curves.sizes()[s]), kLargestGrowth);
        notes.emplace_back(text);
    }
}

// ---- which communicators a measured one stands for ----

// Whether a measured 1 stands for other values too.
enum class One : std::uint8_t { kAlone, kAsOthers };

// The range that `value` stands for among all measured values.
Range stands_for(std::int64_t value, const std::set<std::int64_t> &measured, One one)
{
    const bool alone = one == One::kAlone;
    const auto at = measured.find(value);
    Range range{1, 2 * value};
    if (alone && value == 1) {
        return {1, 1};
    }
    if (at != measured.begin()) {
        range.min = (*std::prev(at) + value) / 2 + 1;
        range.min = alone && *std::prev(at) == 1 ? 2 : range.min;
    } else if (alone) {
        range.min = 2;
    }
    if (std::next(at) != measured.end()) {
        range.max = (value + *std::next(at)) / 2;
    }
    return range;
}

using Group = std::vector<Setup>;

template <class Value> std::set<std::int64_t> values_of(const Group &group, Value value)
{
    std::set<std::int64_t> values;
    for (const Setup &setup : group) {
        values.insert(static_cast<std::int64_t>(value(setup)));
    }
    return values;
}

template <class Value, class Then> void split(const Group &group, Value value, Then then)
{
    const std::set<std::int64_t> values = values_of(group, value);
    for (const std::int64_t each : values) {
        Group part;
        std::copy_if(group.begin(), group.end(), std::back_inserter(part), [&](const Setup &setup) {
            return static_cast<std::int64_t>(value(setup)) == each;
        });
        then(part, each, values);
    }
}

struct PlacedSetup {
    Setup setup;
    RuleSet set;
};

// The same ranks on the same nodes, laid out in several ways. Each stands for the layouts within
// its own, the narrowest first; the most even one stands for the rest.
void place_layouts(Group group, const RuleSet &outer, std::vector<PlacedSetup> &placed,
                   std::vector<std::string> &notes)
{
    const auto layout = [](const Setup &setup) {
        return Range{setup.ranks_per_node_min, setup.ranks_per_node_max};
    };
    std::stable_sort(group.begin(), group.end(), [&](const Setup &a, const Setup &b) {
        return layout(a).max - layout(a).min < layout(b).max - layout(b).min;
    });
    Range widest = layout(group[0]);
    for (const Setup &setup : group) {
        if (group.size() > 1 && !layout(setup).contains(widest)) {
            notes.push_back(place(setup) + ": not used, its layout overlaps another one's");
        } else if (group.size() > 1) {
            widest = layout(setup);
            placed.push_back({setup, outer});
            placed.back().set.ranks_per_node = widest;
        }
    }
    placed.push_back({group[0], outer});
}

std::vector<PlacedSetup> place_setups(const Group &all, std::vector<std::string> &notes)
{
    std::vector<PlacedSetup> placed;
    RuleSet set;
    const auto by_ranks = [&](const Group &group) {
        split(
            group, [](const Setup &s) { return s.ranks; },
            [&](const Group &part, std::int64_t ranks, const std::set<std::int64_t> &measured) {
                RuleSet inner = set;
                inner.ranks = stands_for(ranks, measured, One::kAsOthers);
                place_layouts(part, inner, placed, notes);
            });
    };
    const auto by_nodes = [&](const Group &group) {
        split(
            group, [](const Setup &s) { return s.nodes; },
            [&](const Group &part, std::int64_t nodes, const std::set<std::int64_t> &measured) {
                set.nodes = stands_for(nodes, measured, One::kAlone);
                by_ranks(part);
            });
    };
    const auto by_sharing = [&](const Group &group) {
        split(
            group, [](const Setup &s) { return s.ranks_per_gpu; },
            [&](const Group &part, std::int64_t ranks, const std::set<std::int64_t> &measured) {
                set.ranks_per_gpu = stands_for(ranks, measured, One::kAlone);
                by_nodes(part);
            });
    };
    const auto by_element = [&](const Group &group) {
        split(
            group, [](const Setup &s) { return s.element_bytes; },
            [&](const Group &part, std::int64_t bytes, const std::set<std::int64_t> &measured) {
                set.element_bytes = stands_for(bytes, measured, One::kAsOthers);
                if (bytes == *measured.begin()) {
                    set.element_bytes.min = 0;
                }
                if (bytes == *measured.rbegin()) {
                    set.element_bytes.max = Range::kInfinite;
                }
                by_sharing(part);
            });
    };
    const auto by_op = [&](const Group &group) {
        split(
            group, [](const Setup &s) { return s.op; },
            [&](const Group &part, std::int64_t op, const std::set<std::int64_t> &measured) {
                set.op.reset();
                if (measured.size() > 1) {
                    set.op = static_cast<OpClass>(op);
                }
                by_element(part);
            });
    };
    split(
        all, [](const Setup &s) { return s.memory; },
        [&](const Group &part, std::int64_t memory, const std::set<std::int64_t> &) {
            set.memory = static_cast<CallMemory>(memory);
            by_op(part);
        });
    return placed;
}

} // namespace

BuiltRules build_rules(const Measurements &measurements, const BuildOptions &options)
{
    std::map<Setup, std::vector<const Sample *>> samples;
    for (const Sample &sample : measurements.samples) {
        samples[sample.setup].push_back(&sample);
    }
    Group setups;
    for (const auto &[setup, of_setup] : samples) {
        setups.push_back(setup);
    }
    BuiltRules built;
    for (PlacedSetup &placed : place_setups(setups, built.notes)) {
        const Curves curves(samples[placed.setup]);
        const std::vector<std::size_t> path = cheapest_path(curves, options);
        placed.set.machine = measurements.machine;
        placed.set.rules = rules_of(curves, path);
        if (placed.set.ranks_per_node == Range{}) {
            note_jumps(curves, path, placed.setup, built.notes);
        }
        built.sets.push_back(std::move(placed.set));
    }
    return built;
}

Undecided undecided(const std::vector<Sample> &samples, const BuildOptions &options)
{
    std::vector<const Sample *> all;
    for (const Sample &sample : samples) {
        all.push_back(&sample);
    }
    const Curves curves(all);
    Undecided open;
    for (std::size_t s = 0; s < curves.sizes().size(); ++s) {
        std::set<Variant> may_be_best;
        bool doubt = false;
        for (std::size_t v = 0; v < curves.variants().size(); ++v) {
            const Loss loss = curves.measured(v, s) ? curves.loss_ppm(v, s)
                                                    : Loss{Curves::kNever, Curves::kNever};
            if (loss.least <= options.noise_ppm) {
                may_be_best.insert(curves.variants()[v]);
                doubt = doubt || loss.middle > options.noise_ppm;
            }
        }
        if (doubt) {
            open.sizes.insert(curves.sizes()[s]);
            open.variants.merge(may_be_best);
        }
    }
    return open;
}

void replace_machine(TableFile &table, const Measurements &measurements, const BuiltRules &rules,
                     const std::string &path)
{
    const Machine fresh{.name = measurements.machine,
                        .fingerprint = measurements.fingerprint,
                        .measurements = path,
                        .cpu = limits_of(measurements.cpu)};
    const auto same = [&](const Machine &machine) { return machine.name == fresh.name; };
    const auto old = std::find_if(table.machines.begin(), table.machines.end(), same);
    if (old != table.machines.end()) {
        *old = fresh;
    } else {
        table.machines.push_back(fresh);
    }
    std::erase_if(table.sets, [&](const RuleSet &set) { return set.machine == fresh.name; });
    table.sets.insert(table.sets.begin(), rules.sets.begin(), rules.sets.end());
}

} // namespace hetcoll
