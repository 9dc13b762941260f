#include "engine/process/process.h"

#include "base/hash.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

// A trace that cannot be written ends no job.
std::unique_ptr<Trace> open_trace(const hetcoll_settings &settings, const Log &to)
{
    if (settings.trace == nullptr || *settings.trace == '\0') {
        return nullptr;
    }
    auto trace = Trace::open(settings.trace, settings.rank, to);
    if (!trace.ok()) {
        log(to, settings.local_rank == 0 ? 0 : 1, "hetcoll: no trace of rank %d: %s", settings.rank,
            trace.status().message().c_str());
        return nullptr;
    }
    return std::move(*trace);
}

std::unique_ptr<UserOps> find_user_ops(const hetcoll_settings &settings, const Log &to,
                                       const Log &node_log)
{
    if (!settings.recognize_ops) {
        return nullptr;
    }
    return std::make_unique<UserOps>(settings.user_ops != nullptr ? settings.user_ops : "", to,
                                     node_log);
}

hetcoll_settings without_strings(hetcoll_settings settings)
{
#define HETCOLL_DROP_BOOL(name)
#define HETCOLL_DROP_INT(name)
#define HETCOLL_DROP_BYTES(name)
#define HETCOLL_DROP_WORD(name)
#define HETCOLL_DROP_TEXT(name) settings.name = nullptr;
#define HETCOLL_PARAMETER(kind, name, ...) HETCOLL_DROP_##kind(name)
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    return settings;
}

// The hash of a text that must be the same on all ranks; 0: it is empty.
std::uint64_t hash_of(const std::string &text)
{
    Hash hash;
    hash.add(text);
    return text.empty() ? 0 : std::max<std::uint64_t>(hash.value(), 1);
}

} // namespace

Result<std::unique_ptr<Process>> Process::create(const hetcoll_settings &settings)
{
    auto parsed = parse_settings(settings);
    if (!parsed.ok()) {
        return parsed.take_status();
    }
    return std::unique_ptr<Process>(new Process(settings, std::move(*parsed)));
}

Process::Process(const hetcoll_settings &settings, ParsedSettings parsed)
    : settings_(without_strings(settings)),
      parsed_(std::move(parsed)), log_{settings.log, settings.verbose},
      node_log_(settings.local_rank == 0 ? log_ : Log{}), place_(settings, node_log_),
      aggregators_(find_aggregators(std::exchange(parsed_.aggregators, {}), settings, node_log_)),
      trace_(open_trace(settings, log_)), user_ops_(find_user_ops(settings, log_, node_log_)),
      may_have_gpu_(DriverLibrary::may_have_gpu()),
      tuning_(settings, log_, node_log_, may_have_gpu_), counters_(trace_.get(), settings.ended),
      shm_budget_(settings.node_processes),
      gpus_(settings_, parsed_.pointer_cache, place_.process(), log_, node_log_, counters_),
      facts_(find_facts())
{
}

hetcoll_facts Process::find_facts() noexcept
{
    hetcoll_facts facts{};
    facts.protocol = HETCOLL_PROTOCOL;
    facts.priority = static_cast<std::uint64_t>(settings_.priority);
    facts.may_have_gpu = may_have_gpu_ ? 1 : 0;
    facts.small_limit = settings_.small_limit;
    facts.chunk_bytes = settings_.chunk_bytes;
    facts.slot_bytes = gpus_.pool().slot_bytes();
    facts.algorithm = parsed_.algorithm;
    facts.ipc = settings_.ipc == HETCOLL_IPC_AUTO ? 1 : 0;
    facts.check = settings_.check == HETCOLL_CHECK_OFF ? 1 : 0;
    facts.collectives = settings_.stage != HETCOLL_STAGE_NEVER && may_have_gpu_ ? 1 : 0;
    facts.adapt_chunk = settings_.adapt_chunk ? 1 : 0;
    facts.rack_nodes = static_cast<std::uint64_t>(settings_.rack_nodes);
    facts.rack_gbps = static_cast<std::uint64_t>(settings_.rack_gbps);
    facts.reproducible = settings_.reproducible ? 1 : 0;
    facts.accumulate = settings_.accumulate == HETCOLL_ACCUMULATE_ELEMENT ? 1 : 0;
    facts.skew = settings_.skew ? 1 : 0;
    facts.fixed_point = static_cast<std::uint64_t>(settings_.fixed_point);
    facts.tuning_table =
        tuning_.table() != nullptr ? std::max<std::uint64_t>(1, table_hash(*tuning_.table())) : 0;
    facts.user_ops = user_ops_ != nullptr ? user_ops_->hash() : 0;
    facts.shares = parsed_.shares.hash();
    facts.adapters = hash_of(parsed_.adapters);
    facts.aggregators = aggregators_.list() != nullptr ? aggregators_.list()->hash : 0;
    const NodeIdentity &identity = place_.identity();
    facts.identity = {.host = identity.process.host,
                      .start_time = identity.process.start_time,
                      .pid = identity.process.pid,
                      .reserved = 0,
                      .machine = identity.machine,
                      .host_name = ""};
    static_cast<void>(gethostname(facts.identity.host_name, sizeof facts.identity.host_name - 1));
    return facts;
}

} // namespace hetcoll
