// libFuzzer's entry: make check-fuzz runs it once for each target. The targets' own name is not an
// option of libFuzzer's, so it comes by the environment: HETCOLL_FUZZ_TARGET; without, the targets
// are printed, a line each: name, most bytes, folder of more seeds or -.
#include "test/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

const hetcoll::test::FuzzTarget *chosen = nullptr;

} // namespace

// hwloc 2.9 loses an object of a malformed file where it gives the file up (a program of hwloc
// alone shows it). Only the topology of hwloc's memory could leak, and another function makes it.
extern "C" const char *__lsan_default_suppressions() { return "leak:hwloc_alloc_setup_object\n"; }

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
    const char *const name = std::getenv("HETCOLL_FUZZ_TARGET");
    for (const auto &target : hetcoll::test::fuzz_targets()) {
        if (name == nullptr) {
            std::printf("%s %zu %s\n", target.name, target.most_bytes,
                        target.seeds == nullptr ? "-" : target.seeds);
        } else if (std::string_view(name) == target.name) {
            chosen = &target;
        }
    }
    if (chosen == nullptr) {
        if (name != nullptr) {
            std::fprintf(stderr, "hetcoll_fuzz: no target %s\n", name);
        }
        std::exit(name == nullptr ? 0 : 2);
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, std::size_t size)
{
    chosen->read(std::as_bytes(std::span(data, size)));
    return 0;
}
