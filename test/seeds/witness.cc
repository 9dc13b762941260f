#include "test/seeds/witness.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace hetcoll::test {
namespace {

Witness *witness = nullptr;

// The parts of a copy.
bool is_of_a_copy(std::string_view call)
{
    constexpr std::array<std::string_view, 8> kCalls = {
        "cuEventRecord",       "cuEventQuery",     "cuStreamQuery",    "cuStreamWaitEvent",
        "cuStreamSynchronize", "cuCtxSynchronize", "cuCtxPushCurrent", "cuCtxSetCurrent"};
    return call.starts_with("cuMemcpy") ||
           std::find(kCalls.begin(), kCalls.end(), call) != kCalls.end();
}

} // namespace

Witness::Witness()
{
    witness = this;
    cuda().emulated_gpu_tell_failures(hear_failure);
}

Witness::~Witness()
{
    cuda().emulated_gpu_tell_failures(nullptr);
    witness = nullptr;
}

void Witness::look_at(Rank &rank, int communicator, Communicator &comm)
{
    rank_ = &rank;
    communicator_ = communicator;
    comm_ = &comm;
}

Witness::Moment Witness::now() const
{
    return {comm_->group().own_call().count(), comm_->group().meetings()};
}

void Witness::hear_failure(const char *call, int)
{
    if (witness->comm_ != nullptr && is_of_a_copy(call)) {
        witness->failed_copies_[witness->comm_] = witness->now();
    }
}

// The first call of the communicator that is not complete: the queue runs no other.
void Witness::note_end()
{
    const auto call =
        std::find_if(rank_->running.begin(), rank_->running.end(), [this](const Running &running) {
            return running.plan.communicator == communicator_ && !running.operation->is_complete();
        });
    const auto failed = failed_copies_.find(comm_);
    call->lost_result = failed != failed_copies_.end() && failed->second == now() &&
                        !comm_->agreed().uses_fixed_point(call->call);
}

void Witness::hear_line(int level, const char *line)
{
    lines().push_back(std::to_string(level) + " " + line);
    if (witness != nullptr && witness->comm_ != nullptr &&
        std::string_view(line).find("failed, the receive buffer is undefined") !=
            std::string_view::npos) {
        witness->note_end();
    }
}

} // namespace hetcoll::test
