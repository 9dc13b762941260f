#include "engine/communicator/step_progress.h"

#include <algorithm>

namespace hetcoll {

void StepProgress::start(const Schedule &schedule, const Vectors &vectors)
{
    schedule_ = &schedule;
    vectors_ = vectors;
    const std::size_t element = element_bytes(vectors.kind);
    extents_.resize(schedule.steps.size());
    for (std::size_t i = 0; i < extents_.size(); ++i) {
        const Step &step = schedule.steps[i];
        const ElementSpan span = range_span(vectors.count, schedule.block_count, step.blocks);
        extents_[i] = {.first = span.first * element,
                       .bytes = span.count * element,
                       .transfer =
                           step.kind == StepKind::kSend ? Transfer::kSend : Transfer::kReceive};
    }
}

bool StepProgress::find_next(Cursor &next, int channel, Transfer transfer) const noexcept
{
    for (; next.step < count(); next = {next.step + 1, 0}) {
        const Extent &extent = extents_[next.step];
        if (step(next.step).channel == channel && extent.transfer == transfer &&
            next.offset < extent.bytes) {
            return true;
        }
    }
    return false;
}

Chunk StepProgress::chunk_at(const Cursor &next, std::size_t most_bytes) const noexcept
{
    return {next.step, next.offset, std::min(extents_[next.step].bytes - next.offset, most_bytes)};
}

// A step that has nothing in common with it must be complete.
std::size_t StepProgress::ready_bytes(int step) const noexcept
{
    const Extent &self = extents_[step];
    std::size_t ready = self.bytes;
    for (const int before : schedule_->after_of(schedule_->steps[step])) {
        const Extent &extent = extents_[before];
        if (extent.done == extent.bytes) {
            continue;
        }
        if (extent.first >= self.first + self.bytes || extent.first + extent.bytes <= self.first) {
            return 0;
        }
        const std::size_t end = std::max(extent.first + extent.done, self.first);
        ready = std::min(ready, end - self.first);
    }
    return ready;
}

StepProgress::Awaited StepProgress::awaited() const noexcept
{
    for (const bool sends : {false, true}) {
        for (int i = 0; i < count(); ++i) {
            const Extent &extent = extents_[i];
            if ((step(i).kind == StepKind::kSend) == sends && extent.done < extent.bytes &&
                ready_bytes(i) > extent.done) {
                return {.peer = step(i).peer,
                        .step = i,
                        .sends = sends,
                        .done = extent.done,
                        .bytes = extent.bytes};
            }
        }
    }
    return {};
}

} // namespace hetcoll
