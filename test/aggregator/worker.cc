// A rank without MPI: reduces vectors through an aggregator, or around a ring of its own kind over
// the same network, checks every element and says how long it took. The tests of aggregators
// and bench/aggregator_bench.sh run.
#include "aggregator/client.h"
#include "measure/command_line.h"
#include "test/aggregator/ring.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <unistd.h>
#include <vector>

namespace {

using hetcoll::AggregatorClient;
using hetcoll::AggregatorState;

constexpr int kWrongResult = 1, kFailed = 3, kDied = 9; // exit codes

struct Arguments {
    std::string aggregator, key, ring;
    hetcoll::AggregatorPlan plan;
    std::size_t count = 1000;
    int iterations = 1, warmup = 0, die_in = -1;
    double seconds = 0; // instead of iterations
    bool is_float = false;
};

double now()
{
    using Seconds = std::chrono::duration<double>;
    return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Integers, so that any order of addition gives the same.
template <class T> T input(int rank, std::size_t i, int iteration)
{
    return static_cast<T>((rank + 1) * static_cast<int>(i % 1000 + 1) + iteration % 100);
}

template <class T> T wanted(int ranks, std::size_t i, int iteration)
{
    return static_cast<T>(ranks * (ranks + 1) / 2 * static_cast<int>(i % 1000 + 1) +
                          ranks * (iteration % 100));
}

hetcoll::ElementKind kind_of(const Arguments &a)
{
    return a.is_float ? hetcoll::ElementKind::kFloat32 : hetcoll::ElementKind::kInt32;
}

class Way {
public:
    virtual ~Way() = default;
    // out = sum of all ranks' in. `dies`: goes while others wait for it.
    virtual hetcoll::Status reduce(const std::byte *in, std::byte *out, bool dies) = 0;
    // Whether all ranks are to go on, where some have had enough: the same answer on all.
    virtual hetcoll::Result<bool> all_go_on(bool mine) { return mine; }
    virtual void part() {}
    virtual void print() const {}
};

class AggregatorAllreduce final : public Way {
public:
    AggregatorAllreduce(std::unique_ptr<AggregatorClient> client, const Arguments &a)
        : client_(std::move(client)), a_(a)
    {
    }

    hetcoll::Status join()
    {
        while (client_->step() == AggregatorState::kJoining) {
            client_->wait(100);
        }
        if (const std::string note = client_->take_note(); !note.empty()) {
            std::fprintf(stderr, "rank %d: %s\n", a_.plan.rank, note.c_str());
        }
        return why();
    }

    hetcoll::Status reduce(const std::byte *in, std::byte *out, bool dies) override
    {
        return reduce_some(in, out, kind_of(a_), a_.count, dies);
    }

    hetcoll::Result<bool> all_go_on(bool mine) override
    {
        const std::int32_t stops = mine ? 0 : 1;
        std::int32_t all = 0;
        hetcoll::Status status = reduce_some(reinterpret_cast<const std::byte *>(&stops),
                                             reinterpret_cast<std::byte *>(&all),
                                             hetcoll::ElementKind::kInt32, 1, false);
        if (!status.ok()) {
            return status;
        }
        return all == 0;
    }
    void print() const override
    {
        const hetcoll::AggregatorTraffic t = client_->traffic();
        std::printf(", \"window\": %d, \"most_in_flight\": %d, \"messages_out\": %llu, "
                    "\"messages_in\": %llu, \"payload_bytes_out\": %llu, "
                    "\"payload_bytes_in\": %llu, \"header_bytes_out\": %llu, "
                    "\"header_bytes_in\": %llu",
                    client_->window(), t.most_in_flight, number(t.messages_out),
                    number(t.messages_in), number(t.payload_bytes_out), number(t.payload_bytes_in),
                    number(t.header_bytes_out), number(t.header_bytes_in));
    }

private:
    static unsigned long long number(std::uint64_t n) { return n; }
    hetcoll::Status reduce_some(const std::byte *in, std::byte *out, hetcoll::ElementKind kind,
                                std::size_t count, bool dies)
    {
        const hetcoll_p2p &p2p = client_->table();
        const int peer = a_.plan.ranks + a_.plan.index;
        const std::size_t all = count * hetcoll::element_bytes(kind);
        client_->begin(hetcoll::ReduceOp::kSum, kind, count);
        std::vector<void *> requests;
        bool failed = false;
        for (std::size_t at = 0; at < all && !failed; at += a_.plan.message_bytes) {
            const std::size_t bytes = std::min(a_.plan.message_bytes, all - at);
            if (dies && at + bytes == all) {
                _exit(kDied);
            }
            for (const bool sends : {false, true}) {
                void *request = nullptr;
                const int code = sends ? p2p.isend(p2p.context, in + at, bytes, peer, 0, &request)
                                       : p2p.irecv(p2p.context, out + at, bytes, peer, 0, &request);
                failed = failed || code != 0;
                if (code == 0) {
                    requests.push_back(request);
                }
            }
        }
        for (void *request : requests) {
            int state = p2p.test(p2p.context, &request);
            while (state == 0) {
                p2p.progress(p2p.context);
                state = p2p.test(p2p.context, &request);
                if (state == 0) {
                    client_->wait(100);
                }
            }
            failed = failed || state < 0;
        }
        return failed ? why() : hetcoll::Status();
    }
    hetcoll::Status why()
    {
        if (client_->step() == AggregatorState::kJoined) {
            return {};
        }
        return hetcoll::Status(client_->status().code(), client_->status().message());
    }
    std::unique_ptr<AggregatorClient> client_;
    const Arguments &a_;
};

class RingAllreduce final : public Way {
public:
    RingAllreduce(std::unique_ptr<hetcoll::test::Ring> ring, const Arguments &a)
        : ring_(std::move(ring)), a_(a)
    {
    }
    hetcoll::Status reduce(const std::byte *in, std::byte *out, bool /*dies*/) override
    {
        return ring_->reduce(in, out, a_.count, kind_of(a_));
    }
    void part() override { ring_->part(); }

private:
    std::unique_ptr<hetcoll::test::Ring> ring_;
    const Arguments &a_;
};

hetcoll::Result<std::unique_ptr<Way>> make_way(Arguments &a)
{
    using namespace hetcoll;
    if (!a.ring.empty()) {
        Result<std::vector<Endpoint>> at = parse_endpoints(a.ring);
        if (!at.ok()) {
            return at.take_status();
        }
        a.plan.ranks = static_cast<int>(at->size());
        Result<std::unique_ptr<test::Ring>> ring =
            test::Ring::create(*at, a.plan.rank, a.plan.message_bytes);
        if (!ring.ok()) {
            return ring.take_status();
        }
        return std::unique_ptr<Way>(std::make_unique<RingAllreduce>(std::move(*ring), a));
    }
    Result<Endpoint> endpoint = parse_endpoint(a.aggregator);
    if (!endpoint.ok()) {
        return endpoint.take_status();
    }
    Result<AggregatorKey> key = read_key(a.key);
    if (!key.ok()) {
        return key.take_status();
    }
    a.plan.endpoint = *endpoint;
    a.plan.key = *key;
    a.plan.count = a.plan.count > 0 ? a.plan.count : a.plan.ranks;
    Result<std::unique_ptr<AggregatorClient>> client = AggregatorClient::start(a.plan);
    if (!client.ok()) {
        return client.take_status();
    }
    auto way = std::make_unique<AggregatorAllreduce>(std::move(*client), a);
    if (Status joined = way->join(); !joined.ok()) {
        return joined;
    }
    return std::unique_ptr<Way>(std::move(way));
}

int say_failed(const Arguments &a, const hetcoll::Status &status, int iteration)
{
    std::printf("{\"rank\": %d, \"failed\": \"%s\", \"iteration\": %d}\n", a.plan.rank,
                status.message().c_str(), iteration);
    return kFailed;
}

// Exit code.
template <class T> int run(Way &way, const Arguments &a)
{
    std::vector<T> in(a.count), out(a.count);
    std::vector<double> seconds;
    const double start = now();
    for (int i = 0;; ++i) {
        bool goes_on = i < a.warmup + a.iterations || now() - start < a.seconds;
        if (a.seconds > 0) {
            const hetcoll::Result<bool> all = way.all_go_on(goes_on);
            if (!all.ok()) {
                return say_failed(a, all.status(), i);
            }
            goes_on = *all;
        }
        if (!goes_on) {
            break;
        }
        for (std::size_t k = 0; k < a.count; ++k) {
            in[k] = input<T>(a.plan.rank, k, i);
        }
        const double begin = now();
        const hetcoll::Status status =
            way.reduce(reinterpret_cast<const std::byte *>(in.data()),
                       reinterpret_cast<std::byte *>(out.data()), i == a.die_in);
        if (!status.ok()) {
            return say_failed(a, status, i);
        }
        if (i == 0) { // the tests wait for it
            std::fprintf(stderr, "rank %d is at work\n", a.plan.rank);
        }
        if (i >= a.warmup) {
            seconds.push_back(now() - begin);
        }
        for (std::size_t k = 0; k < a.count; ++k) {
            if (out[k] != wanted<T>(a.plan.ranks, k, i)) {
                std::printf("{\"rank\": %d, \"wrong\": %zu, \"iteration\": %d}\n", a.plan.rank, k,
                            i);
                return kWrongResult;
            }
        }
    }
    way.part();
    std::sort(seconds.begin(), seconds.end());
    std::printf("{\"rank\": %d, \"iterations\": %zu, \"min_s\": %.6f, \"median_s\": %.6f",
                a.plan.rank, seconds.size(), seconds.front(), seconds[seconds.size() / 2]);
    way.print();
    std::printf("}\n");
    return 0;
}

void add_options(hetcoll::CommandLine &line, Arguments &a)
{
    line.add_option("--aggregator", a.aggregator, "host:port");
    line.add_option("--key", a.key, "its key file");
    line.add_option("--ring", a.ring, "instead of an aggregator: where each rank listens");
    line.add_option("--rank", a.plan.rank).required();
    line.add_option("--ranks", a.plan.ranks);
    line.add_option("--first", a.plan.first, "of the ranks that this aggregator serves");
    line.add_option("--served", a.plan.count, "how many it serves; all if not given");
    line.add_option("--job", a.plan.job);
    line.add_option("--comm", a.plan.comm);
    line.add_option("--window", a.plan.window).show_default();
    line.add_option("--message-bytes", a.plan.message_bytes).show_default();
    line.add_option("--rdma", a.plan.rdma, "a device");
    line.add_option("--join-seconds", a.plan.join_seconds).show_default();
    line.add_option("--silence-seconds", a.plan.silence_seconds).show_default();
    line.add_option("--count", a.count, "elements").show_default();
    line.add_option("--iterations", a.iterations).show_default();
    line.add_option("--warmup", a.warmup).show_default();
    line.add_option("--seconds", a.seconds, "measure for at least this time");
    line.add_option("--die-in", a.die_in, "go in the middle of this iteration");
    line.add_flag("--float", a.is_float);
}

} // namespace

int main(int argc, char **argv)
{
    hetcoll::CommandLine line("worker", "A rank of the tests of aggregators.");
    Arguments a;
    a.plan.job = 1;
    add_options(line, a);
    int exit_code = 0;
    if (!line.parse(argc, argv, exit_code)) {
        return exit_code;
    }
    hetcoll::Result<std::unique_ptr<Way>> way = make_way(a);
    if (!way.ok()) {
        std::printf("{\"rank\": %d, \"failed\": \"%s\"}\n", a.plan.rank,
                    way.status().message().c_str());
        return kFailed;
    }
    return a.is_float ? run<float>(**way, a) : run<std::int32_t>(**way, a);
}
