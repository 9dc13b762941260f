#include "engine/call/prepared.h"

#include "engine/call/protocols.h"
#include "plan/facts.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <utility>

namespace hetcoll {
namespace {

using Shape = PreparedStream::Shape;

constexpr unsigned kPollsPerQuery = 4096; // a kernel that fails never sets its flag
constexpr std::size_t kWordsBytes = 256;

std::size_t class_of(std::size_t bytes) noexcept
{
    return bytes <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(bytes - 1));
}

// Whether all ranks know how to combine it, element by element, without a meeting of their own.
bool can_prepare(const Communicator &comm, const hetcoll_call &call) noexcept
{
    return call.collective == HETCOLL_ALLREDUCE && call.kind >= 0 && call.user_op == 0 &&
           call.count > 0 && !comm.agreed().uses_fixed_point(call);
}

} // namespace

PreparedStream::~PreparedStream() { give_up_kernels(); }

Status PreparedStream::make(const std::shared_ptr<Device> &device, std::size_t most_bytes)
{
    device_ = device;
    most_bytes_ = most_bytes;
    list_count_ = comm_.group().local_size() > kMaxArgumentInputs ? kMostCalls : 1;
    const std::size_t vector_at = kWordsBytes + list_count_ * sizeof(OperandLists);
    auto pinned = device->make_pinned(vector_at + comm_.agreed().small_limit());
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    memory_ = std::move(*pinned);
    auto address = device->address_of(memory_);
    if (!address.ok()) {
        return address.take_status();
    }
    static_assert(sizeof(Words) <= kWordsBytes);
    words_ = new (memory_.get()) Words{};
    address_ = *address;
    auto *const memory = static_cast<std::byte *>(memory_.get());
    lists_ = new (memory + kWordsBytes) OperandLists[list_count_];
    meeting_vector_ = memory + vector_at;
    auto own = device->make_stream(StreamOrder::kIndependent);
    if (!own.ok()) {
        return own.take_status();
    }
    own_ = std::move(*own);
    auto arrived = device->make_zeroed(sizeof(std::uint32_t), own_.get());
    if (!arrived.ok()) {
        return arrived.take_status();
    }
    arrived_ = std::move(*arrived);
    Status found = find_how_to_wait();
    return found.ok()
               ? driver_status(device->driver(), device->driver().cuStreamSynchronize(own_.get()),
                               "cuStreamSynchronize", "attaching a stream")
               : std::move(found);
}

// By trying: drivers tell it in attributes that changed their meaning.
Status PreparedStream::find_how_to_wait()
{
    const auto try_to = [this](Device::WaitsBy by) {
        const CUdeviceptr word = address_ + offsetof(Words, tried);
        Status status = device_->wait_async(by, word, 0, own_.get());
        return status.ok() ? device_->write_async(by, word, 0, own_.get()) : std::move(status);
    };
    const Status by_driver = try_to(waits_by_);
    if (by_driver.ok()) {
        return {};
    }
    log(comm_.log(), 1, "hetcoll: streams wait by a kernel, which keeps a place on the GPU: %s",
        by_driver.message().c_str());
    waits_by_ = Device::WaitsBy::kKernel;
    return try_to(waits_by_);
}

Result<bool> PreparedStream::has_come(std::uint32_t number) { return is_at(words_->come, number); }

Result<bool> PreparedStream::is_at(const std::uint32_t &word, std::uint32_t number)
{
    if (static_cast<std::int32_t>(read_flag(&word) - number) >= 0) {
        return true;
    }
    if (++polls_ % kPollsPerQuery != 0) {
        return false;
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (scope.result() != CUDA_SUCCESS) {
        return driver_status(device_->driver(), scope.result(), "cuCtxPushCurrent",
                             "entering the context of a stream");
    }
    Result<bool> idle = device_->is_idle(own_.get());
    return idle.ok() ? Result<bool>(false) : std::move(idle);
}

// Memory for the vectors of calls, which peers may map.
Status PreparedStream::share(Call &call)
{
    if (Status entered = call.work.device->enter(); !entered.ok()) {
        return entered;
    }
    auto scratch = call.gpus.pool().borrow_scratch(device_, most_bytes_);
    if (!scratch.ok()) {
        return scratch.take_status();
    }
    scratch_ = std::move(*scratch);
    find(call, scratch_->data(), scratch_info_);
    MappedCall::Buffers buffers{};
    buffers.send = buffers.recv = scratch_->data();
    buffers.bytes = most_bytes_;
    buffers.stands_in = scratch_.get();
    // Read and written by peers, as the kernel does that needs most.
    auto planned = mapped_.plan(kNeedsMostMapping, buffers, *call.work.device);
    if (planned.ok()) {
        static_cast<void>(mapped_.publish()); // all map it, new or not
    }
    return planned.take_status();
}

bool PreparedStream::poll_map(Call &call, Status &problem)
{
    if (!call.work.device->enter().ok()) {
        problem = error(Errc::kDriver, "the context of a stream is gone");
        return true;
    }
    PeerLease until_mapped;
    Result<bool> done = mapped_.map_all(until_mapped, most_bytes_);
    if (done.ok() && *done) {
        done = mapped_.map(kNeedsMostMapping, nullptr);
    }
    if (done.ok()) {
        return *done;
    }
    problem = done.take_status();
    return true;
}

Task<Flags> PreparedStream::attach(Call &call, PreparedStream &stream)
{
    std::uint64_t most = stream.most_bytes_; // of the rank that expects least
    call.start_agreement({&most, 1}, ReduceOp::kMin, call.to_tell());
    Flags all = co_await call.all_met();
    call.meeting.sum({&most, 1});
    stream.most_bytes_ = most;
    Status problem;
    if (call.comm.group().nodes() == 1 && call.comm.reserved().maps && stream.learn_kernels()) {
        problem = stream.share(call);
        call.flags |= problem.ok() ? Flags{} : kNoMapping;
        all = co_await call.agree();
        if (!any(all, kNoMapping | kErrors)) {
            co_await until([&] { return stream.poll_map(call, problem); });
            call.flags |= problem.ok() ? Flags{} : kNoMapping;
            all = co_await call.agree();
        }
        if (any(all, kNoMapping | kErrors)) {
            stream.give_up_kernels();
        }
    }
    if (!problem.ok()) {
        log(call.report.log(), 1, "hetcoll: only small calls of a stream are prepared: %s",
            problem.message().c_str());
    }
    co_return all;
}

// For sums of floats; others differ by little, and all ranks must decide alike.
bool PreparedStream::learn_kernels()
{
    bool any = false;
    hetcoll_call call{};
    call.collective = HETCOLL_ALLREDUCE;
    call.kind = HETCOLL_FLOAT32;
    call.op = HETCOLL_SUM;
    for (std::size_t i = 0; i <= class_of(most_bytes_); ++i) {
        const std::size_t bytes = std::max(std::size_t{1} << i, sizeof(float));
        call.count = bytes / sizeof(float);
        kernels_[i] = chooser_.choose_kernel(call, bytes);
        any = any || kernels_[i].has_value();
    }
    return any;
}

void PreparedStream::give_up_kernels() noexcept
{
    kernels_.fill(std::nullopt);
    mapped_.release();
    comm_.gpus().pool().give_back(std::move(scratch_));
}

PreparedStream::Plan PreparedStream::plan(const hetcoll_call &call) const noexcept
{
    const std::size_t bytes = vector_bytes(call);
    if (!can_prepare(comm_, call) || bytes > most_bytes_) {
        return {};
    }
    const bool may_meet = !chooser_.keeps_order(call) || chooser_.meets_in_order();
    if (bytes <= comm_.agreed().small_limit() && may_meet && !chooser_.forces_small_kernel()) {
        return {Shape::kMeeting, kOnHost};
    }
    const std::optional<Algorithm> kernel = kernels_[class_of(bytes)];
    if (!kernel) {
        return {};
    }
    // One that writes its own result alone would need a second vector.
    return {Shape::kKernel, shares_input_only(*kernel) ? kNeedsMostMapping : *kernel};
}

void PreparedCall::begin(PreparedStream &stream, const hetcoll_call &call) noexcept
{
    stream_ = &stream;
    plan_ = stream.plan(call);
    number_ = plan_.shape == Shape::kKernel ? ++stream.kernels_planned_ : 0;
    vector_ = nullptr;
    out_to_ = nullptr;
    bytes_mapped_ = 0;
    failure_ = {};
    given_.store(Given::kNotYet, std::memory_order_relaxed);
    told_ = false;
}

// Whether it is memory of the stream's context; false: host memory.
Result<bool> PreparedCall::is_device_memory(const void *buffer) const
{
    Gpus &gpus = stream_->comm_.gpus();
    auto info = gpus.pointers().find(buffer);
    if (!info.ok()) {
        return info.take_status();
    }
    if (!on_device(*info)) {
        return false;
    }
    const Device &own = *stream_->device_;
    bool there = info->context == own.context();
    if (info->context == nullptr) { // of a pool or virtual memory: the primary one's
        const auto device = gpus.contexts().device_of(*info);
        there = device.ok() && device->get() == &own;
    }
    return there ? Result<bool>(true)
                 : error(Errc::kInvalid,
                         "a buffer of a queued call is in another context than its stream");
}

Status PreparedCall::give_input(hetcoll_call &call)
{
    if (plan_.shape == Shape::kNone) {
        return {};
    }
    Result<bool> there = is_device_memory(call.send);
    if (there.ok() && *there && call.recv != call.send) {
        there = is_device_memory(call.recv);
    }
    if (!there.ok() || !*there) { // the host reads or writes it, when the call runs
        return there.ok() ? Status() : there.take_status();
    }
    bytes_ = vector_bytes(call);
    out_to_ = call.recv;
    vector_ = plan_.shape == Shape::kMeeting ? stream_->meeting_vector_ : stream_->scratch_->data();
    const void *const from = std::exchange(call.send, vector_);
    call.recv = vector_;
    kind_ = static_cast<ElementKind>(call.kind);
    count_ = call.count;
    call.dense = 1; // the vector's padding is ours
    const std::size_t readable = has_padding(kind_) ? data_span(kind_, count_) : bytes_;
    return stream_->device_->copy_async(vector_, from, readable, stream_->stream_);
}

void PreparedCall::give_kernel(const hetcoll_call &call) noexcept
{
    if (plan_.shape != Shape::kKernel || !is_staged()) {
        given_.store(Given::kNothing, std::memory_order_release);
        return;
    }
    failure_ = stream_->wait(offsetof(PreparedStream::Words, go), number_);
    if (failure_.ok()) {
        failure_ = start_kernel(call);
    }
    const bool runs = failure_.ok() && bytes_mapped_ != 0;
    given_.store(runs ? Given::kKernel : Given::kNothing, std::memory_order_release);
}

Status PreparedCall::start_kernel(const hetcoll_call &call)
{
    const auto kind = static_cast<ElementKind>(call.kind);
    const ReduceOp op = stream_->comm_.agreed().op_of(call);
    OperandLists &lists = stream_->lists_[number_ % stream_->list_count_];
    const MappedCall::KernelWork work =
        stream_->mapped_.kernel_work(plan_.algorithm, op, kind, call.count, lists);
    if (work.count == 0) {
        return {};
    }
    Signal signal{};
    signal.flag = &stream_->words_->ran;
    signal.arrived = reinterpret_cast<std::uint32_t *>(stream_->arrived_.get());
    signal.value = number_;
    signal.skip = &stream_->words_->skip;
    bytes_mapped_ = MappedCall::bytes_of(work, kind);
    return stream_->device_->kernels().reduce_many_async(op, kind, work.out, work.in, work.count,
                                                         signal, stream_->stream_);
}

Status PreparedCall::give_output()
{
    return is_staged() ? stream_->device_->copy_elements_async(out_to_, vector_, count_, kind_,
                                                               stream_->stream_)
                       : Status();
}

void PreparedCall::look(Call &call) const
{
    if (!is_staged()) {
        look_at_buffers(call);
        call.flags |= kHostMemory; // of one buffer is enough: the others' kernels are skipped
        return;
    }
    call.in_order = call.planner.chooser().keeps_order(*call.args);
    call.bytes = bytes_;
    call.buffers.in = call.buffers.out = vector_;
    if (plan_.shape == Shape::kKernel) {
        call.buffers.send = call.buffers.recv = stream_->scratch_info_;
    }
    call.flags = kDeviceMemory;
}

void PreparedCall::tell(std::uint32_t skip) noexcept
{
    if (plan_.shape == Shape::kKernel && !std::exchange(told_, true)) {
        __atomic_store_n(&stream_->words_->skip, skip, __ATOMIC_RELAXED);
        __atomic_store_n(&stream_->words_->go, number_, __ATOMIC_RELEASE);
    }
}

Result<bool> PreparedCall::kernel_done()
{
    switch (given_.load(std::memory_order_acquire)) {
    case Given::kNotYet: return false;
    case Given::kNothing:
        return failure_.ok() ? Result<bool>(true) : Result<bool>(std::move(failure_));
    case Given::kKernel: break;
    }
    return stream_->is_at(stream_->words_->ran, number_);
}

Task<int> prepared(Call &call)
{
    auto &work = static_cast<PreparedCall &>(*call.work.prepared); // there is no other
    work.look(call);
    if (work.shape() == Shape::kMeeting) {
        co_return co_await host(call);
    }
    const Flags all = co_await call.agree();
    call.report.record.memory |= all;
    if (any(all, kErrors)) {
        co_return call.fail_together(all);
    }
    if (any(all, kHostMemory)) {
        work.skip();
        call.work.prepared = nullptr; // from here a call as any
        co_return co_await allreduce(call);
    }
    call.report.serve(work.algorithm());
    call.mapped = true;
    co_await peers_stay(call);
    work.go();
    call.work.kernel_runs = true;
    co_await call.kernel_done();
    call.comm.membership().touches_no_peers();
    call.report.record.mapped = call.failure.ok();
    call.report.count(HETCOLL_BYTES_MAPPED, work.bytes_mapped());
    const Flags closed = co_await call.agree();
    if (any(closed, kFailed)) {
        co_return call.fail_together(closed);
    }
    co_return call.result();
}

} // namespace hetcoll
