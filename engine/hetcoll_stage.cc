// The boundary's functions for staging; no exception crosses it, and what throws is memory
// exhaustion.
#include "engine/boundary.h"
#include "engine/hetcoll.h"
#include "engine/process/memory_reserve.h"
#include "engine/process/stage.h"
#include "engine/process_handle.h"

#include <cctype>
#include <new>

using hetcoll::if_memory_lasts;
using hetcoll::PointerCache;
using hetcoll::Process;
using hetcoll::Stage;

struct hetcoll_stage {
    explicit hetcoll_stage(Process &its_process) : process(its_process), stage(its_process) {}
    Process &process;
    Stage stage;
    bool out_of_memory = false;
};

namespace {

int add(Process &process, hetcoll_stage **stage, void *buffer, const void *first,
        int leave_ordinary)
{
    PointerCache &pointers = process.gpus().pointers();
    auto found = pointers.find(first);
    if (!found.ok()) {
        found = pointers.find(first); // once more: all depends on it
    }
    if (found.ok() &&
        (found->kind == hetcoll::MemoryKind::kHost || (leave_ordinary != 0 && found->legacy_ipc))) {
        return 0;
    }
    if (*stage == nullptr) {
        process.counters().count(HETCOLL_STAGED_COLLECTIVE);
        *stage = new hetcoll_stage(process);
    }
    (*stage)->stage.add(buffer, std::move(found));
    return 1;
}

} // namespace

int hetcoll_stage_add(hetcoll_process *owner, hetcoll_stage **stage, void *buffer,
                      const void *first, int leave_ordinary)
{
    Process &process = *owner->process;
    if (process.gpus().pointers().is_surely_host(first)) {
        return 0;
    }
    static_cast<void>(hetcoll::MemoryReserve::fill());
    return if_memory_lasts([&] { return add(process, stage, buffer, first, leave_ordinary); },
                           [] { return -1; });
}

void hetcoll_stage_run(hetcoll_stage *stage, const hetcoll_run *run, int use)
{
    if_memory_lasts(
        [&] {
            stage->stage.add_run(*run, (use & HETCOLL_STAGE_READ) != 0,
                                 (use & HETCOLL_STAGE_WRITTEN) != 0);
        },
        [&] { stage->out_of_memory = true; });
}

void *hetcoll_stage_host(hetcoll_stage *stage)
{
    return if_memory_lasts([&] { return stage->out_of_memory ? nullptr : stage->stage.host(); },
                           [] { return nullptr; });
}

void hetcoll_stage_start(hetcoll_stage *stage, int use)
{
    if_memory_lasts(
        [&] {
            if ((use & HETCOLL_STAGE_READ) != 0) {
                stage->stage.start_read();
            } else {
                stage->stage.start_write();
            }
        },
        [&] { stage->stage.end_without_memory(); });
}

int hetcoll_stage_is_done(hetcoll_stage *stage)
{
    return if_memory_lasts([&] { return stage->stage.is_done() ? 1 : 0; },
                           [&] {
                               stage->stage.end_without_memory();
                               return 1;
                           });
}

int hetcoll_stage_has_input(const hetcoll_stage *stage) { return stage->stage.has_input() ? 1 : 0; }

int hetcoll_stage_finish(hetcoll_stage *stage, const char *collective)
{
    const hetcoll::Status failure = stage->stage.take_failure();
    if (failure.ok()) {
        return HETCOLL_SUCCESS;
    }
    hetcoll::log(stage->process.log(), 0,
                 "hetcoll: MPI_%c%s failed on this rank, what it receives is undefined: %s",
                 std::toupper(static_cast<unsigned char>(*collective)), collective + 1,
                 failure.message().c_str());
    return failure.code() == hetcoll::Errc::kNoMemory ? HETCOLL_ERROR_NO_MEMORY
                                                      : HETCOLL_ERROR_DEVICE;
}

void hetcoll_stage_destroy(hetcoll_stage *stage) { delete stage; }
