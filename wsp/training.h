// Wave-synchronous training of one rank: what hetcoll_wsp.h promises, in terms of waves
// (wave_clock.h), vectors (vectors.h) and sums over the ranks (exchange.h).
#pragma once

#include "include/hetcoll_wsp.h"
#include "wsp/exchange.h"
#include "wsp/vectors.h"
#include "wsp/wave_clock.h"

#include <chrono>
#include <memory>
#include <vector>

namespace hetcoll {

class Training {
public:
    // Collective. Succeeds on all ranks or on none. Requires a communicator.
    static Result<std::unique_ptr<Training>> create(MPI_Comm comm, void *weights, std::size_t count,
                                                    hetcoll_wsp_type type,
                                                    const hetcoll_wsp_options &options);
    ~Training();
    Training(const Training &) = delete;
    Training &operator=(const Training &) = delete;

    Status step(const void *update);
    Status flush();  // collective
    Status finish(); // collective: flush() unless a call has failed, the last one before the end
    void progress() { exchange_->progress(); }
    [[nodiscard]] hetcoll_wsp_statistics statistics() const;
    Status rank_statistics(hetcoll_wsp_statistics *ranks); // collective

private:
    using Clock = std::chrono::steady_clock;

    // One wave under way: what this rank gives, and the sum that comes.
    struct Wave {
        void *own = nullptr, *sum = nullptr;
    };

    Training(const hetcoll_wsp_options &options, std::unique_ptr<WaveExchange> exchange);
    Status prepare(void *weights, std::size_t count, hetcoll_wsp_type type);
    Status agree(Status mine, std::size_t count, hetcoll_wsp_type type);
    Status begin();

    [[nodiscard]] Wave &wave(std::uint64_t number) { return waves_[number % waves_.size()]; }
    [[nodiscard]] int slot(std::uint64_t number) const
    {
        return static_cast<int>(number % waves_.size());
    }
    Status add_update(const void *update);
    Status end_wave();
    Status note_lead();
    Status collect(std::uint64_t at_least, std::uint64_t at_most);
    Status renew_weights();
    Status flush_waves();
    // Runs `work` between the program's own times, and remembers a failure.
    template <class Work> Status guarded(Work work);

    hetcoll_wsp_options options_;
    std::unique_ptr<WaveExchange> exchange_;
    std::unique_ptr<WaveVectors> vectors_;
    WaveClock clock_;
    void *weights_ = nullptr;         // the program's
    void *complete_ = nullptr;        // w0 and all complete waves: the same bits on all ranks
    std::vector<Wave> waves_;         // a ring of D + 1
    std::vector<const void *> terms_; // of renew_weights()

    bool failed_ = false;
    bool started_ = false;
    Clock::time_point program_since_{}; // when the last call ended
    double compute_ms_ = 0, blocked_ms_ = 0;
    std::uint64_t max_staleness_ = 0, lead_sum_ = 0, max_lead_ = 0;
};

} // namespace hetcoll
