#include "engine/process.h"

#include "engine/settings.h"
#include "hetcoll_config.h"
#include "topology_probe/hwloc_xml.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <string_view>

namespace hetcoll {
namespace {

std::optional<PointerCacheMode> find_cache_mode(std::string_view name)
{
    if (name == "validated") {
        return PointerCacheMode::kValidated;
    }
    if (name == "hooked") {
        return PointerCacheMode::kHooked;
    }
    if (name == "off") {
        return PointerCacheMode::kOff;
    }
    return std::nullopt;
}

std::uint64_t random_number()
{
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
}

} // namespace

Process::Process(const hetcoll_settings &settings)
    : settings_(settings), log_{settings.log, settings.verbose},
      node_log_(settings.local_rank == 0 ? log_ : Log{})
{
    if (settings.topology_file != nullptr) {
        topology_name_ = settings.topology_file;
    }
    machine_.emplace(node_log_);
    has_node_word_ = settings.node != nullptr && *settings.node != '\0';
    auto identity = node_identity(settings.node);
    if (identity.ok()) {
        identity_ = *identity;
    } else { // a node of its own
        identity_.process.host = identity_.machine = random_number();
        hetcoll::log(node_log_, 1, "hetcoll: shares no memory with other processes: %s",
                     identity.status().message().c_str());
    }
    // The caller's, parsed here and by create().
    settings_.pointer_cache = settings_.algorithm = settings_.node = nullptr;
    settings_.topology_file = settings_.tuning_table = settings_.trace = nullptr;
    settings_.user_ops = settings_.shares = nullptr;
    settings_.aggregators = settings_.aggregator_key = nullptr;
}

Result<std::unique_ptr<Process>> Process::create(const hetcoll_settings &settings)
{
    std::unique_ptr<Process> process(new Process(settings));
    const auto mode = find_cache_mode(settings.pointer_cache);
    if (!mode) {
        return error(Errc::kInvalid,
                     "coll_hetcoll_pointer_cache '%s' is unknown, write validated, hooked or off",
                     settings.pointer_cache);
    }
    process->cache_mode_ = *mode;
    auto algorithm = parse_algorithm(settings.algorithm);
    if (!algorithm.ok()) {
        return algorithm.take_status();
    }
    process->algorithm_ = *algorithm;
    if (settings.shares != nullptr) {
        auto shares = parse_shares(settings.shares);
        if (!shares.ok()) {
            return shares.take_status();
        }
        process->shares_ = std::move(*shares);
    }
    if (settings.small_limit > HETCOLL_MAX_SMALL_LIMIT) {
        return error(Errc::kInvalid, "coll_hetcoll_small_limit %zu is too large, write at most %u",
                     settings.small_limit, HETCOLL_MAX_SMALL_LIMIT);
    }
    if (Status chunk = check_chunk_bytes(settings.chunk_bytes); !chunk.ok()) {
        return chunk;
    }
    if (Status bits = check_fixed_point(settings.fixed_point); !bits.ok()) {
        return bits;
    }
    if (Status memory = check_max_memory(settings.max_memory); !memory.ok()) {
        return memory;
    }
    if (Status list = process->read_aggregators(settings); !list.ok()) {
        return list;
    }
    if (settings.trace != nullptr && *settings.trace != '\0') {
        process->open_trace(settings.trace);
    }
    if (settings.recognize_ops != 0) {
        process->user_ops_ =
            std::make_unique<UserOps>(settings.user_ops != nullptr ? settings.user_ops : "",
                                      process->log_, process->node_log_);
    }
    if (settings.tuning_table != nullptr && DriverLibrary::may_have_gpu()) {
        process->read_tuning_table(settings.tuning_table);
    }
    process->pointers_ = PointerCache::create(process->library_, *mode, process->node_log_);
    return process;
}

// A key that cannot be read is no reason to end a job; a wrong list is one to say so.
Status Process::read_aggregators(const hetcoll_settings &settings)
{
    if (settings.aggregators == nullptr || *settings.aggregators == '\0') {
        return {};
    }
    auto endpoints = parse_endpoints(settings.aggregators);
    if (!endpoints.ok()) {
        return error(Errc::kInvalid, "coll_hetcoll_aggregators: %s",
                     endpoints.status().message().c_str());
    }
    if (Status wrong = check_aggregators(settings.aggregator_window, settings.aggregator_copy);
        !wrong.ok()) {
        return wrong;
    }
    const char *const path = settings.aggregator_key != nullptr ? settings.aggregator_key : "";
    Result<std::string> key = error(Errc::kInvalid, "coll_hetcoll_aggregator_key names no file");
    if (*path != '\0') {
        key = read_key_file(path);
    }
    if (!key.ok()) {
        hetcoll::log(node_log_, 0, "hetcoll uses no aggregators: %s",
                     key.status().message().c_str());
        return {};
    }
    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    const auto add = [&hash](std::string_view text) {
        for (const char c : text) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
        }
    };
    add(settings.aggregators);
    add("," + std::to_string(settings.aggregator_window) + "," +
        std::to_string(settings.aggregator_copy));
    aggregators_ = AggregatorList{.endpoints = std::move(*endpoints),
                                  .key = std::move(*key),
                                  .window = settings.aggregator_window,
                                  .copy_bytes = settings.aggregator_copy,
                                  .hash = std::max<std::uint64_t>(hash, 1)};
    return {};
}

// A trace that cannot be written is no reason to end a job.
void Process::open_trace(const char *pattern)
{
    auto trace = Trace::open(pattern, settings_.rank, log_);
    if (trace.ok()) {
        trace_ = std::move(*trace);
        time_small(1);
    } else {
        hetcoll::log(log_, settings_.local_rank == 0 ? 0 : 1, "hetcoll: no trace of rank %d: %s",
                     settings_.rank, trace.status().message().c_str());
    }
}

// When the process starts, because all ranks must know whether they have read the same one.
void Process::read_tuning_table(const char *name)
{
    const bool installed = std::string_view(name) == "auto";
    const char *path = installed ? HETCOLL_DATA_FOLDER "/tuning_table.json" : name;
    if (std::string_view(name) == "none" || (installed && access(path, F_OK) != 0)) {
        return;
    }
    auto read = read_table(path);
    if (!read.ok()) {
        hetcoll::log(node_log_, 0,
                     "hetcoll ignores its tuning table and chooses algorithms by its model: %s",
                     read.status().message().c_str());
        if (settings_.local_rank != 0) {
            hetcoll::log(log_, 1, "hetcoll: %s", read.status().message().c_str());
        }
        return;
    }
    table_ = std::move(*read);
    table_hash_ = std::max<std::uint64_t>(1, table_hash(*table_));
}

hetcoll_facts Process::facts() const noexcept
{
    return {
        .protocol = HETCOLL_PROTOCOL,
        .may_have_gpu = DriverLibrary::may_have_gpu() ? 1u : 0u,
        .small_limit = static_cast<std::uint32_t>(settings_.small_limit),
        .chunk_bytes = static_cast<std::uint32_t>(settings_.chunk_bytes),
        .algorithm = algorithm_,
        .priority = settings_.priority,
        .ipc = settings_.ipc != 0 ? 1u : 0u,
        .adapt_chunk = settings_.adapt_chunk != 0 ? 1u : 0u,
        .reproducible = settings_.reproducible != 0 ? 1u : 0u,
        .tables_differ = 0,
        .fixed_point = static_cast<std::uint32_t>(settings_.fixed_point),
        .fixed_point_differs = 0,
        .aggregators_differ = 0,
        .slot_bytes = static_cast<std::uint32_t>(slot_bytes()),
        .collectives = settings_.collectives != 0 && DriverLibrary::may_have_gpu() ? 1u : 0u,
        .skew = settings_.skew != 0 ? 1u : 0u,
        .table_hash = table_hash_,
        .user_ops = user_ops_ != nullptr ? user_ops_->hash() : 0,
        .shares = shares_.hash(),
        .aggregators = aggregators_ ? aggregators_->hash : 0,
        .identity = {.host = identity_.process.host,
                     .start_time = identity_.process.start_time,
                     .pid = identity_.process.pid,
                     .reserved = 0,
                     .machine = identity_.machine},
    };
}

void Process::offer_direct(const hetcoll_p2p &self, int tag) noexcept
{
    const std::lock_guard lock(mutex_);
    self_ = self;
    self_tag_ = tag;
}

Sharing &Process::sharing()
{
    const std::lock_guard lock(mutex_);
    if (!sharing_) {
        sharing_.emplace();
        auto channel = FdChannel::create(log_);
        if (channel.ok()) {
            sharing_->channel = std::move(*channel);
        } else {
            hetcoll::log(log_, 1, "hetcoll: %s", channel.status().message().c_str());
        }
        const Driver &driver = *library_.get();
        sharing_->exporter = Exporter::create(driver, sharing_->channel, log_);
        PeerLimits limits;
        if (settings_.max_mapped != 0) {
            limits.bytes = settings_.max_mapped;
        }
        sharing_->memory =
            PeerMemory::create(driver, identity_.process, sharing_->channel, limits, log_);
    }
    return *sharing_;
}

Result<RankRecord> Process::probe(const PointerInfo &pointer)
{
    return machine_->probe_rank({.driver = library_.get(),
                                 .ordinal = pointer.device,
                                 .host_id = identity_.process.host,
                                 .pid = identity_.process.pid});
}

Result<const Topology *> Process::topology_file()
{
    const std::lock_guard lock(topology_mutex_);
    if (!std::exchange(topology_read_, true) && !topology_name_.empty()) {
        auto read = read_any_topology(topology_name_, HETCOLL_DATA_FOLDER "/topology");
        if (read.ok()) {
            topology_ = std::optional<Topology>(std::move(*read));
        } else {
            topology_ = read.take_status();
        }
    }
    if (!topology_.ok()) {
        return error(topology_.status().code(), "%s", topology_.status().message().c_str());
    }
    return topology_->has_value() ? &**topology_ : nullptr;
}

void Process::add_small_calls(const std::atomic<std::uint64_t> &calls)
{
    const std::lock_guard lock(mutex_);
    small_calls_.push_back(&calls);
}

void Process::remove_small_calls(const std::atomic<std::uint64_t> &calls) noexcept
{
    const std::lock_guard lock(mutex_);
    std::erase(small_calls_, &calls);
    count(HETCOLL_CALLS_SMALL, calls.load(std::memory_order_relaxed));
}

void Process::observe(const CallRecord &record) noexcept
{
    const auto add = [this, &record](int first, int index) {
        count(static_cast<hetcoll_counter>(first + index), record.ns);
    };
    if (record.served >= 0) {
        add(HETCOLL_NS_PREVIOUS, record.served - HETCOLL_CALLS_PREVIOUS);
        const CallPath path = path_of(record);
        if (path <= CallPath::kMixed) {
            add(HETCOLL_NS_PATH_BOUNCE, static_cast<int>(path));
        }
    }
    if (trace_ != nullptr) {
        trace_->write(record);
    }
}

std::uint64_t Process::counter(hetcoll_counter counter) const noexcept
{
    switch (counter) {
    case HETCOLL_CALLS_SMALL: {
        const std::lock_guard lock(mutex_);
        std::uint64_t calls = counters_[counter].load(std::memory_order_relaxed);
        for (const auto *engine : small_calls_) {
            calls += engine->load(std::memory_order_relaxed);
        }
        return calls;
    }
    case HETCOLL_MAPPINGS: {
        const std::lock_guard lock(mutex_);
        return sharing_ ? sharing_->memory->counters().opens : 0;
    }
    case HETCOLL_HELD_MAPPED: {
        const std::lock_guard lock(mutex_);
        return sharing_ ? sharing_->memory->counters().bytes : 0;
    }
    case HETCOLL_HELD_PINNED: return memory_use_.pinned_bytes.load(std::memory_order_relaxed);
    case HETCOLL_HELD_DEVICE: return memory_use_.device_bytes.load(std::memory_order_relaxed);
    case HETCOLL_POINTER_HITS: return pointers_->counters().hits;
    case HETCOLL_POINTER_MISSES: return pointers_->counters().misses;
    case HETCOLL_POINTER_INVALIDATIONS: return pointers_->counters().invalidations;
    case HETCOLL_POINTER_QUERIES: return pointers_->counters().queries;
    case HETCOLL_POINTER_HOST: return pointers_->counters().host_without_query;
    default: return counters_[counter].load(std::memory_order_relaxed);
    }
}

} // namespace hetcoll
