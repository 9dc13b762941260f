// The command line of hetcoll_bench.
#pragma once

#include "bench/collective.h"
#include "measure/buffer.h"
#include "measure/measure.h"
#include "measure/pattern.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

struct Options {
    ReduceOp op = ReduceOp::kSum;
    ElementKind kind = ElementKind::kFloat32;
    std::vector<std::size_t> sizes; // bytes
    Memory memory = Memory::kHost;
    std::vector<Collective> collectives{Collective::kAllreduce};
    bool in_place = false;
    bool both = false;                // out of place and in place, side by side
    bool gpu_context = false;         // hold one although the memory is the host's
    std::size_t own_kernel_bytes = 0; // 0: none; else of each rank's sum before each call
    Values values = Values::kExact;
    MeasureOptions measure;
    std::vector<std::string>
        algorithms;        // side by side, see Contenders; empty: what hetcoll chooses
    std::string json_path; // empty: no file; "-": stdout, and text on stderr
    double budget_s = 0;   // for all sizes together; 0: none
    bool progress = false; // a line a size on stderr, also where that is no terminal
    bool demo = false;
    std::size_t fusion_threshold = std::size_t{128} << 20; // bytes
};

// True: go on with `options`. False: exit with `exit_code`; the rank with `speaks` has printed all
// messages.
[[nodiscard]] bool parse_options(int argc, char **argv, bool speaks, Options &options,
                                 int &exit_code);

} // namespace hetcoll
