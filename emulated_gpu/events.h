// Events: a point in a stream's order, for one process or (in shared memory) for several.
#pragma once

#include "emulated_gpu/handles.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/streams.h"

#include <cuda.h>

#include <memory>
#include <mutex>

namespace hetcoll::emulated_gpu {

struct Context;

struct Event {
    ~Event();

    unsigned flags = 0;
    Context *context = nullptr;
    SharedEvent *shared = nullptr; // of an interprocess event
    bool imported = false;         // made by another process

    // One cuEventRecord.
    struct Record {
        std::atomic<bool> done{false};
        std::uint64_t time_ns = 0;
    };
    std::mutex mutex; // guards what follows
    StreamPointer stream;
    std::uint64_t number = 0; // of the record in its stream
    std::shared_ptr<Record> record;
    std::weak_ptr<Capture> capture; // recorded in a capture
};

[[nodiscard]] HandleTable<Event> &events();

void forget_events_of(const Context *context);

} // namespace hetcoll::emulated_gpu
