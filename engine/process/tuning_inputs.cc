#include "engine/process/tuning_inputs.h"

#include "base/installed.h"

#include <string>
#include <string_view>
#include <utility>

namespace hetcoll {
namespace {

std::optional<TableFile> find_table(const hetcoll_settings &settings, const Log &to,
                                    const Log &node_log, bool may_have_gpu)
{
    const char *const name = settings.tuning_table;
    if (name == nullptr || std::string_view(name) == "none" || !may_have_gpu) {
        return std::nullopt;
    }
    const bool installed = std::string_view(name) == "auto";
    const std::string path = installed ? installed_table(installed_folders()) : name;
    if (installed && path.empty()) {
        return std::nullopt;
    }
    auto read = read_table(path);
    if (read.ok()) {
        return std::move(*read);
    }
    log(node_log, 0,
        "hetcoll ignores its tuning table and chooses algorithms by price: %s, or set "
        "coll_hetcoll_tuning_table to none",
        read.status().message().c_str());
    if (settings.local_rank != 0) {
        log(to, 1, "hetcoll: %s", read.status().message().c_str());
    }
    return std::nullopt;
}

} // namespace

TuningInputs::TuningInputs(const hetcoll_settings &settings, const Log &to, const Log &node_log,
                           bool may_have_gpu)
    : table_(find_table(settings, to, node_log, may_have_gpu)),
      topology_file_(settings.topology_file)
{
}

} // namespace hetcoll
