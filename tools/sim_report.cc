#include "tools/sim_report.h"

#include "base/counted.h"
#include "measure/json_document.h"
#include "plan/describe.h"

#include <algorithm>
#include <cstdio>

namespace hetcoll {
namespace {

double algbw_gbs(const SimRow &row)
{
    return row.us > 0 ? static_cast<double>(row.bytes) / row.us / 1e3 : 0;
}
double busbw_gbs(const SimRow &row) { return algbw_gbs(row) * 2 * (row.ranks - 1) / row.ranks; }

} // namespace

void print_sim_facts(std::FILE *to, const SimFacts &facts)
{
    for (const auto &[key, value] : facts) {
        std::fprintf(to, "# %-13s %s\n", key.c_str(), value.c_str());
    }
}

// At most 100 columns wide. The times of hetcoll_bench are one: a simulation repeats itself
// exactly.
void print_sim_heading(std::FILE *to)
{
    std::fprintf(to, "#%10s %-21s %-6s %10s %7s %7s %5s %5s %10s %10s %6s\n", "size", "algorithm",
                 "path", "time", "algbw", "busbw", "ranks", "nodes", "model", "bound", "ratio");
    std::fprintf(to, "#%10s %-21s %-6s %10s %7s %7s %5s %5s %10s %10s\n", "(B)", "", "", "(us)",
                 "(GB/s)", "(GB/s)", "", "", "(us)", "(us)");
}

void print_sim_row(std::FILE *to, const SimRow &row)
{
    char predicted[32] = "-";
    if (row.predicted_us) {
        std::snprintf(predicted, sizeof predicted, "%.1f", *row.predicted_us);
    }
    std::fprintf(to, "%11zu %-21s %-6s %10.1f %7.3f %7.3f %5d %5d %10s %10.1f %6.2f\n", row.bytes,
                 row.algorithm.c_str(), row.path.c_str(), row.us, algbw_gbs(row), busbw_gbs(row),
                 row.ranks, row.nodes, predicted, row.bound_us, row.us / row.bound_us);
    std::fflush(to);
}

void print_sim_costs(std::FILE *to, const std::vector<SimRow> &rows)
{
    std::size_t transfers = 0;
    double took_s = 0, most_mib = 0;
    for (const SimRow &row : rows) {
        transfers += row.transfers;
        took_s += row.cost_s;
        most_mib = std::max(most_mib, row.cost_mib);
    }
    std::fprintf(to, "# simulated %s in %.2f s, with at most %.0f MiB of memory\n",
                 counted(transfers, "transfer").c_str(), took_s, most_mib);
}

std::string print_sim_json(const SimFacts &facts, const std::vector<SimRow> &rows)
{
    Json json = json_document("hetcoll_sim");
    for (const auto &[key, value] : facts) {
        json[key] = value;
    }
    json["results"] = Json::array();
    for (const SimRow &row : rows) {
        Json result = {
            {"min_us", row.us},
            {"median_us", row.us},
            {"p90_us", row.us},
            {"p99_us", row.us},
            {"algbw_gbs", algbw_gbs(row)},
            {"busbw_gbs", busbw_gbs(row)},
            {"bytes", row.bytes},
            {"count", row.bytes / row.element_bytes},
            {"asked", row.asked},
            {"algorithm", row.algorithm},
            {"path", row.path},
            {"ranks", row.ranks},
            {"nodes", row.nodes},
            {"chunk_bytes", row.way.chunk_bytes},
            {"bound_us", row.bound_us},
            {"transfers", row.transfers},
            {"simulation_s", row.cost_s},
            {"simulation_mib", row.cost_mib},
        };
        if (row.predicted_us) {
            result["model_us"] = *row.predicted_us;
        }
        to_json(result, row.way);
        result["algorithm"] = row.algorithm; // of switches that reduce, too
        result["chunk_bytes"] = row.way.chunk_bytes;
        json["results"].push_back(result);
    }
    return json_text(json);
}

} // namespace hetcoll
