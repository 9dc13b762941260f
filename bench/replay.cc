#include "bench/replay.h"

#include "measure/measure.h"
#include "measure/pattern.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

namespace hetcoll {

namespace {

constexpr int kRoot = 0;
constexpr char kGarbage = '\xee';

double time_us(MPI_Comm comm, const std::function<void()> &call)
{
    MPI_Barrier(comm);
    const double start = MPI_Wtime();
    call();
    return (MPI_Wtime() - start) * 1e6;
}

Pattern pattern_of(const DataCall &call, std::uint32_t seed)
{
    return {call.kind, call.op, Values::kExact, seed};
}

// The seed of what one rank sends to another.
std::uint32_t seed_between(std::uint32_t seed, int ranks, int from, int to)
{
    return seed + static_cast<std::uint32_t>(ranks * from + to);
}

bool is_in_place(const DataCall &call) { return call.in_place || call.call == TracedCall::kBcast; }

} // namespace

Result<std::unique_ptr<Replay>> Replay::create(MPI_Comm comm, const Gpu *gpu,
                                               const HorovodHalf &half,
                                               const std::vector<PlayedCall> &calls)
{
    std::unique_ptr<Replay> replay(new Replay(comm, gpu, half));
    std::size_t fusion_bytes = 0, send_bytes = 0, recv_bytes = 0;
    for (const PlayedCall &played : calls) {
        const Shape shape = replay->shape_of(played.data);
        send_bytes = std::max(send_bytes, shape.send_bytes);
        std::size_t &recv = is_in_place(played.data) ? fusion_bytes : recv_bytes;
        recv = std::max(recv, shape.recv_bytes);
    }
    const Memory memory = gpu != nullptr ? Memory::kDevice : Memory::kHost;
    struct Wanted {
        Buffer &buffer;
        std::size_t bytes;
    };
    for (const Wanted &wanted :
         {Wanted{replay->fusion_, fusion_bytes}, Wanted{replay->send_, send_bytes},
          Wanted{replay->recv_, recv_bytes}}) {
        Result<Buffer> buffer = Buffer::allocate(gpu, memory, wanted.bytes);
        if (!buffer.ok()) {
            return buffer.take_status();
        }
        wanted.buffer = std::move(*buffer);
        const std::vector<char> zeros(wanted.bytes); // sums of them stay what they are
        if (Status status = wanted.buffer.write(0, zeros.data(), zeros.size()); !status.ok()) {
            return status;
        }
    }
    replay->host_send_.resize(send_bytes);
    replay->host_recv_.resize(std::max(fusion_bytes, recv_bytes));
    return replay;
}

Replay::Replay(MPI_Comm comm, const Gpu *gpu, const HorovodHalf &half)
    : comm_(comm), gpu_(gpu), half_(half)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
}

const Buffer &Replay::recv_buffer(const DataCall &call) const noexcept
{
    return is_in_place(call) ? fusion_ : recv_;
}

Replay::Shape Replay::shape_of(const DataCall &call) const
{
    const std::size_t element = element_bytes(call.kind), ranks = static_cast<std::size_t>(ranks_);
    Shape shape{std::vector<int>(ranks), std::vector<int>(ranks)};
    const auto mine = static_cast<std::size_t>(rank_);
    for (std::size_t r = 0; r < ranks; ++r) {
        // Gathered blocks may differ in size. A scattered vector is split as evenly as it can be.
        const std::size_t split = call.count / ranks + (r < call.count % ranks ? 1 : 0);
        shape.counts[r] =
            static_cast<int>(call.call == TracedCall::kAllgatherv ? call.count + r % 3 : split);
    }
    std::exclusive_scan(shape.counts.begin(), shape.counts.end(), shape.first.begin(), 0);
    const auto own = static_cast<std::size_t>(shape.counts[mine]);
    const auto all = static_cast<std::size_t>(shape.first.back() + shape.counts.back());
    std::size_t send = call.count, recv = call.count;
    switch (call.call) {
    case TracedCall::kAllgatherv: send = own, recv = all; break;
    case TracedCall::kAlltoallv: recv = own * ranks; break;
    case TracedCall::kReduceScatter: recv = call.in_place ? call.count : own; break;
    case TracedCall::kAllreduce:
    case TracedCall::kBcast: break;
    }
    shape.send_bytes = is_in_place(call) ? 0 : send * element;
    shape.recv_bytes = recv * element;
    return shape;
}

Replay::Handles Replay::handles_of(const DataCall &call) const
{
    if (call.kind == ElementKind::kFloat16) {
        return {half_.type(), half_.op(call.op)};
    }
    const bool reduces =
        call.call == TracedCall::kAllreduce || call.call == TracedCall::kReduceScatter;
    return {names_.datatype(call.kind), reduces ? names_.op(call.op, call.kind) : MPI_OP_NULL};
}

void Replay::issue(const DataCall &call, const Shape &shape, char *send, char *recv)
{
    const Handles h = handles_of(call);
    const void *const from = call.in_place ? MPI_IN_PLACE : send;
    const int *const counts = shape.counts.data(), *const first = shape.first.data();
    const int own = shape.counts[static_cast<std::size_t>(rank_)];
    switch (call.call) {
    case TracedCall::kAllreduce:
        MPI_Allreduce(from, recv, static_cast<int>(call.count), h.type, h.op, comm_);
        break;
    case TracedCall::kReduceScatter:
        MPI_Reduce_scatter(from, recv, counts, h.type, h.op, comm_);
        break;
    case TracedCall::kBcast:
        MPI_Bcast(recv, static_cast<int>(call.count), h.type, kRoot, comm_);
        break;
    case TracedCall::kAllgatherv:
        MPI_Allgatherv(from, own, h.type, recv, counts, first, h.type, comm_);
        break;
    case TracedCall::kAlltoallv: {
        std::vector<int> from_each(shape.counts.size(), own), first_of_each(shape.counts.size());
        std::exclusive_scan(from_each.begin(), from_each.end(), first_of_each.begin(), 0);
        MPI_Alltoallv(from, counts, first, h.type, recv, from_each.data(), first_of_each.data(),
                      h.type, comm_);
        break;
    }
    }
}

// As Open MPI treats device memory where it knows of it: copy to pageable host memory, call, copy
// back.
void Replay::issue_by_way_of_the_host(const DataCall &call, const Shape &shape)
{
    const Buffer &recv = recv_buffer(call);
    const bool sends = call.call != TracedCall::kBcast || rank_ == kRoot;
    const bool receives = call.call != TracedCall::kBcast || rank_ != kRoot;
    if (sends && is_in_place(call)) {
        require(recv.read(0, host_recv_.data(), shape.recv_bytes), comm_);
    } else if (sends) {
        require(send_.read(0, host_send_.data(), shape.send_bytes), comm_);
    }
    issue(call, shape, host_send_.data(), host_recv_.data());
    if (receives) {
        require(recv.write(0, host_recv_.data(), shape.recv_bytes), comm_);
    }
}

PlayedTime Replay::time(const DataCall &call, const JobCounters &counters, bool compare)
{
    const Shape shape = shape_of(call);
    PlayedTime played;
    const CounterValues before = counters.read();
    played.us = time_us(comm_, [&] { issue(call, shape, send_.data(), recv_buffer(call).data()); });
    const CounterValues used = counters.read() - before;
    played.moved = used[HETCOLL_BYTES_BOUNCE] + used[HETCOLL_BYTES_DIRECT] +
                   used[HETCOLL_BYTES_ADAPTER] + used[HETCOLL_BYTES_MAPPED];
    played.previous = used[HETCOLL_CALLS_PREVIOUS] + used[HETCOLL_CALLS_STAGED];
    const bool comparable = call.call == TracedCall::kAllreduce || call.call == TracedCall::kBcast;
    if (compare && comparable) {
        played.host_copy_us = time_us(comm_, [&] { issue_by_way_of_the_host(call, shape); });
    }
    return played;
}

void Replay::check(const DataCall &call, std::uint32_t seed)
{
    const Shape shape = shape_of(call);
    fill(call, shape, seed);
    issue(call, shape, send_.data(), recv_buffer(call).data());
    compare(call, shape, seed);
}

void Replay::fill(const DataCall &call, const Shape &shape, std::uint32_t seed)
{
    const bool in_place = is_in_place(call);
    std::vector<char> input(in_place ? shape.recv_bytes : shape.send_bytes, kGarbage);
    const std::size_t element = element_bytes(call.kind);
    const auto block = [&](int of) { // the part of the vector that belongs to a rank
        const auto r = static_cast<std::size_t>(of);
        return std::pair(input.data() + static_cast<std::size_t>(shape.first[r]) * element,
                         static_cast<std::size_t>(shape.counts[r]));
    };
    switch (call.call) {
    case TracedCall::kAllreduce:
        fill_input(pattern_of(call, seed), rank_, call.count, input.data());
        break;
    case TracedCall::kBcast:
        if (rank_ == kRoot) {
            fill_input(pattern_of(call, seed), kRoot, call.count, input.data());
        }
        break;
    case TracedCall::kAllgatherv: {
        const auto [data, count] = block(rank_);
        fill_input(pattern_of(call, seed), rank_, count, in_place ? data : input.data());
        break;
    }
    case TracedCall::kReduceScatter:
    case TracedCall::kAlltoallv:
        for (int to = 0; to < ranks_; ++to) {
            const bool reduces = call.call == TracedCall::kReduceScatter;
            const auto [data, count] = block(to);
            fill_input(pattern_of(call, seed_between(seed, ranks_, reduces ? 0 : rank_, to)), rank_,
                       count, data);
        }
        break;
    }
    const std::vector<char> garbage(shape.recv_bytes, kGarbage);
    require((in_place ? fusion_ : send_).write(0, input.data(), input.size()), comm_);
    if (!in_place) {
        require(recv_.write(0, garbage.data(), garbage.size()), comm_);
    }
}

void Replay::compare(const DataCall &call, const Shape &shape, std::uint32_t seed)
{
    std::vector<char> result(shape.recv_bytes);
    require(recv_buffer(call).read(0, result.data(), result.size()), comm_);
    const std::size_t element = element_bytes(call.kind);
    const auto own = static_cast<std::size_t>(shape.counts[static_cast<std::size_t>(rank_)]);
    // One rank's contribution, unreduced, at a place in the result.
    const auto holds = [&](std::size_t first, std::size_t count, std::uint32_t of_seed, int from) {
        std::vector<char> wanted(count * element);
        fill_input(pattern_of(call, of_seed), from, count, wanted.data());
        if (std::memcmp(result.data() + first * element, wanted.data(), wanted.size()) != 0) {
            ++wrong_;
        }
    };
    switch (call.call) {
    case TracedCall::kAllreduce:
        wrong_ += compare_result(pattern_of(call, seed), ranks_, call.count, result.data()).wrong;
        break;
    case TracedCall::kReduceScatter:
        wrong_ += compare_result(pattern_of(call, seed_between(seed, ranks_, 0, rank_)), ranks_,
                                 own, result.data())
                      .wrong;
        break;
    case TracedCall::kBcast: holds(0, call.count, seed, kRoot); break;
    case TracedCall::kAllgatherv:
        for (std::size_t from = 0; from < shape.counts.size(); ++from) {
            holds(static_cast<std::size_t>(shape.first[from]),
                  static_cast<std::size_t>(shape.counts[from]), seed, static_cast<int>(from));
        }
        break;
    case TracedCall::kAlltoallv:
        for (int from = 0; from < ranks_; ++from) {
            holds(static_cast<std::size_t>(from) * own, own,
                  seed_between(seed, ranks_, from, rank_), from);
        }
        break;
    }
}

} // namespace hetcoll
