#include "engine/communicator/mapped_call.h"

#include <algorithm>

namespace hetcoll {
namespace {

// Shares of the vector begin at whole lines of memory.
constexpr std::size_t kShareBytes = 256;

// The share that owner `index` of `owners` reduces.
ElementSpan share_of(std::size_t count, std::size_t element, int owners, int index)
{
    const std::size_t line = std::max<std::size_t>(1, kShareBytes / element);
    const ElementSpan lines = block_span((count + line - 1) / line, owners, index);
    const std::size_t first = std::min(lines.first * line, count);
    return {first, std::min((lines.first + lines.count) * line, count) - first};
}

std::uint64_t closes_of(const PeerMemory &memory)
{
    const PeerCounters counters = memory.counters();
    return counters.closes + counters.failures;
}

} // namespace

Status fits_attached(std::size_t bytes, const Scratch &memory)
{
    if (bytes <= memory.bytes) {
        return {};
    }
    return error(Errc::kInvalid,
                 "a queued call of %zu bytes is larger than the %zu for which its stream was "
                 "attached",
                 bytes, memory.bytes);
}

MappedCall::MappedCall(Process &process, NodeGroup &group, Peers &peers)
    : log_(process.log()), gpus_(process.gpus()), group_(group), peers_(peers),
      mapped_(static_cast<std::size_t>(group.all().size))
{
}

SharedBuffer MappedCall::describe(const void *buffer, const PointerInfo &info, std::size_t bytes)
{
    if (info.kind != MemoryKind::kDevice) {
        return SharedBuffer{};
    }
    const Allocation allocation{.device = info.device,
                                .buffer_id = info.buffer_id,
                                .base = info.base,
                                .bytes = info.bytes,
                                .legacy_ipc = info.legacy_ipc};
    return gpus_.sharing().exporter->describe(allocation, buffer, bytes);
}

SharedBuffer MappedCall::describe(const Scratch &scratch)
{
    SharedBuffer shared =
        gpus_.sharing().exporter->describe(scratch.allocation, scratch.data(), buffers_.bytes);
    shared.stands_in = true;
    return shared;
}

Result<MappedCall::Copy> MappedCall::plan(Algorithm algorithm, const Buffers &buffers,
                                          DeviceWork &gpu)
{
    algorithm_ = algorithm;
    buffers_ = buffers;
    gpu_ = &gpu;
    copies_out_ = false;
    bytes_mapped_ = 0;
    unmapped_ = {};
    input_ = static_cast<const std::byte *>(buffers.send);
    output_ = static_cast<std::byte *>(buffers.recv);
    if (buffers.stands_in != nullptr) {
        return plan_in(*buffers.stands_in);
    }
    const bool in_place = buffers.send == buffers.recv;
    const bool input_only = shares_input_only(algorithm);
    const auto is_shared = [](const SharedBuffer &buffer) {
        return buffer.kind != SharedKind::kNone;
    };

    if (buffers.keep_input && in_place && plan_beside(gpu)) {
        return Copy{};
    }
    shared_output_ = SharedBuffer{};
    if (!input_only) {
        shared_output_ = describe(buffers.recv, buffers.recv_info, buffers.bytes);
    }
    const bool output_ok = input_only || is_shared(shared_output_);
    // Peers read the input while a one-shot rank writes its result.
    const bool input_free =
        !buffers.foreign && !has(algorithm, Trait::kCopiesIn) && !(input_only && in_place);
    shared_input_ = SharedBuffer{};
    if (output_ok && input_free) {
        shared_input_ =
            in_place ? shared_output_ : describe(buffers.send, buffers.send_info, buffers.bytes);
    }
    if (output_ok && is_shared(shared_input_)) {
        return Copy{};
    }
    if (output_ok && !input_only) { // the input goes to the output, and is reduced in place
        shared_input_ = shared_output_;
        input_ = output_;
        return Copy{.to = buffers.recv, .from = buffers.send};
    }
    auto scratch = gpus_.pool().borrow_scratch(gpu.device(), buffers.bytes);
    if (!scratch.ok()) {
        return scratch.take_status();
    }
    scratch_ = std::move(*scratch);
    return plan_in(*scratch_);
}

// The input is copied to memory of hetcoll's own, and reduced there if peers need the output.
Result<MappedCall::Copy> MappedCall::plan_in(const Scratch &memory)
{
    if (Status fits = fits_attached(buffers_.bytes, memory); !fits.ok()) {
        return fits;
    }
    if (shares_input_only(algorithm_) && buffers_.recv == memory.data()) {
        return error(Errc::kUnsupported, "its result would be written where peers still read");
    }
    shared_input_ = describe(memory);
    if (shared_input_.kind == SharedKind::kNone) {
        return error(Errc::kUnsupported, "device memory of hetcoll's own cannot be shared: %s",
                     reason(shared_input_.why));
    }
    input_ = memory.data();
    shared_output_ = SharedBuffer{};
    if (!shares_input_only(algorithm_)) {
        shared_output_ = shared_input_;
        output_ = memory.data();
        copies_out_ = output_ != buffers_.recv;
    }
    return input_ == buffers_.send ? Copy{} : Copy{.to = memory.data(), .from = buffers_.send};
}

// The result goes next to the input, which a call may need once more. False: it cannot.
bool MappedCall::plan_beside(DeviceWork &gpu)
{
    shared_input_ = describe(buffers_.recv, buffers_.recv_info, buffers_.bytes);
    if (shared_input_.kind == SharedKind::kNone) {
        return false;
    }
    auto scratch = gpus_.pool().borrow_scratch(gpu.device(), buffers_.bytes);
    if (!scratch.ok()) {
        log(log_, 1, "hetcoll: a call in place waits for the rank that comes last: %s",
            scratch.status().message().c_str());
        return false;
    }
    shared_output_ = describe(**scratch);
    if (shared_output_.kind == SharedKind::kNone) {
        gpus_.pool().give_back(std::move(*scratch));
        return false;
    }
    scratch_ = std::move(*scratch);
    output_ = scratch_->data();
    copies_out_ = true;
    return true;
}

bool MappedCall::publish()
{
    if (group_.local_size() == 1) {
        return false;
    }
    group_.announce(shared_input_, shared_output_);
    const auto is_new = [this](const SharedBuffer &buffer) {
        return buffer.kind != SharedKind::kNone && !is_known(buffer);
    };
    return is_new(shared_input_) || is_new(shared_output_) ||
           closes_ != closes_of(*gpus_.sharing().memory);
}

bool MappedCall::is_known(const SharedBuffer &buffer) const noexcept
{
    return std::find(known_.begin(), known_.end(), known_as(buffer)) != known_.end();
}

void MappedCall::serve() const noexcept
{
    const bool passes_fds =
        shared_input_.kind == SharedKind::kVmm || shared_output_.kind == SharedKind::kVmm;
    if (FdSocket *socket = passes_fds ? gpus_.sharing().socket.get() : nullptr) {
        socket->step();
    }
}

void MappedCall::remember() noexcept
{
    for (const SharedBuffer &buffer : {shared_input_, shared_output_}) {
        if (buffer.kind != SharedKind::kNone && !is_known(buffer)) {
            known_[next_known_++ % kRemembered] = known_as(buffer);
        }
    }
    closes_ = closes_of(*gpus_.sharing().memory);
}

MappedCall::Copy MappedCall::copy_out() const noexcept
{
    return copies_out_ ? Copy{.to = buffers_.recv, .from = output_} : Copy{};
}

Result<bool> MappedCall::map(Algorithm algorithm, const Schedule *schedule, int missing)
{
    std::fill(mapped_.begin(), mapped_.end(), MappedPeer{});
    unmapped_ = {};
    if (group_.local_size() == 1) {
        return true;
    }
    find_needed(algorithm, schedule);
    bool all = true;
    Status first_problem;
    for (const int rank : group_.local_ranks()) {
        if (mapped_[rank].input == nullptr || rank == missing) {
            continue;
        }
        Result<bool> mapped = map_rank(rank, !shares_input_only(algorithm));
        if (mapped.ok()) {
            all = all && *mapped;
        } else if (first_problem.ok()) {
            first_problem = mapped.take_status();
        }
    }
    return first_problem.ok() ? Result<bool>(all) : Result<bool>(std::move(first_problem));
}

Result<bool> MappedCall::map_all(PeerLease &lease, std::size_t bytes)
{
    lease.release();
    for (const int rank : group_.local_ranks()) {
        if (rank == group_.all().rank || !peers_.reach(rank, group_.all().rank)) {
            continue;
        }
        const SharedBuffer announced = group_.slot(group_.local_number(rank)).input;
        Result<void *> mapped = gpus_.sharing().memory->map(group_.process(rank), announced, bytes,
                                                            *gpu_->device(), lease);
        if (!mapped.ok()) {
            return mapped.take_status();
        }
        if (*mapped == nullptr) {
            return false;
        }
    }
    return true;
}

MappedCall::Unmapped MappedCall::unmapped() const noexcept
{
    Unmapped found;
    if ((unmapped_.inputs | unmapped_.outputs).none()) {
        return found;
    }
    for (int number = 0; number < group_.local_size(); ++number) {
        const auto look = [&](const RankSet &unmapped, const SharedBuffer &buffer) {
            if (unmapped[static_cast<std::size_t>(number)] &&
                (found.buffer == nullptr || buffer.stands_in)) {
                found = {group_.local_ranks()[number], &buffer};
            }
        };
        look(unmapped_.inputs, group_.slot(number).input);
        look(unmapped_.outputs, group_.slot(number).output);
    }
    return found;
}

void MappedCall::tell_unmapped() noexcept
{
    if (group_.local_size() > 1) {
        group_.own_slot().unmapped = unmapped_;
    }
}

void MappedCall::hear_unmapped() noexcept
{
    const auto own = static_cast<std::size_t>(group_.local_rank());
    bool input = false, output = false;
    for (int rank = 0; rank < group_.local_size() && group_.local_size() > 1; ++rank) {
        const ControlPage::Buffers &unmapped = group_.slot(rank).unmapped;
        input = input || unmapped.inputs[own];
        output = output || unmapped.outputs[own];
    }
    if (input) {
        gpus_.sharing().exporter->withdraw(shared_input_);
    }
    if (output) {
        gpus_.sharing().exporter->withdraw(shared_output_);
    }
}

// The ranks to be mapped; until they are, this rank's own vectors stand for theirs.
void MappedCall::find_needed(Algorithm algorithm, const Schedule *schedule)
{
    const int own = group_.all().rank;
    const auto need = [&](int rank) {
        if (mapped_[rank].input == nullptr && rank != own &&
            group_.node_of(rank) == group_.node_of(own) && peers_.reach(rank, own)) {
            mapped_[rank] = {input_, output_, group_.slot(group_.local_number(rank)).progress};
        }
    };
    if (schedule != nullptr) {
        for (const Step &step : schedule->steps) {
            need(step.peer);
        }
    } else if (!has(algorithm, Trait::kLeads) || group_.is_leader()) {
        for (const int rank : group_.local_ranks()) {
            need(rank);
        }
    }
}

Result<bool> MappedCall::map_rank(int rank, bool output)
{
    const ControlPage::Slot &slot = group_.slot(group_.local_number(rank));
    Result<void *> in = map_buffer(rank, slot.input, unmapped_.inputs);
    Result<void *> out = output ? map_buffer(rank, slot.output, unmapped_.outputs) : nullptr;
    if (!in.ok() || !out.ok()) {
        return in.ok() ? out.take_status() : in.take_status();
    }
    if (*in == nullptr || (*out == nullptr && output)) {
        return false;
    }
    mapped_[rank] = {static_cast<const std::byte *>(*in), static_cast<const std::byte *>(*out),
                     slot.progress};
    return true;
}

Result<void *> MappedCall::map_buffer(int rank, const SharedBuffer &buffer, RankSet &unmapped)
{
    const SharedBuffer announced = buffer; // checked and used as one, whatever its owner does
    Result<void *> mapped = gpus_.sharing().memory->map(group_.process(rank), announced,
                                                        buffers_.bytes, *gpu_->device(), lease_);
    if (buffers_.stands_in != nullptr && mapped.ok() && *mapped == nullptr) { // it stays so
        mapped =
            error(Errc::kDriver, "memory of rank %d is not mapped as it was at the attach", rank);
    }
    if (!mapped.ok()) {
        unmapped[static_cast<std::size_t>(group_.local_number(rank))] = true;
    }
    return mapped;
}

MappedPeers MappedCall::peers(std::span<const LocalStep> steps) noexcept
{
    if (group_.local_size() == 1) {
        return {};
    }
    return {mapped_, steps, group_.take_progress(word_count(steps))};
}

MappedCall::KernelWork MappedCall::kernel_work(Algorithm algorithm, ReduceOp op, ElementKind kind,
                                               std::size_t count, OperandLists &lists) const
{
    const std::size_t element = element_bytes(kind);
    ElementSpan share{0, count};
    if (has(algorithm, Trait::kByShares)) {
        share = share_of(count, element, group_.local_size(), group_.local_rank());
    } else if (has(algorithm, Trait::kLeads) && !group_.is_leader()) {
        share.count = 0;
    }
    const std::size_t offset = share.first * element;
    const std::span<const int> ranks = group_.local_ranks();
    const auto rank_after = [&](int first, std::size_t i) {
        return ranks[(first + i) % ranks.size()];
    };
    const int first_input = depends_on_order(op, kind) ? 0 : group_.local_rank();
    KernelWork work{.in = {}, .out = {}, .count = share.count};
    const bool own_result = shares_input_only(algorithm);
    const void **const inputs = addresses(work.in, ranks.size(), lists);
    void **const outputs = addresses(work.out, own_result ? 1 : ranks.size(), lists);
    outputs[0] = output_ + offset;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const int source = rank_after(first_input, i), target = rank_after(group_.local_rank(), i);
        inputs[i] = (source == group_.all().rank ? input_ : mapped_[source].input) + offset;
        if (i > 0 && !own_result) {
            outputs[i] = const_cast<std::byte *>(mapped_[target].output) + offset;
        }
    }
    return work;
}

std::size_t MappedCall::bytes_of(const KernelWork &work, ElementKind kind) noexcept
{
    return static_cast<std::size_t>(work.in.count + work.out.count - 2) * work.count *
           element_bytes(kind);
}

Result<bool> MappedCall::start_kernel(Algorithm algorithm, ReduceOp op, ElementKind kind,
                                      std::size_t count)
{
    const KernelWork work = kernel_work(algorithm, op, kind, count, gpu_->lists());
    if (work.count == 0) {
        return false;
    }
    bytes_mapped_ = bytes_of(work, kind);
    Status started = gpu_->start_kernel(op, kind, work.out, work.in, work.count);
    return started.ok() ? Result<bool>(true) : Result<bool>(std::move(started));
}

void MappedCall::release() noexcept
{
    lease_.release();
    gpus_.pool().give_back(std::move(scratch_));
}

} // namespace hetcoll
