// The ranks of a communicator in one process, each with a Process, a GPU buffer and a bounce of its
// own. Ranks with equal words are on one node.
#pragma once

#include "engine/communicator/peers.h"
#include "engine_nodes.h"
#include "engine_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll::test {

class RanksOnGpus {
public:
    static constexpr std::size_t kBytes = 4096;
    // Changes to the settings of a rank.
    using Change = std::function<void(int rank, hetcoll_settings &settings)>;

    explicit RanksOnGpus(const std::vector<std::string> &words, const Change &change = {},
                         const std::function<void(std::vector<ProcessIdentity> &)> &disguise = {})
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        std::vector<ProcessIdentity> identities;
        for (std::size_t rank = 0; rank < words.size(); ++rank) {
            hetcoll_settings settings = default_settings();
            settings.node = words[rank].c_str();
            settings.rank = static_cast<int>(rank);
            if (change) {
                change(static_cast<int>(rank), settings);
            }
            processes.push_back(make_process(settings));
            identities.push_back(processes.back()->place().process());
            buffers.emplace_back(kBytes);
            infos.push_back(buffers.back().info(*processes.back()));
            bounces.push_back(std::move(
                *processes.back()->gpus().pool().borrow_device(infos.back(), Sends::kBounced)));
        }
        if (disguise) {
            disguise(identities);
        }
        nodes = std::make_unique<Nodes>(identities);
        EXPECT_TRUE(nodes->make_pages());
        messages.resize(words.size());
        for (std::size_t rank = 0; rank < words.size(); ++rank) {
            messages[rank] = std::make_unique<Messages>();
        }
        allow({.mapping = true, .tables = true});
        take_log();
    }

    // All know nothing of their peers.
    void allow(PeerSearch::Allowed allowed)
    {
        peers.clear();
        for (int rank = 0; rank < size(); ++rank) {
            peers.push_back(std::make_unique<Peers>(*processes[rank], group(rank), allowed));
        }
    }
    // The same without control pages.
    void forget_pages()
    {
        peers.clear();
        nodes = std::make_unique<Nodes>(std::vector(nodes->processes));
        allow({.mapping = true, .tables = true});
    }

    [[nodiscard]] int size() const { return static_cast<int>(processes.size()); }
    [[nodiscard]] NodeGroup &group(int rank) { return *nodes->group[rank]; }

    // step(rank) of all ranks in turn until each has said something else than kPending. True if all
    // have said kDone.
    bool run(const std::function<Progress(int rank)> &step)
    {
        std::vector<Progress> progress(processes.size(), Progress::kPending);
        for (int turn = 0; turn < 1000000; ++turn) {
            bool pending = false;
            for (int rank = 0; rank < size(); ++rank) {
                if (progress[rank] == Progress::kPending) {
                    progress[rank] = step(rank);
                    pending = true;
                }
            }
            if (!pending) {
                return std::count(progress.begin(), progress.end(), Progress::kDone) == size();
            }
            deliver();
        }
        return false;
    }
    // Some messages arrive.
    void deliver() { nodes->network.rank(0).progress(nodes->network.rank(0).context); }
    void start(int rank) { peers[rank]->start(infos[rank], *bounces[rank], *messages[rank], 1); }
    // All find out about their peers.
    bool find_peers()
    {
        for (int rank = 0; rank < size(); ++rank) {
            start(rank);
        }
        return run([this](int rank) { return peers[rank]->step(); });
    }

    std::vector<std::unique_ptr<Process>> processes;
    std::deque<DeviceBuffer> buffers;
    std::vector<PointerInfo> infos;
    std::vector<std::unique_ptr<DeviceBounce>> bounces;
    std::unique_ptr<Nodes> nodes;
    std::vector<std::unique_ptr<Messages>> messages;
    std::vector<std::unique_ptr<Peers>> peers;
};

} // namespace hetcoll::test
