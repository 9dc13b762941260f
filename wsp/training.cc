#include "wsp/training.h"

#include "wsp/takes_device.h"

#include <array>
#include <climits>
#include <new>
#include <utility>

namespace hetcoll {
namespace {

double ms_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
}

WaveRules rules_of(const hetcoll_wsp_options &options)
{
    return {options.distance, options.steps_per_wave, options.in_flight,
            options.deterministic != 0};
}

Status check_options(const hetcoll_wsp_options &options)
{
    constexpr int kMost = 1 << 20;
    const auto check = [](const char *name, int value, int least, int most) {
        return value >= least && value <= most
                   ? Status()
                   : error(Errc::kInvalid, "%s is %d, give %d to %d", name, value, least, most);
    };
    Status status = check("distance", options.distance, 0, 1024);
    if (status.ok()) {
        status = check("steps_per_wave", options.steps_per_wave, 1, kMost);
    }
    if (status.ok()) {
        status = check("in_flight", options.in_flight, 1, kMost);
    }
    if (status.ok()) {
        status = check("progress_us", options.progress_us, 0, 1000000);
    }
    return status;
}

Result<ElementKind> kind_of(hetcoll_wsp_type type)
{
    switch (type) {
    case HETCOLL_WSP_FLOAT: return ElementKind::kFloat32;
    case HETCOLL_WSP_DOUBLE: return ElementKind::kFloat64;
    case HETCOLL_WSP_FLOAT16: return ElementKind::kFloat16;
    case HETCOLL_WSP_BFLOAT16: return ElementKind::kBfloat16;
    }
    return error(Errc::kInvalid,
                 "type is %d, give one of HETCOLL_WSP_FLOAT, _DOUBLE, _FLOAT16, "
                 "_BFLOAT16",
                 static_cast<int>(type));
}

} // namespace

Training::Training(const hetcoll_wsp_options &options, std::unique_ptr<WaveExchange> exchange)
    : options_(options), exchange_(std::move(exchange)), clock_(rules_of(options))
{
}

// The memory of a sum under way is MPI's until the sum is complete, so it is leaked on purpose.
Training::~Training()
{
    if (exchange_->is_exchanging()) {
        static_cast<void>(vectors_.release());
    }
}

Result<std::unique_ptr<Training>> Training::create(MPI_Comm comm, void *weights, std::size_t count,
                                                   hetcoll_wsp_type type,
                                                   const hetcoll_wsp_options &options)
{
    Result<std::unique_ptr<WaveExchange>> exchange = WaveExchange::create(comm);
    if (!exchange.ok()) {
        return exchange.take_status();
    }
    std::unique_ptr<Training> training(new Training(options, std::move(*exchange)));
    Status mine;
    try {
        mine = training->prepare(weights, count, type);
    } catch (const std::bad_alloc &) { // the others wait in agree()
        mine = Status(Errc::kNoMemory, "out of memory");
    }
    Status status = training->agree(std::move(mine), count, type);
    if (status.ok()) {
        status = training->begin();
    }
    if (!status.ok()) {
        return status;
    }
    return training;
}

// The steps that a rank can take alone.
Status Training::prepare(void *weights, std::size_t count, hetcoll_wsp_type type)
{
    if (Status status = check_options(options_); !status.ok()) {
        return status;
    }
    if (weights == nullptr || count == 0 || count > INT_MAX) {
        return error(Errc::kInvalid,
                     "weights are %zu elements at %p, give 1 to %d elements; more of them in "
                     "several handles",
                     count, weights, INT_MAX);
    }
    Result<ElementKind> kind = kind_of(type);
    if (!kind.ok()) {
        return kind.take_status();
    }
    weights_ = weights;
    Result<std::unique_ptr<WaveVectors>> vectors = make_vectors(weights, count, *kind);
    if (!vectors.ok()) {
        return vectors.take_status();
    }
    vectors_ = std::move(*vectors);
    if (vectors_->on_device() && !takes_device_memory()) {
        return error(Errc::kUnsupported,
                     "the weights are device memory, and this MPI does not take it: run with "
                     "hetcoll (mpirun --mca coll hetcoll), or with an Open MPI built with CUDA");
    }
    waves_.resize(static_cast<std::size_t>(options_.distance) + 1);
    terms_.reserve(waves_.size() + 1);
    std::vector<void **> places = {&complete_};
    for (Wave &one : waves_) {
        places.push_back(&one.own);
        places.push_back(&one.sum);
    }
    for (void **const place : places) {
        Result<void *> made = vectors_->make();
        if (!made.ok()) {
            return made.take_status();
        }
        *place = *made;
    }
    return exchange_->prepare({*kind, count}, options_.distance + 1, options_.progress_us);
}

// Collective: the same answer on all ranks. `mine` is how prepare() went here.
Status Training::agree(Status mine, std::size_t count, hetcoll_wsp_type type)
{
    struct {
        const char *name;
        std::int64_t value;
    } const facts[] = {{"count", static_cast<std::int64_t>(count)},
                       {"type", type},
                       {"distance", options_.distance},
                       {"steps_per_wave", options_.steps_per_wave},
                       {"deterministic", options_.deterministic != 0}};
    constexpr std::size_t kFacts = std::size(facts);
    std::array<std::int64_t, 1 + 2 * kFacts> most{};
    most[0] = mine.ok() ? -1 : exchange_->rank();
    for (std::size_t i = 0; i < kFacts; ++i) {
        most[1 + 2 * i] = facts[i].value;
        most[2 + 2 * i] = -facts[i].value; // the least one
    }
    if (Status status = exchange_->maxima(most); !status.ok()) {
        return status;
    }
    if (!mine.ok()) {
        return mine;
    }
    for (std::size_t i = 0; i < kFacts; ++i) {
        if (most[1 + 2 * i] != -most[2 + 2 * i]) {
            return error(kMpiError,
                         "the ranks differ in %s: from %lld to %lld, here %lld: give all the same",
                         facts[i].name, -static_cast<long long>(most[2 + 2 * i]),
                         static_cast<long long>(most[1 + 2 * i]),
                         static_cast<long long>(facts[i].value));
        }
    }
    return most[0] < 0 ? Status()
                       : error(kMpiError, "rank %lld failed, its own message says why",
                               static_cast<long long>(most[0]));
}

Status Training::begin()
{
    Status status = exchange_->broadcast(weights_);
    if (status.ok()) {
        const void *const initial[] = {weights_};
        status = vectors_->add(complete_, initial);
    }
    return status.ok() ? vectors_->finish() : std::move(status);
}

template <class Work> Status Training::guarded(Work work)
{
    if (failed_) {
        return error(Errc::kInvalid, "an earlier call on this handle failed, it is only good for "
                                     "hetcoll_wsp_free");
    }
    if (started_) {
        compute_ms_ += ms_since(program_since_);
    }
    started_ = true;
    Status status = work();
    failed_ = !status.ok();
    program_since_ = Clock::now();
    return status;
}

Status Training::step(const void *update)
{
    if (update == nullptr) {
        return error(Errc::kInvalid, "update is a null pointer");
    }
    if (Status status = vectors_->check(update); !status.ok()) {
        return status;
    }
    return guarded([&]() -> Status {
        max_staleness_ = std::max(max_staleness_, clock_.staleness());
        Status status = add_update(update);
        if (status.ok() && clock_.step()) {
            status = end_wave();
        }
        return status.ok() ? vectors_->finish() : std::move(status);
    });
}

Status Training::add_update(const void *update)
{
    void *const own = wave(clock_.ended()).own;
    const void *const first[] = {update}, *const more[] = {own, update};
    Status status =
        clock_.steps_in_wave() == 0 ? vectors_->add(own, first) : vectors_->add(own, more);
    const void *const moved[] = {weights_, update};
    return status.ok() ? vectors_->add(weights_, moved) : std::move(status);
}

// Gives this rank's wave to the others, and takes what must have come, or has.
Status Training::end_wave()
{
    const std::uint64_t number = clock_.ended();
    Wave &mine = wave(number);
    Status status = vectors_->finish(); // before MPI reads it
    const auto start = Clock::now();
    if (status.ok()) {
        status = options_.distance == 0 ? exchange_->sum_now(mine.own, mine.sum)
                                        : exchange_->start(slot(number), mine.own, mine.sum);
    }
    if (!status.ok()) {
        return status;
    }
    clock_.end_wave();
    if (options_.distance == 0) {
        blocked_ms_ += ms_since(start);
    } else {
        status = note_lead();
    }
    return !status.ok() ? std::move(status) : collect(clock_.must_have(), clock_.may_have());
}

// How many waves before the one that has just ended some rank has not ended yet.
Status Training::note_lead()
{
    std::uint64_t complete = clock_.applied();
    for (; complete + 1 < clock_.ended(); ++complete) {
        Result<bool> done = exchange_->is_done(slot(complete));
        if (!done.ok()) {
            return done.take_status();
        }
        if (!*done) {
            break;
        }
    }
    const std::uint64_t lead = clock_.ended() - 1 - complete;
    lead_sum_ += lead;
    max_lead_ = std::max(max_lead_, lead);
    return {};
}

Status Training::collect(std::uint64_t at_least, std::uint64_t at_most)
{
    const std::uint64_t before = clock_.applied();
    while (clock_.applied() < at_most) {
        const std::uint64_t number = clock_.applied();
        if (options_.distance > 0) {
            Result<bool> done = exchange_->is_done(slot(number));
            if (!done.ok()) {
                return done.take_status();
            }
            if (!*done) {
                if (number >= at_least) {
                    break;
                }
                const auto start = Clock::now();
                Status status = exchange_->wait(slot(number));
                blocked_ms_ += ms_since(start);
                if (!status.ok()) {
                    return status;
                }
            }
        }
        const void *const terms[] = {complete_, wave(number).sum};
        if (Status status = vectors_->add(complete_, terms); !status.ok()) {
            return status;
        }
        clock_.apply_wave();
    }
    return clock_.applied() == before ? Status() : renew_weights();
}

// Complete waves, then this rank's own that are not. Not "weights + sum - own": nothing is rounded
// away, and ranks with the same complete waves have the same bits.
Status Training::renew_weights()
{
    terms_.assign(1, complete_);
    for (std::uint64_t number = clock_.applied(); number < clock_.ended(); ++number) {
        terms_.push_back(wave(number).own);
    }
    return vectors_->add(weights_, terms_);
}

Status Training::flush()
{
    return guarded([this] { return flush_waves(); });
}

Status Training::flush_waves()
{
    const bool in_wave = clock_.steps_in_wave() > 0;
    std::array<std::int64_t, 1> waves = {static_cast<std::int64_t>(clock_.ended()) + in_wave};
    const auto start = Clock::now();
    if (Status status = exchange_->maxima(waves); !status.ok()) {
        return status;
    }
    blocked_ms_ += ms_since(start);
    while (clock_.ended() < static_cast<std::uint64_t>(waves[0])) {
        if (clock_.steps_in_wave() == 0) { // others have more to give
            if (Status status = vectors_->clear(wave(clock_.ended()).own); !status.ok()) {
                return status;
            }
        }
        if (Status status = end_wave(); !status.ok()) {
            return status;
        }
    }
    Status status = collect(clock_.ended(), clock_.ended());
    clock_.all_applied();
    return status.ok() ? vectors_->finish() : std::move(status);
}

Status Training::finish() { return failed_ ? Status() : flush(); }

hetcoll_wsp_statistics Training::statistics() const
{
    hetcoll_wsp_statistics all{};
    all.steps = clock_.steps();
    all.waves = clock_.ended();
    all.waves_applied = clock_.applied();
    all.max_staleness = max_staleness_;
    all.staleness_bound = clock_.staleness_bound();
    all.compute_ms = compute_ms_;
    all.blocked_ms = blocked_ms_;
    all.mean_lead = clock_.ended() > 0
                        ? static_cast<double>(lead_sum_) / static_cast<double>(clock_.ended())
                        : 0;
    all.max_lead = max_lead_;
    return all;
}

Status Training::rank_statistics(hetcoll_wsp_statistics *ranks)
{
    const hetcoll_wsp_statistics mine = statistics();
    return exchange_->gather(&mine, ranks, static_cast<int>(sizeof mine));
}

} // namespace hetcoll
