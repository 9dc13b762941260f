#include "tools/kernel_code.h"

#include <cstdlib>
#include <string_view>

namespace hetcoll {

KernelCode kernel_code_for(const std::string &flags, int capability)
{
    constexpr std::string_view kMachine = "code=sm_", kPtx = "code=compute_";
    KernelCode best = KernelCode::kNone;
    for (std::size_t at = 0; (at = flags.find("code=", at)) != flags.npos; ++at) {
        const std::string_view rest = std::string_view(flags).substr(at);
        const bool is_machine = rest.starts_with(kMachine);
        if (!is_machine && !rest.starts_with(kPtx)) {
            continue;
        }
        const int built = std::atoi(rest.substr((is_machine ? kMachine : kPtx).size()).data());
        if (built > capability) {
            continue;
        }
        if (is_machine && built / 10 == capability / 10) { // runs on later minor revisions too
            return KernelCode::kMachine;
        }
        best = is_machine ? best : KernelCode::kPtx;
    }
    return best;
}

} // namespace hetcoll
