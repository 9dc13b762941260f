// Prepares what the queued calls of a communicator may not make themselves: the control page
// page-locked, streams and events, and memory for their vectors that the ranks of a node map.
#include "engine/call/prepared.h"
#include "engine/call/protocols.h"
#include "plan/facts.h"

namespace hetcoll {
namespace {

static_assert(DeviceBounce::kReservedChannels == HETCOLL_TAGS, "a channel takes a tag");

void make_all(Call &call)
{
    if (call.work.device == nullptr) {
        return;
    }
    Status made = call.work.device->reserve();
    if (made.ok()) {
        made = call.work.device->kernels().load();
    }
    if (made.ok()) {
        call.comm.page_pins().pin(*call.work.device->device());
    }
    call.note(std::move(made));
}

bool poll_map_all(Call &call, Status &problem)
{
    if (!call.work.device->enter().ok()) {
        problem = error(Errc::kDriver, "the context of a stream is gone");
        return true;
    }
    Result<bool> done = call.planner.mapped().map_all(call.comm.reserved().lease, call.bytes);
    if (done.ok()) {
        return *done;
    }
    problem = done.take_status();
    return true;
}

} // namespace

Task<int> attach(Call &call)
{
    Communicator &comm = call.comm;
    look_at_buffers(call);
    co_await make_ready(call);
    make_all(call);
    if (comm.p2p().size == 1) {
        co_return call.result();
    }
    // Read and written by peers, as the kernel does that needs most.
    const Choice choice{{.algorithm = kNeedsMostMapping}};
    Published published(call.planner);
    if (call.planner.peers().found().maps) {
        co_await publish(call, choice, published);
    } else {
        call.flags |= kNoMapping;
    }
    Flags all = co_await call.agree();
    if (any(all, kErrors)) {
        co_return call.fail_together(all);
    }
    bool maps = !any(all, kNoMapping | kMustStage);
    if (maps) {
        Status problem;
        co_await until([&call, &problem] { return poll_map_all(call, problem); });
        if (!problem.ok()) {
            log(call.report.log(), 1, "hetcoll: queued calls go by messages: %s",
                problem.message().c_str());
            call.flags |= kNoMapping;
        }
        all = co_await call.agree();
        maps = !any(all, kNoMapping | kErrors);
    }
    comm.reserved().maps = maps;
    if (!any(all, kErrors)) {
        auto &stream = *static_cast<PreparedStream *>(call.args->context);
        all = co_await PreparedStream::attach(call, stream);
    }
    co_return any(all, kErrors) ? call.fail_together(all) : call.result();
}

} // namespace hetcoll
