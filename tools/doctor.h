// The checks of hetcoll_info doctor. Each check finds one thing.
#pragma once

#include "base/installed.h"
#include "device/driver.h"

#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

enum class Mark { kOk, kNote, kWrong };
[[nodiscard]] const char *mark_name(Mark mark) noexcept; // "ok", "note", "wrong"

struct Finding {
    std::string check;
    Mark mark = Mark::kOk;
    std::string found;
    std::string advice{}; // the consequence, and what to do, a line each; empty: nothing
};

// Open MPI, as a job has it.
struct OpenMpiRequest {
    std::string mpirun;           // empty: the one on PATH
    std::string component_folder; // where the component should be
    bool component_alone = false; // no other finding
    bool component = true;        // false: no finding, and no job is started
};
struct OpenMpiFindings {
    std::vector<Finding> findings; // open_mpi, dlopen, component
    std::string table;             // what coll_hetcoll_tuning_table is; empty: not known
    std::vector<std::string> parameter_files{}; // see OmpiInfo
    std::optional<bool> has_ucx{};              // Open MPI was built with UCX
};
// Runs mpirun with two ranks, in less than a minute.
[[nodiscard]] OpenMpiFindings check_open_mpi(const OpenMpiRequest &request);

// The settings of the environment and of these files: one finding if all is well, else one for each
// wrong value or name.
[[nodiscard]] std::vector<Finding> check_parameters(const std::vector<std::string> &files);

// This machine.
[[nodiscard]] std::vector<Finding> check_gpus(); // driver, kernels, peers
[[nodiscard]] Finding check_shared_memory();
[[nodiscard]] Finding check_locked_memory();
[[nodiscard]] Finding check_ucx(std::optional<bool> open_mpi_has_it);
// `setting`: coll_hetcoll_tuning_table.
[[nodiscard]] Finding check_table(const std::string &setting, const InstalledFolders &folders);

} // namespace hetcoll
