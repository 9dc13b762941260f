#include "tuning/check_table.h"

#include "base/counted.h"

#include <cstdio>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

Query query_of(const Setup &setup, std::int64_t bytes)
{
    Query query;
    query.bytes = static_cast<std::size_t>(bytes);
    query.element_bytes = static_cast<std::size_t>(setup.element_bytes);
    query.op = setup.op;
    query.memory = setup.memory;
    query.ranks = setup.ranks;
    query.nodes = setup.nodes;
    query.ranks_per_node_min = setup.ranks_per_node_min;
    query.ranks_per_node_max = setup.ranks_per_node_max;
    query.ranks_per_gpu = setup.ranks_per_gpu;
    return query;
}

std::string describe(const Setup &setup, std::int64_t bytes)
{
    char text[96];
    std::snprintf(text, sizeof text, "%d ranks on %s, %lld bytes", setup.ranks,
                  counted(setup.nodes, "node").c_str(), static_cast<long long>(bytes));
    return text;
}

std::size_t variant_of(const Curves &curves, const SizeRule &rule, std::size_t s)
{
    const auto distance = [&](std::size_t v) {
        const Variant &variant = curves.variants()[v];
        const bool can = curves.measured(v, s) && variant.algorithm == rule.algorithm;
        const bool same = variant.between_nodes == rule.between_nodes &&
                          variant.chunk_bytes == static_cast<std::int64_t>(rule.chunk_bytes);
        return std::pair(!can ? 2 : same ? 0 : 1, can ? curves.loss_ppm(v, s).middle : 0);
    };
    std::size_t best = 0;
    for (std::size_t v = 1; v < curves.variants().size(); ++v) {
        best = distance(v) < distance(best) ? v : best;
    }
    return best;
}

// Checks the rules for one setup, size by size.
class SetupCheck {
public:
    SetupCheck(const Table &table, const Setup &setup, const Curves &curves, TableCheck &check)
        : table_(table), setup_(setup), curves_(curves), check_(check)
    {
    }

    void look(std::size_t s, std::int64_t limit_ppm)
    {
        const auto found = chosen_variant(table_, setup_, curves_, s);
        if (!found) {
            return;
        }
        ++check_.choices;
        const std::int64_t bytes = curves_.sizes()[s];
        const std::size_t chosen = *found;
        const Loss loss = curves_.loss_ppm(chosen, s);
        if (kMillion + loss.least > limit_ppm) {
            check_.exceptions.push_back(slower(chosen, s, loss));
        }
        const auto half = chosen_.find(bytes / 2);
        if (half != chosen_.end()) {
            const auto growth =
                curves_.growth_ppm(chosen, s, half->second.first, half->second.second);
            if (!growth.empty() && loss_of(growth).least > 3 * kMillion) {
                check_.exceptions.push_back(describe(setup_, bytes) +
                                            ": more than three times as long as half the size");
            }
        }
        chosen_[bytes] = {chosen, s};
    }

private:
    [[nodiscard]] std::string slower(std::size_t chosen, std::size_t s, const Loss &loss) const
    {
        std::size_t best = chosen;
        for (std::size_t v = 0; v < curves_.variants().size(); ++v) {
            if (curves_.measured(v, s) &&
                curves_.loss_ppm(v, s).middle < curves_.loss_ppm(best, s).middle) {
                best = v;
            }
        }
        char text[256];
        std::snprintf(
            text, sizeof text,
            "%s: %s %.1f us, but %s %.1f us: %.2f times, in three jobs of four at least %.2f",
            describe(setup_, curves_.sizes()[s]).c_str(),
            variant_name(curves_.variants()[chosen]).c_str(),
            static_cast<double>(curves_.median_ns(chosen, s)) / 1e3,
            variant_name(curves_.variants()[best]).c_str(),
            static_cast<double>(curves_.median_ns(best, s)) / 1e3,
            1 + static_cast<double>(loss.middle) / 1e6, 1 + static_cast<double>(loss.least) / 1e6);
        return text;
    }

    const Table &table_;
    const Setup &setup_;
    const Curves &curves_;
    TableCheck &check_;
    // Variant and size, by bytes.
    std::map<std::int64_t, std::pair<std::size_t, std::size_t>> chosen_;
};

} // namespace

std::optional<std::size_t> chosen_variant(const Table &table, const Setup &setup,
                                          const Curves &curves, std::size_t s)
{
    AlgorithmSet measured = 0;
    for (std::size_t v = 0; v < curves.variants().size(); ++v) {
        if (curves.measured(v, s)) {
            measured |= bit(curves.variants()[v].algorithm);
        }
    }
    const int rule = table.find(query_of(setup, curves.sizes()[s]), measured);
    return rule < 0 ? std::nullopt : std::optional(variant_of(curves, table.rule(rule), s));
}

TableCheck check_table(const Table &table, const Measurements &measurements, std::int64_t limit_ppm)
{
    std::map<Setup, std::vector<const Sample *>> samples;
    for (const Sample &sample : measurements.samples) {
        samples[sample.setup].push_back(&sample);
    }
    TableCheck check;
    for (const auto &[setup, of_setup] : samples) {
        const Curves curves(of_setup);
        SetupCheck each(table, setup, curves, check);
        for (std::size_t s = 0; s < curves.sizes().size(); ++s) {
            each.look(s, limit_ppm);
        }
    }
    return check;
}

} // namespace hetcoll
