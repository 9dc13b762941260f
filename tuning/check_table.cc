#include "tuning/check_table.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace hetcoll {
namespace {

struct Time {
    std::int64_t median_ns, spread_ns;
};

Time summarize(std::vector<std::int64_t> repetitions)
{
    std::sort(repetitions.begin(), repetitions.end());
    return {repetitions[repetitions.size() / 2], repetitions.back() - repetitions.front()};
}

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

using Times = std::map<Algorithm, Time>; // of one setup and size, the fastest variant of each

std::string describe(const Setup &setup, std::int64_t bytes)
{
    char text[96];
    std::snprintf(text, sizeof text, "%d ranks on %d node%s, %lld bytes", setup.ranks, setup.nodes,
                  setup.nodes == 1 ? "" : "s", static_cast<long long>(bytes));
    return text;
}

std::string slower(const Setup &setup, std::int64_t bytes, Algorithm chosen, const Time &time,
                   Algorithm best, const Time &best_time)
{
    char text[256];
    std::snprintf(
        text, sizeof text, "%s: %s %.1f us, but %s %.1f us: %.2f times, spreads %.1f and %.1f us",
        describe(setup, bytes).c_str(), algorithm_name(chosen),
        static_cast<double>(time.median_ns) / 1e3, algorithm_name(best),
        static_cast<double>(best_time.median_ns) / 1e3,
        static_cast<double>(time.median_ns) / static_cast<double>(best_time.median_ns),
        static_cast<double>(time.spread_ns) / 1e3, static_cast<double>(best_time.spread_ns) / 1e3);
    return text;
}

std::map<std::pair<Setup, std::int64_t>, Times> times_of(const Measurements &measurements)
{
    std::map<std::tuple<Setup, std::int64_t, Variant>, std::vector<std::int64_t>> repetitions;
    for (const Sample &sample : measurements.samples) {
        repetitions[{sample.setup, sample.bytes, sample.variant}].push_back(sample.median_ns);
    }
    std::map<std::pair<Setup, std::int64_t>, Times> times;
    for (auto &[key, list] : repetitions) {
        const auto &[setup, bytes, variant] = key;
        const Time time = summarize(std::move(list));
        const auto [known, is_new] = times[{setup, bytes}].try_emplace(variant.algorithm, time);
        if (!is_new && time.median_ns < known->second.median_ns) {
            known->second = time;
        }
    }
    return times;
}

} // namespace

TableCheck check_table(const Table &table, const Measurements &measurements, std::int64_t limit_ppm)
{
    TableCheck check;
    std::map<std::pair<Setup, std::int64_t>, std::int64_t> chosen_ns;
    for (const auto &[key, times] : times_of(measurements)) {
        const auto &[setup, bytes] = key;
        AlgorithmSet measured = 0;
        for (const auto &[algorithm, time] : times) {
            measured |= bit(algorithm);
        }
        const int rule = table.find(query_of(setup, bytes), measured);
        if (rule < 0) {
            continue;
        }
        ++check.choices;
        const Algorithm chosen = table.rule(rule).algorithm;
        const Time &time = times.at(chosen);
        const auto best =
            std::min_element(times.begin(), times.end(), [](const auto &a, const auto &b) {
                return a.second.median_ns < b.second.median_ns;
            });
        const std::int64_t loss = time.median_ns - best->second.median_ns;
        if (time.median_ns * 1'000'000 > best->second.median_ns * limit_ppm &&
            loss > std::max(time.spread_ns, best->second.spread_ns)) {
            check.exceptions.push_back(
                slower(setup, bytes, chosen, time, best->first, best->second));
        }
        chosen_ns[key] = time.median_ns;
        const auto half = chosen_ns.find({setup, bytes / 2});
        if (half != chosen_ns.end() && time.median_ns > 3 * half->second + time.spread_ns) {
            check.exceptions.push_back(describe(setup, bytes) +
                                       ": more than three times as long as half the size");
        }
    }
    return check;
}

} // namespace hetcoll
