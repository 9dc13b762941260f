#include "engine/communicator/communicator.h"

#include "base/lost.h"
#include "base/padding.h"
#include "engine/meeting/flags.h"
#include "engine/process/memory_reserve.h"
#include "plan/parts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace hetcoll {
namespace {

std::vector<ProcessIdentity> processes_of(std::span<const hetcoll_facts> facts)
{
    std::vector<ProcessIdentity> processes;
    for (const hetcoll_facts &fact : facts) {
        processes.push_back({.host = fact.identity.host,
                             .start_time = fact.identity.start_time,
                             .pid = fact.identity.pid,
                             .reserved = 0});
    }
    return processes;
}

std::vector<std::string> host_names_of(const std::vector<int> &ranks,
                                       std::span<const hetcoll_facts> facts)
{
    std::vector<std::string> names;
    names.reserve(ranks.size());
    for (const int rank : ranks) {
        names.emplace_back(facts[rank].identity.host_name);
    }
    return names;
}

static_assert(kMostHostBytes <= ControlPage::kPayloadBytes, "a meeting sums it at once");
static_assert(HETCOLL_MAX_SMALL_LIMIT <= kMostHostBytes, "a rank keeps as much for meetings");
static_assert(kMostWeightedSteps <= ControlPage::kWords, "weighted shares by mapped memory");
static_assert(kWeightedChannels <= HETCOLL_TAGS, "a channel takes a tag");
static_assert(kMostPricedChannels <= HETCOLL_TAGS, "a channel takes a tag");
static_assert(2 * kMaxTrees <= HETCOLL_TAGS, "a tree has two channels");

// Only these can differ: all else is combined from what all processes published.
constexpr std::uint64_t kReproducible = std::uint64_t{1} << 63;
std::uint64_t settings_of(const hetcoll_facts &agreed)
{
    return (agreed.reproducible != 0 ? kReproducible : 0) | agreed.algorithm << 32 |
           agreed.chunk_bytes;
}

} // namespace

Communicator::Communicator(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
                           std::span<const hetcoll_facts> facts)
    : process_(process), requests_(p2p), p2p_(requests_.table()), agreed_(agreed),
      group_(p2p_, processes_of(facts), settings_of(agreed), &process.shm_budget()),
      watch_(process.log(), group_, host_names_of(group_.leader_ranks(), facts),
             process.settings().report_after),
      peers_(
          process, group_,
          {.mapping = agreed.ipc != 0,
           .tables = agreed.tuning_table_differs == 0,
           .adapters = agreed.adapters != 0,
           .racks = {static_cast<int>(agreed.rack_nodes), static_cast<double>(agreed.rack_gbps)}}),
      aggregation_(process, group_, agreed.aggregators != 0),
      chooser_(process, agreed_, group_, peers_, aggregation_),
      schedules_(group_, peers_, aggregation_, chooser_)
{
    process_.counters().add_small_calls(host_calls_);
    if (agreed.check == 0) {
        group_.compare_calls();
    }
    if (group_.is_leader() && group_.all().size > 1 && process.may_leave_page_open()) {
        left_open_ = true;
        group_.leave_page_open();
    }
    say_split_machine(facts);
    if (p2p_.rank == 0) {
        tell_differences(process, facts);
    }
}

// Ranks in different containers on one machine: they could share GPU memory, and do not.
void Communicator::say_split_machine(std::span<const hetcoll_facts> facts)
{
    if (p2p_.rank != 0 || process_.has_node_word()) {
        return;
    }
    for (const hetcoll_facts &other : facts) {
        if (other.identity.machine == facts[0].identity.machine &&
            other.identity.host != facts[0].identity.host &&
            process_.notices().first_time(Notice::kSplitMachine)) {
            log(process_.log(), 0,
                "hetcoll: ranks on one machine are in different containers or namespaces, so data "
                "between their GPUs goes through messages, which is slower: start the containers "
                "with the host's PID and IPC namespaces and /dev/shm (--pid=host --ipc=host), or "
                "set coll_hetcoll_node to a word of its own for each to keep it so");
            return;
        }
    }
}

Communicator::~Communicator()
{
    process_.counters().remove_small_calls(host_calls_);
    process_.cpu_views().drop_gone();
    if (left_open_) {
        process_.close_page();
    }
    if (p2p_.broken != nullptr) {
        close_dead(); // Open MPI may have refused every call since
    }
}

Progress Communicator::make_ready(int tag)
{
    const Progress progress = group_.make_pages(tag);
    if (progress == Progress::kDone && group_.all_are_able()) {
        ready_ = true;
        serves_host_ = !catches_up_;
        if (group_.settings_differ()) {
            agreed_.algorithm = agreed_.chunk_bytes = 0;
            agreed_.reproducible = (group_.settings_of_some() & kReproducible) != 0 ? 1 : 0;
        }
        say_what_differs();
    }
    return progress;
}

// Once a communicator, or once a process: what its ranks have set to different values is not used.
void Communicator::say_what_differs()
{
    if (group_.settings_differ() && p2p_.rank == 0) {
        log(process_.log(), 0,
            "hetcoll: the ranks of a communicator set coll_hetcoll_algorithm or "
            "coll_hetcoll_chunk_bytes, or its info keys, to different values while the program "
            "ran, so hetcoll chooses there%s: set the same on every rank before its first "
            "MPI_Allreduce",
            agreed_.reproducible != 0 ? ", in the order of the ranks" : "");
    }
    if (agreed_.tuning_table_differs != 0 && p2p_.rank == 0 &&
        process_.notices().first_time(Notice::kTablesDiffer)) {
        log(process_.node_log(), 0,
            "hetcoll ignores its tuning table and chooses algorithms by price: the ranks "
            "of this communicator have not all read the same one; put the same file where "
            "coll_hetcoll_tuning_table points on every node, or set it to none "
            "(coll_hetcoll_verbose 1 says what a rank could not read)");
    }
    if (agreed_.aggregators_differs != 0 && p2p_.rank == 0 &&
        process_.notices().first_time(Notice::kAggregatorsDiffer)) {
        log(process_.log(), 0,
            "hetcoll uses no aggregators: the ranks of this communicator have different "
            "coll_hetcoll_aggregators, _window or _copy, or some could not read the key; set "
            "the same on every rank");
    }
    if (agreed_.fixed_point_differs != 0 && p2p_.rank == 0 &&
        process_.notices().first_time(Notice::kFixedPointDiffers)) {
        log(process_.log(), 0,
            "hetcoll adds floats as usual: the ranks of this communicator have different "
            "coll_hetcoll_fixed_point; set the same on every rank");
    }
    if (agreed_.adapters_differs != 0 && p2p_.rank == 0 &&
        process_.notices().first_time(Notice::kAdaptersDiffer)) {
        log(process_.log(), 0,
            "hetcoll uses no network adapters on a node: the ranks of this communicator have "
            "different coll_hetcoll_adapters; set the same on every rank");
    }
    say_page_problem();
}

void Communicator::say_page_problem()
{
    static_assert(ControlPage::kSlotPayloadBytes == 1024);
    const char *const what =
        group_.uses_pages()
            ? "ranks of a node sum vectors of more than 1024 bytes piece by piece"
            : "ranks of a node do without shared memory and exchange messages instead";
    if (const Status problem = group_.take_problem(); !problem.ok()) {
        log(process_.log(), process_.notices().first_time(Notice::kWithoutPage) ? 0 : 1,
            "hetcoll: %s: %s", what, problem.message().c_str());
    }
    if (group_.take_shortage() && process_.notices().first_time(Notice::kShmSpent)) {
        log(process_.log(), 1,
            "hetcoll: %s on communicator %u: the pages of a job take at most half of what was "
            "free in /dev/shm, %zu bytes of each process here; free communicators, or enlarge "
            "/dev/shm (docker run --shm-size)",
            what, p2p_.comm_id, process_.shm_budget().limit());
    }
}

namespace {

// The vector of a call between host buffers: pairs but for their padding, of which the last one's
// may lie beyond the buffer.
void take_in(std::byte *mine, const hetcoll_call &call) noexcept
{
    std::memcpy(mine, call.send,
                call.dense != 0 ? call.span
                                : data_span(static_cast<ElementKind>(call.kind), call.count));
}
void put_out(const hetcoll_call &call, const std::byte *sum) noexcept
{
    if (call.dense != 0) [[likely]] {
        std::memcpy(call.recv, sum, call.span);
    } else {
        copy_elements(call.recv, sum, call.count, static_cast<ElementKind>(call.kind));
    }
}

// False, too, where there is no memory to know: whoever goes on then chooses again.
bool chooses_host(Chooser &chooser, const hetcoll_call &call) noexcept
{
    const UsesReserve uses_reserve;
    try {
        return is(chooser.choose(call, call.span, {.mapped = true}).algorithm, Form::kHost);
    } catch (const std::bad_alloc &) {
        return false;
    }
}

} // namespace

std::optional<int> Communicator::try_host(const hetcoll_call &call) noexcept
{
    if (call.kind < 0 || call.user_op != 0 || call.span > agreed_.small_limit || p2p_.size == 1 ||
        !serves_host_ || membership_.is_left() || uses_fixed_point(call) || should_find_peers() ||
        (chooser_.keeps_order(call) && !chooser_.meets_in_order())) {
        return std::nullopt;
    }
    PointerCache &pointers = process_.pointers();
    if (!pointers.is_surely_host(call.recv) ||
        (call.send != call.recv && !pointers.is_surely_host(call.send))) {
        return std::nullopt;
    }
    if (peers_.known() && !chooses_host(chooser_, call)) {
        return std::nullopt; // the ranks meet first
    }
    const std::uint64_t start_ns = process_.counters().times_small() ? now_ns() : 0;
    host_calls_.store(host_calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    begin_call(call);
    freed_.look_sometimes();
    std::byte *const mine = Meeting::payload(group_, call.span, messages_->mine);
    take_in(mine, call);
    if (call.op != host_sum_.op || call.kind != host_sum_.kind) {
        host_sum_ = {call.op, call.kind, {op_of(call), static_cast<ElementKind>(call.kind)}};
    }
    meeting_.start(group_, *messages_, mine, call.tag, call.span, call.count, host_sum_.reduction,
                   kHostMemory | freed_.tell());
    Progress progress;
    while ((progress = meeting_.step()) == Progress::kPending) {
        if (const int code = membership_.lost(); code != 0) {
            return leave_host(code);
        }
        if (watch_.is_due(0)) {
            watch_.say_meeting(meeting_);
        }
        p2p_.progress(p2p_.context);
    }
    if (start_ns != 0) {
        observe_host(call, start_ns);
    }
    if (progress == Progress::kFailed) {
        process_.counters().count(HETCOLL_CALLS_FAILED);
        abandon_messages();
        membership_.break_off(meeting_.code());
        return meeting_.code();
    }
    if (any(meeting_.flags(), kCallsDiffer | kFailed | kMemoryFreed)) [[unlikely]] {
        if (const int code = hear_host(); code != HETCOLL_SUCCESS) {
            return code;
        }
    }
    put_out(call, meeting_.sum());
    if (call.span > ControlPage::kSlotPayloadBytes) {
        say_page_problem();
    }
    return HETCOLL_SUCCESS;
}

// Some rank has said more than where its buffers are: the error of the call, if it is one.
int Communicator::hear_host() noexcept
{
    if (any(meeting_.flags(), kMemoryFreed)) {
        freed_.hear();
        freed_.close();
    }
    if (any(meeting_.flags(), kCallsDiffer)) {
        process_.counters().count(HETCOLL_CALLS_FAILED);
        return fail_differing(meeting_);
    }
    if (any(meeting_.flags(), kFailed)) {
        forget_peers();
        process_.counters().count(HETCOLL_CALLS_FAILED);
        log(process_.log(), 0,
            "hetcoll: MPI_Allreduce failed, the receive buffer is undefined: another rank has "
            "failed, and says why");
        return HETCOLL_ERROR_DEVICE;
    }
    return HETCOLL_SUCCESS;
}

int Communicator::leave_host(int code) noexcept
{
    while (!leave(code)) {
        p2p_.progress(p2p_.context);
    }
    process_.counters().count(HETCOLL_CALLS_FAILED);
    return code;
}

bool Communicator::leave(int code) noexcept
{
    if (membership_.is_left()) {
        return true;
    }
    if (!step_leave()) {
        return false;
    }
    close_dead();
    membership_.break_off(code);
    return true;
}

bool Communicator::step_leave() noexcept
{
    aggregation_.leave();
    peers_.abandon();
    return requests_.drain() && group_.leave();
}

// Their memory is the GPU's as long as it is mapped here.
void Communicator::close_dead() noexcept
{
    for (const int rank : group_.local_ranks()) {
        const ProcessIdentity &owner = group_.process(rank);
        if (!is_alive(process_state(owner))) {
            process_.sharing().memory->close_owner(owner);
        }
    }
}

void Communicator::observe_host(const hetcoll_call &call, std::uint64_t start_ns) noexcept
{
    CallRecord record;
    record.comm_id = p2p_.comm_id;
    record.tag = tag_;
    record.rank = p2p_.rank;
    record.comm_size = p2p_.size;
    record.bytes = call.span;
    record.kind = call.kind;
    record.op = call.op;
    record.memory = meeting_.flags() | kHostMemory;
    record.served = HETCOLL_CALLS_HOST;
    record.start_ns = start_ns;
    record.ns = now_ns() - start_ns;
    record.failed = any(meeting_.flags(), kFailed);
    process_.counters().observe(record);
}

int Communicator::fail_differing(const Meeting &meeting) noexcept
{
    const bool by_number = contains(meeting.differences(), Differences::kNumber | kRefused);
    if (by_number) {
        catches_up_ = true;
        serves_host_ = false;
        newest_ = meeting.newest();
    }
    const auto calls = meeting.different_calls();
    if (calls && calls->handed_on) {
        return fail_handed_on(calls->one.call, calls->other.rank, calls->other.call);
    }
    if (calls && contains(meeting.differences(), kRefused)) {
        const bool first = calls->one.call.what == 0;
        const Meeting::Call &refused = first ? calls->one : calls->other;
        log(process_.log(), 0,
            "hetcoll: %s of communicator %u, call %u, fails on all ranks with %s: rank %d %s",
            describe(first ? calls->other.call : calls->one.call).text, p2p_.comm_id,
            refused.call.number(), mpi_error_name(meeting.differences()), refused.rank,
            refused.call.root() == HETCOLL_CAPTURES
                ? "captures a graph on its stream, make the call outside of the capture"
                : "has no host memory to begin it");
    } else if (calls && by_number) {
        log(process_.log(), 0,
            "hetcoll: the ranks of communicator %u are not in the same call: rank %d is in call "
            "%u, %s, rank %d in call %u, %s, because one of them alone has failed in a call, or "
            "made one more: MPI_ERR_OTHER on all ranks until all are in the same call again",
            p2p_.comm_id, calls->one.rank, calls->one.call.number(), describe(calls->one.call).text,
            calls->other.rank, calls->other.call.number(), describe(calls->other.call).text);
    } else if (calls) {
        char more[48] = "";
        if (calls->more > 0) {
            std::snprintf(more, sizeof more, " (%d more rank%s of the node differ%s)", calls->more,
                          calls->more == 1 ? "" : "s", calls->more == 1 ? "s" : "");
        }
        log(process_.log(), 0,
            "hetcoll: the ranks of communicator %u do not call the same: rank %d calls %s, rank %d "
            "calls %s%s, in call number %u: %s on all ranks, nothing is reduced",
            p2p_.comm_id, calls->one.rank, describe(calls->one.call).text, calls->other.rank,
            describe(calls->other.call).text, more, calls->one.number,
            mpi_error_name(meeting.differences()));
    }
    return error_of(meeting.differences());
}

int Communicator::look_at_handed_on(CallSignature call) noexcept
{
    if (hands_on_no_more_ != HETCOLL_SUCCESS) {
        return hands_on_no_more_;
    }
    const auto other = group_.begun_instead(call);
    return other ? fail_handed_on(call, other->rank, other->call) : HETCOLL_SUCCESS;
}

// Each rank that returns the error says so: others may be in Open MPI's part of the call for ever.
int Communicator::fail_handed_on(const CallSignature &own, int rank,
                                 const CallSignature &other) noexcept
{
    const Differences differences = differences_of(own, other);
    log(process_.log(), 0,
        "hetcoll: the ranks of communicator %u do not call the same: rank %d calls %s, rank %d "
        "calls %s: %s on rank %d, also in all its further calls of that communicator which Open "
        "MPI serves",
        p2p_.comm_id, p2p_.rank, describe(own).text, rank, describe(other).text,
        mpi_error_name(differences), p2p_.rank);
    hands_on_no_more_ = error_of(differences);
    group_.tell_no_more();
    return hands_on_no_more_;
}

void Communicator::abandon_messages() noexcept
{
    try {
        auto fresh = std::make_unique<Messages>();
        lose(std::exchange(messages_, std::move(fresh)));
    } catch (const std::bad_alloc &) { // the ranks call no more
    }
    group_.abandon_page();
}

void Communicator::pin_page(Device &device)
{
    ControlPage &page = group_.page();
    SharedPage &made = page.rooms().data() != nullptr ? page.rooms() : page.memory();
    const unsigned long long context = device.context_ref()->id();
    if (group_.local_size() == 1 || !page.exists() ||
        (pins_ != nullptr && pins_->context == context && pins_->made == made.data())) {
        return;
    }
    const QueuedCalls::Waiting waiting(&process_.contexts().queued());
    if (!waiting.may()) {
        return;
    }
    pins_ = nullptr;
    pins_ = std::make_unique<Pins>(Pins{context, made.data(), {}, {}});
    const std::size_t bytes = page.memory().bytes() + page.rooms().bytes();
    if (!process_.pool().may_hold(bytes)) {
        log(process_.log(), 1,
            "hetcoll: small calls go by pageable memory: pinning %zu bytes would "
            "be more than coll_hetcoll_max_memory %zu allows",
            bytes, process_.settings().max_memory);
        return;
    }
    const auto pin = [&](const SharedPage &memory, PinnedMemory &pinned) {
        auto made_pinned = device.register_host(memory.data(), memory.bytes());
        if (made_pinned.ok()) {
            pinned = std::move(*made_pinned);
        } else {
            log(process_.log(), 1, "hetcoll: small calls go by pageable memory: %s",
                made_pinned.status().message().c_str());
        }
    };
    pin(page.memory(), pins_->page);
    if (page.rooms().data() != nullptr) {
        pin(page.rooms(), pins_->rooms);
    }
}

ReduceOp Communicator::op_of(const hetcoll_call &call) const noexcept
{
    const auto op = static_cast<ReduceOp>(call.op);
    if (op != ReduceOp::kSum || call.kind < 0) {
        return op;
    }
    const auto kind = static_cast<ElementKind>(call.kind);
    const bool in_float = agreed_.accumulate == 0 && agreed_.reproducible == 0;
    const bool once = is_float8(kind) || (is_defined(ReduceOp::kSumOnce, kind) && in_float);
    return once ? ReduceOp::kSumOnce : op;
}

bool Communicator::uses_fixed_point(const hetcoll_call &call) const noexcept
{
    return agreed_.fixed_point != 0 && call.collective == HETCOLL_ALLREDUCE && call.user_op == 0 &&
           call.op == HETCOLL_SUM && (call.kind == HETCOLL_FLOAT32 || call.kind == HETCOLL_FLOAT64);
}

void Communicator::forget_peers() noexcept
{
    if (executor_ != nullptr) {
        executor_->drop_carrier(); // which is the peers'
    }
    peers_.forget();
    if (mapped_ != nullptr) {
        mapped_->forget();
    }
    schedules_.forget();
}

} // namespace hetcoll
