// hetcoll_info model: what the closed forms say of a cluster, without any machine.
#pragma once

#include "tools/info_call.h"

namespace hetcoll {

struct ModelRequest {
    double intra_gbps = 0, inter_gbps = 0, latency_us = 0; // 0: missing
};

void add_model_options(CommandLine &line, ModelRequest &request, CallRequest &call);

// The text to print on stdout.
// An error: the options lack something, or contradict each other.
[[nodiscard]] Status check_model(const ModelRequest &request, const CallRequest &call);
// Requires that check_model() is ok.
[[nodiscard]] Result<std::string> show_model(const ModelRequest &request, const CallRequest &call);

} // namespace hetcoll
