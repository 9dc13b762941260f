// The benchmark's output: header lines as `# key value`, then one line a size; or JSON.
#pragma once

#include "measure/machine.h"
#include "measure/measure.h"
#include "measure/own_kernels.h"

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

struct Row {
    std::string section; // heading of the rows that belong together; may be empty
    std::size_t bytes, count;
    Measured measured;
    std::string asked; // the way, of several side by side; else empty
    std::string collective = "allreduce";
    double bus_factor = 0;              // bus bandwidth over algorithm bandwidth
    std::optional<Measured> in_place{}; // `measured` then is out of place
    std::optional<CallFloor> floor{};   // of a small vector
};

struct TableStyle {
    bool host_copy; // show the columns of the comparison
    bool emulated;  // say that the ratio is no GPU speed
    int ranks;
    bool asked = false; // show which way was asked for
    bool both = false;  // show the columns of the call in place
    bool floor = false; // show the columns of the floor
    std::FILE *to = stdout;
};

void print_facts(const Facts &facts, const TableStyle &style);
void print_heading(const TableStyle &style);
void print_row(const TableStyle &style, const Row &row);
// The mean bus bandwidth of all rows, in both places if they have both, in nccl-tests' words.
void print_average(const TableStyle &style, const std::vector<Row> &rows);

[[nodiscard]] std::string print_json(const Facts &facts, const TableStyle &style,
                                     const std::vector<Row> &rows);

} // namespace hetcoll
