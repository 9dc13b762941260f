#include "engine/process/process.h"

#include "base/hash.h"
#include "base/installed.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

namespace hetcoll {
namespace {

std::uint64_t random_number()
{
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
}

NodeIdentity find_identity(const char *word, const Log &node_log)
{
    auto identity = node_identity(word);
    if (identity.ok()) {
        return *identity;
    }
    NodeIdentity alone{}; // a node of its own
    alone.process.host = alone.machine = random_number();
    log(node_log, 1, "hetcoll: shares no memory with other processes: %s",
        identity.status().message().c_str());
    return alone;
}

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

// Called when the process starts, because all ranks must know whether they have read the same
// table.
std::optional<TableFile> find_table(const hetcoll_settings &settings, const Log &to,
                                    const Log &node_log, bool may_have_gpu)
{
    const char *const name = settings.tuning_table;
    if (name == nullptr || std::string_view(name) == "none" || !may_have_gpu) {
        return std::nullopt;
    }
    const bool installed = std::string_view(name) == "auto";
    const std::string path = installed ? installed_table(installed_folders()) : name;
    if (installed && path.empty()) {
        return std::nullopt;
    }
    auto read = read_table(path);
    if (read.ok()) {
        return std::move(*read);
    }
    log(node_log, 0, "hetcoll ignores its tuning table and chooses algorithms by price: %s",
        read.status().message().c_str());
    if (settings.local_rank != 0) {
        log(to, 1, "hetcoll: %s", read.status().message().c_str());
    }
    return std::nullopt;
}

std::string text_in_environment(const char *name)
{
    const char *const text = std::getenv(name);
    return text == nullptr ? "" : text;
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

// Of a text that must be the same on all ranks; 0: it is empty.
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
      node_log_(settings.local_rank == 0 ? log_ : Log{}),
      identity_(find_identity(settings.node, node_log_)),
      has_node_word_(settings.node != nullptr && *settings.node != '\0'),
      adapter_transports_(settings.adapters != nullptr ? settings.adapters : ""),
      net_devices_(text_in_environment("UCX_NET_DEVICES")),
      aggregators_(find_aggregators(std::exchange(parsed_.aggregators, {}), settings, node_log_)),
      trace_(open_trace(settings, log_)), user_ops_(find_user_ops(settings, log_, node_log_)),
      may_have_gpu_(DriverLibrary::may_have_gpu()),
      table_(find_table(settings, log_, node_log_, may_have_gpu_)),
      topology_file_(settings.topology_file), counters_(trace_.get(), settings.ended),
      shm_budget_(settings.node_processes), machine_(node_log_),
      pointers_(PointerCache::create(driver_, parsed_.pointer_cache, node_log_)),
      contexts_(settings_, driver_, *pointers_), direct_messages_(contexts_, log_),
      pool_(
          {settings_, log_, node_log_, driver_, counters_, contexts_, direct_messages_, sharing_}),
      sharing_(settings_, log_, identity_.process, driver_), cpu_views_(settings_, log_, driver_),
      facts_(find_facts())
{
    const auto pointer_counter = [this](hetcoll_counter counter,
                                        std::uint64_t PointerCacheCounters::*member) {
        counters_.take_from(counter, [this, member] { return pointers_->counters().*member; });
    };
    pointer_counter(HETCOLL_POINTER_HITS, &PointerCacheCounters::hits);
    pointer_counter(HETCOLL_POINTER_MISSES, &PointerCacheCounters::misses);
    pointer_counter(HETCOLL_POINTER_INVALIDATIONS, &PointerCacheCounters::invalidations);
    pointer_counter(HETCOLL_POINTER_QUERIES, &PointerCacheCounters::queries);
    pointer_counter(HETCOLL_POINTER_HOST, &PointerCacheCounters::host_without_query);
    counters_.take_from(HETCOLL_MAPPINGS, [this] { return sharing_.counters().opens; });
    counters_.take_from(HETCOLL_HELD_MAPPED, [this] { return sharing_.counters().bytes; });
    counters_.take_from(HETCOLL_HELD_VIEWS, [this] { return cpu_views_.held_bytes(); });
    const MemoryUse &use = contexts_.memory_use();
    counters_.take_from(HETCOLL_HELD_PINNED, [&use] { return use.pinned_bytes.load(); });
    counters_.take_from(HETCOLL_HELD_DEVICE, [&use] { return use.device_bytes.load(); });
}

hetcoll_facts Process::find_facts() const noexcept
{
    hetcoll_facts facts{};
    facts.protocol = HETCOLL_PROTOCOL;
    facts.priority = static_cast<std::uint64_t>(settings_.priority);
    facts.may_have_gpu = may_have_gpu_ ? 1 : 0;
    facts.small_limit = settings_.small_limit;
    facts.chunk_bytes = settings_.chunk_bytes;
    facts.slot_bytes = pool_.slot_bytes();
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
    facts.tuning_table = table_ ? std::max<std::uint64_t>(1, table_hash(*table_)) : 0;
    facts.user_ops = user_ops_ != nullptr ? user_ops_->hash() : 0;
    facts.shares = parsed_.shares.hash();
    facts.adapters = hash_of(adapter_transports_);
    facts.aggregators = aggregators_ ? aggregators_->hash : 0;
    facts.identity = {.host = identity_.process.host,
                      .start_time = identity_.process.start_time,
                      .pid = identity_.process.pid,
                      .reserved = 0,
                      .machine = identity_.machine,
                      .host_name = ""};
    static_cast<void>(gethostname(facts.identity.host_name, sizeof facts.identity.host_name - 1));
    return facts;
}

std::string Process::driver_version() const
{
    int version = 0;
    const Driver *const driver = driver_.get();
    if (driver == nullptr || driver->cuDriverGetVersion(&version) != CUDA_SUCCESS) {
        return "unknown";
    }
    return cuda_release(version);
}

Result<RankRecord> Process::probe(const PointerInfo &pointer)
{
    auto record = machine_.probe_rank({.driver = driver_.get(),
                                       .ordinal = pointer.device,
                                       .host_id = identity_.process.host,
                                       .pid = identity_.process.pid,
                                       .net_devices = net_devices_});
    if (record.ok()) {
        record->by_cpu = cpu_views_.can_view(pointer.device) ? 1 : 0;
    }
    return record;
}

} // namespace hetcoll
