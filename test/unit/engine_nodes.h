// Ranks of this process that take themselves for ranks on several nodes.
#pragma once

#include "engine/meeting/node_group.h"
#include "engine_flag_names.h"
#include "memory_network.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hetcoll::test {

// Each rank's node is its number in `hosts`.
inline std::vector<ProcessIdentity> processes_on(const std::vector<int> &hosts)
{
    const auto self = node_identity(nullptr);
    EXPECT_TRUE(self.ok());
    std::vector<ProcessIdentity> processes;
    for (const int host : hosts) {
        ProcessIdentity process = self->process;
        process.host += static_cast<std::uint64_t>(host);
        processes.push_back(process);
    }
    return processes;
}

// The groups of all ranks of a communicator.
struct Nodes {
    // `settings` of a rank; missing ones are 0.
    explicit Nodes(const std::vector<int> &hosts, const std::vector<std::uint64_t> &settings = {})
        : Nodes(processes_on(hosts), settings)
    {
    }
    explicit Nodes(std::vector<ProcessIdentity> of_ranks,
                   const std::vector<std::uint64_t> &settings = {})
        : processes(std::move(of_ranks)), network(static_cast<int>(processes.size()), true, 3)
    {
        for (std::size_t rank = 0; rank < processes.size(); ++rank) {
            p2p.push_back(network.rank(static_cast<int>(rank)));
        }
        for (std::size_t rank = 0; rank < processes.size(); ++rank) {
            group.push_back(std::make_unique<NodeGroup>(
                p2p[rank], processes, rank < settings.size() ? settings[rank] : 0));
        }
    }
    [[nodiscard]] int size() const { return static_cast<int>(processes.size()); }
    [[nodiscard]] bool make_pages()
    {
        std::vector<Progress> progress(processes.size(), Progress::kPending);
        for (int turn = 0; turn < 100000; ++turn) {
            bool pending = false;
            for (std::size_t rank = 0; rank < group.size(); ++rank) {
                if (progress[rank] == Progress::kPending) {
                    progress[rank] = group[rank]->make_pages(1);
                    pending = true;
                }
            }
            if (!pending) {
                return std::count(progress.begin(), progress.end(), Progress::kDone) ==
                       static_cast<long>(progress.size());
            }
            network.rank(0).progress(network.rank(0).context);
        }
        return false;
    }

    std::vector<ProcessIdentity> processes;
    MemoryNetwork network;
    std::vector<hetcoll_p2p> p2p;
    std::vector<std::unique_ptr<NodeGroup>> group;
};

} // namespace hetcoll::test
