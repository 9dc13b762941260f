// Shared by the parts of the probe and of the latency probe: questions run in a process of their
// own, and the kernels that a driver's answers are about.
#pragma once

#include <cuda.h>
#include <sys/types.h>

#include <functional>
#include <string>

// cuda.h 12 calls it cuCtxCreate, cuda.h 13 no longer does.
extern "C" CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);

namespace hetcoll::probe {

// Runs the questions in a child: they may crash, abort or hang, and that is an answer too.
void ask(const char *title, int most_seconds, void (*questions)());
// The same in two steps, for children that run together. wait_for() prints which signal ended one.
[[nodiscard]] pid_t start_child(int most_seconds, const std::function<void()> &questions);
void wait_for(pid_t child);

// Prints "question: answer".
[[gnu::format(printf, 2, 3)]] void answer(const char *question, const char *format, ...);
void answer(const char *question, CUresult result);
[[nodiscard]] const char *yes_or_no(bool yes);
[[nodiscard]] std::string name_of(CUresult result);

// Ends the child if a call that no question is about fails.
void must(CUresult result, const char *what);

// cuInit, and the primary context of device 0 current.
CUcontext use_primary_context();
[[nodiscard]] CUdeviceptr allocate(std::size_t bytes);
// Page-locked memory of the size.
[[nodiscard]] void *allocate_host(std::size_t bytes);

[[nodiscard]] bool is_emulated();
// On the emulated driver the kernels' host versions run.
[[nodiscard]] CUmodule load_module(const char *ptx);
[[nodiscard]] CUfunction find_kernel(CUmodule module, const char *name);

struct Kernels {
    CUmodule module = nullptr;
    CUfunction spin = nullptr, flag = nullptr;
};
Kernels load_kernels();
// Runs until the word is not zero.
void start_spin(const Kernels &kernels, volatile unsigned *word, CUstream stream);
// Writes the value to the word, after a fence of the whole system.
void start_flag(const Kernels &kernels, volatile unsigned *word, unsigned value, CUstream stream);

void ask_about_contexts();
void ask_about_reset_context();
void ask_about_destroyed_context();
void ask_about_mappings();
void ask_what_waits();
void ask_what_holds_launches();
void ask_what_a_free_holds();
void ask_what_opening_waits();
void ask_about_order();
void measure_costs();

} // namespace hetcoll::probe
