// A thread's first calls need little of its stack. small_stack WHERE COUNT MOST: "host" or
// "device", how many floats, and how many bytes of stack.
#include "test/mpi/check.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kStackBytes = 512u << 10, kOwnBytes = 1024;
constexpr std::byte kPaint{0xa5};

struct Thread {
    Program &program;
    Memory memory;
    std::size_t count;
    std::vector<std::byte> stack = std::vector<std::byte>(kStackBytes);
    std::size_t used = 0; // bytes of its stack by the call
};

// The part of the stack below the function that calls this one, and its callees' frames.
[[gnu::noinline]] std::span<std::byte> below(Thread &thread)
{
    auto *const here = static_cast<std::byte *>(__builtin_frame_address(0));
    return {thread.stack.data(), static_cast<std::size_t>(here - thread.stack.data()) - kOwnBytes};
}

void *call(void *given)
{
    Thread &thread = *static_cast<Thread *>(given);
    if (thread.memory == Memory::kDevice) {
        const Gpu &gpu = thread.program.gpu();
        gpu.driver().cuCtxSetCurrent(gpu.context());
    }
    Buffers buffers(thread.program, MPI_COMM_WORLD,
                    {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1},
                     thread.count,
                     thread.memory,
                     thread.memory});
    buffers.fill();
    const std::span<std::byte> stack = below(thread);
    std::ranges::fill(stack, kPaint);
    buffers.reduce();
    const auto last = std::ranges::find_if(stack, [](std::byte b) { return b != kPaint; });
    thread.used = static_cast<std::size_t>(stack.end() - last) + kOwnBytes;
    buffers.check();
    return nullptr;
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    using namespace hetcoll::test;
    Program program(argc, argv, "small_stack", MPI_THREAD_SERIALIZED);
    if (argc != 4) {
        program.check(false, "usage: small_stack WHERE COUNT MOST");
        return program.finish();
    }
    Thread thread{.program = program,
                  .memory = std::string_view(argv[1]) == "device" ? Memory::kDevice : Memory::kHost,
                  .count = static_cast<std::size_t>(std::atol(argv[2]))};
    const auto most = static_cast<std::size_t>(std::atol(argv[3]));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, thread.stack.data(), kStackBytes);
    pthread_t made;
    program.check(pthread_create(&made, &attributes, &call, &thread) == 0 &&
                      pthread_join(made, nullptr) == 0,
                  "no thread");
    program.check(thread.used <= most, "the first call took %zu bytes of stack, not at most %zu",
                  thread.used, most);
    return program.finish();
}
