// The command line of hetcoll_tune.
#pragma once

#include "base/status.h"

#include <string>
#include <vector>

namespace hetcoll {

struct TuneOptions {
    bool quick = false;
    double limit_s = 0; // 0: by the mode
    int repetitions = 3;
    int most_repetitions = 9;      // of what they leave undecided
    std::vector<int> ranks, nodes; // empty: by the machine, one node
    bool fake_nodes = false;
    std::string sizes;                   // empty: by the mode
    std::vector<std::string> algorithms; // as hetcoll_bench takes them
    std::string output;                  // empty: where hetcoll looks
    std::string html;                    // a page about it; empty: none
    std::string machine;                 // empty: by its GPUs and links
    std::vector<std::string> from_measurements;
    std::string simulate; // a cluster to simulate; empty: measure this machine
    std::string hetcoll_sim;
    std::string check; // a table to compare with them; empty: make one
    std::string mpirun;
    std::vector<std::string> mpirun_options;
};

// The orders of one job.
struct WorkerOptions {
    bool wanted = false;
    std::string sizes, algorithms;
    double seconds = 0; // to measure
    int deadline_s = 0; // then it ends itself
    int fake_nodes = 1;
    bool verify = false;
};

// True: go on. False: exit with `exit_code`; all messages have been printed.
[[nodiscard]] bool parse_tune_options(int argc, char **argv, TuneOptions &options,
                                      WorkerOptions &worker, int &exit_code);

} // namespace hetcoll
