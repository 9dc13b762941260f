// The output of hetcoll_sim: lines like those of hetcoll_bench, or JSON.
#pragma once

#include "plan/way.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {

using SimFacts = std::vector<std::pair<std::string, std::string>>; // key, value

struct SimRow {
    int ranks = 0, nodes = 0;
    std::size_t bytes = 0, element_bytes = 4;
    std::string asked, algorithm, path;
    Way way{}; // of switches that reduce only its algorithm and chunk mean something
    double us = 0, bound_us = 0;
    std::optional<double> predicted_us{}; // what hetcoll has a price for: not switches that reduce
    std::uint64_t transfers = 0;
    double cost_s = 0, cost_mib = 0; // of the simulation
};

void print_sim_facts(std::FILE *to, const SimFacts &facts);
void print_sim_heading(std::FILE *to);
// Prints the cost of the simulations that gave the rows.
void print_sim_costs(std::FILE *to, const std::vector<SimRow> &rows);
void print_sim_row(std::FILE *to, const SimRow &row);

[[nodiscard]] std::string print_sim_json(const SimFacts &facts, const std::vector<SimRow> &rows);

} // namespace hetcoll
