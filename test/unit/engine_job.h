// All ranks of one allreduce as objects of one process, in host memory: executors over messages in
// memory, or over each other's vectors.
#pragma once

#include "engine/communicator/executor.h"
#include "memory_network.h"
#include "plan/build_schedule.h"
#include "transport/host_bounce.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

namespace hetcoll::test {

// A host bounce whose n-th operation fails, as a driver's would.
class FailingBounce final : public Bounce {
public:
    FailingBounce(std::unique_ptr<HostBounce> inner, int failing)
        : inner_(std::move(inner)), left_(failing)
    {
    }
    Status divide(int slots, int lanes) override { return inner_->divide(slots, lanes); }
    std::size_t slot_bytes() const noexcept override { return inner_->slot_bytes(); }
    Status start_read(int slot, const void *from, std::size_t bytes) override
    {
        return fails() ? failure() : inner_->start_read(slot, from, bytes);
    }
    Result<bool> read_done(int) override { return true; }
    const void *message(int slot) const noexcept override { return inner_->message(slot); }
    bool reads_out() const noexcept override { return false; }
    void *landing(int slot) noexcept override { return inner_->landing(slot); }
    Status start_apply(int slot, const Apply &apply) override
    {
        return fails() ? failure() : inner_->start_apply(slot, apply);
    }
    Status start_fold(int slot, const Pull &fold) override
    {
        return fails() ? failure() : inner_->start_fold(slot, fold);
    }
    Result<bool> apply_done(int) override { return true; }
    Status start_pull(int lane, int slot, const Pull &pull) override
    {
        return fails() ? failure() : inner_->start_pull(lane, slot, pull);
    }
    Result<bool> pull_done(int, int) override { return true; }

private:
    bool fails() { return left_ != 0 && --left_ == 0; }
    static Status failure() { return error(Errc::kDriver, "injected"); }

    std::unique_ptr<HostBounce> inner_;
    int left_; // operations until the failing one; 0: none
};

struct JobOptions {
    bool in_place = false, synchronous = false;
    std::vector<int> node_of{}; // ranks with equal numbers map each other's vectors; empty: none do
    int failing = 0;            // operation of the last rank; 0: none
    std::size_t chunk_bytes = 256, slot_bytes = 256; // small, so that steps take many chunks
    // The vectors' content, for a test that fills them: as many bytes as `count` doubles.
    ReduceOp op = ReduceOp::kSum;
    ElementKind kind = ElementKind::kFloat64;
};

// Nodes of `ranks` neighbouring ranks.
inline std::vector<int> neighbours(int size, int ranks)
{
    std::vector<int> node_of;
    for (int rank = 0; rank < size; ++rank) {
        node_of.push_back(rank / ranks);
    }
    return node_of;
}

// All ranks of one allreduce of doubles, in turns.
struct Job {
    Job(const std::vector<Schedule> &schedules, std::size_t count, const JobOptions &options)
        : Job(static_cast<int>(schedules.size()), count, options.synchronous)
    {
        const bool in_place = options.in_place;
        const std::size_t slot_bytes = options.slot_bytes;
        const int size = static_cast<int>(schedules.size());
        schedule = schedules;
        for (int rank = 0; rank < size; ++rank) {
            output[rank] = in_place ? input[rank] : std::vector<double>(count, std::nan(""));
            bounce.push_back(
                std::make_unique<FailingBounce>(std::move(*HostBounce::create(slot_bytes)),
                                                rank == size - 1 ? options.failing : 0));
            adapter_bounce.push_back(std::move(*HostBounce::create(slot_bytes)));
        }
        for (int rank = 0; rank < size; ++rank) {
            map_node(rank, options.node_of, in_place);
            executor[rank].start(
                schedule[rank], network.rank(rank), 1, *bounce[rank],
                {bytes_of(in_place ? output[rank] : input[rank]), bytes_of(output[rank]),
                 count * sizeof(double) / element_bytes(options.kind), options.op, options.kind},
                options.chunk_bytes, false, {mapped[rank], steps[rank], progress[rank].data()},
                &second.emplace_back(adapters.rank(rank), *adapter_bounce[rank]));
        }
    }
    static std::vector<Schedule> schedules_of(Algorithm algorithm, int size)
    {
        std::vector<Schedule> all;
        for (int rank = 0; rank < size; ++rank) {
            all.push_back(build_schedule({.algorithm = algorithm}, rank, {.ranks = size}));
        }
        return all;
    }
    // True if every rank's schedule ends.
    bool run()
    {
        std::vector<Progress> state(executor.size(), Progress::kPending);
        for (int turn = 0; turn < 1000000; ++turn) {
            bool pending = false;
            for (std::size_t rank = 0; rank < executor.size(); ++rank) {
                if (state[rank] == Progress::kPending) {
                    state[rank] = executor[rank].step();
                    pending |= state[rank] == Progress::kPending;
                }
            }
            if (!pending) {
                return std::count(state.begin(), state.end(), Progress::kDone) ==
                       static_cast<long>(state.size());
            }
            network.rank(0).progress(network.rank(0).context);
            adapters.rank(0).progress(adapters.rank(0).context);
        }
        return false;
    }

    static std::byte *bytes_of(std::vector<double> &vector)
    {
        return reinterpret_cast<std::byte *>(vector.data());
    }

    MemoryNetwork network, adapters;
    std::deque<Carrier> second;
    std::vector<std::vector<double>> input, output;
    std::vector<Schedule> schedule;
    std::vector<std::unique_ptr<FailingBounce>> bounce;
    std::vector<std::unique_ptr<HostBounce>> adapter_bounce;
    std::vector<Executor> executor;
    std::vector<std::vector<MappedPeer>> mapped;
    std::vector<std::vector<LocalStep>> steps;
    std::vector<std::array<std::atomic<std::uint64_t>, 1024>> progress;

private:
    Job(int size, std::size_t count, bool synchronous)
        : network(size, synchronous, size * 31 + static_cast<unsigned>(count)),
          adapters(size, synchronous, size * 37 + static_cast<unsigned>(count)), input(size),
          output(size), executor(size), mapped(size), steps(size), progress(size)
    {
        for (int rank = 0; rank < size; ++rank) {
            input[rank].resize(count);
            for (std::size_t i = 0; i < count; ++i) {
                input[rank][i] = (rank + 1) * static_cast<double>(i % 97 + 1);
            }
        }
    }

    void map_node(int rank, const std::vector<int> &node_of, bool in_place)
    {
        const int size = static_cast<int>(schedule.size());
        std::vector<LocalSchedule> local;
        mapped[rank].resize(size);
        for (int peer = 0; peer < size && !node_of.empty(); ++peer) {
            if (peer != rank && node_of[peer] == node_of[rank]) {
                local.push_back({peer, &schedule[peer]});
                mapped[rank][peer] = {bytes_of(in_place ? output[peer] : input[peer]),
                                      bytes_of(output[peer]), progress[peer].data()};
            }
        }
        steps[rank] = match_local_steps(rank, schedule[rank], local);
    }
};

} // namespace hetcoll::test
