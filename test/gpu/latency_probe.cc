// Measures the driver's part of a small blocking MPI_Allreduce on this machine, whatever hetcoll
// does: launches, flags, words, copies and queries, with what could replace them. It judges nothing
// and needs neither nvcc nor a library but the driver. A call's time is to be read next to these
// floors of the same machine.
#include "test/gpu/latency_probe.h"

#include <cstdio>

int main()
{
    using namespace hetcoll::probe;
    int version = 0;
    cuDriverGetVersion(&version);
    std::printf("driver API: %d; times are medians of %d calls, then 99 of 100\n", version,
                repetitions());
    ask("attributes of the device", 30, ask_about_attributes);
    ask("cuStreamQuery of an idle stream", 30, measure_stream_queries);
    ask("a launch, until the host sees its flag", 60, measure_launches);
    ask("words that the stream writes", 30, measure_memory_operations);
    ask("a kernel queued behind a wait for a word", 30, measure_gated_launches);
    ask("copies", 30, measure_copies);
    ask("cuLaunchKernel next to other threads that launch", 30, measure_threads);
    ask("two processes at the same time", 60, measure_two_processes);
    ask("single questions", 30, ask_single_questions);
    return 0;
}
