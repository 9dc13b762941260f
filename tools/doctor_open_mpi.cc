// Whether the ranks of a job find the component. Only a job knows: from 5.0 on mpirun passes on
// settings of PMIx, which can hide it from ranks and not from ompi_info (docs/install.md).
#include "tools/child.h"
#include "tools/doctor.h"
#include "tools/ompi_info.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace hetcoll {
namespace {

constexpr std::chrono::seconds kMostSeconds{25}; // of a child
constexpr const char *kBuiltBy = HETCOLL_MPIRUN, *kBuiltFor = HETCOLL_OMPI_RELEASE;
constexpr const char *kPath = "mca_base_component_path";
constexpr int kRanks = 2;

bool is_program(const std::string &path)
{
    std::error_code code;
    return std::filesystem::is_regular_file(path, code) && access(path.c_str(), X_OK) == 0;
}

// Empty: it is not on PATH.
std::string on_path(const std::string &program)
{
    if (program.find('/') != program.npos) {
        return is_program(program) ? program : "";
    }
    const char *const path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "" : path;
    while (!rest.empty()) {
        const std::size_t colon = rest.find(':');
        std::string file = std::string(rest.substr(0, colon)) + "/" + program;
        if (is_program(file)) {
            return file;
        }
        rest = colon == rest.npos ? std::string_view() : rest.substr(colon + 1);
    }
    return {};
}

std::string file_in(const std::string &folder) { return folder + "/mca_coll_hetcoll.so"; }
bool has_component(const std::string &folder) { return access(file_in(folder).c_str(), F_OK) == 0; }

bool is_same_folder(const std::string &a, const std::string &b)
{
    std::error_code code;
    return a == b || std::filesystem::equivalent(a, b, code);
}

std::string join(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words) {
        text += (text.empty() ? "" : ", ") + word;
    }
    return text.empty() ? "no folder" : text;
}

struct Answer { // of a child
    ChildEnd end;
    std::string first_line; // that says something
    bool other_mpi = false; // it names itself
    OmpiInfo info{};
};

// The launcher of another MPI says so in its --version.
bool names_other_mpi(const std::string &line)
{
    for (const char *name : {"HYDRA", "MPICH", "MVAPICH", "Intel(R) MPI"}) {
        if (line.find(name) != line.npos) {
            return true;
        }
    }
    return false;
}

Answer ask(std::vector<std::string> arguments)
{
    ChildCommand command{std::move(arguments), {}, Clock::now() + kMostSeconds};
    if (geteuid() == 0) { // make install often is root's, and containers have no other user
        for (const char *name : {"OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"}) {
            command.environment.emplace_back(name, "1");
            command.environment.emplace_back(std::string(name) + "_CONFIRM", "1");
        }
    }
    command.environment.emplace_back("OMPI_MCA_mca_base_component_show_load_errors", "1");
    const std::string program =
        command.arguments.front() == "sh" ? command.arguments.back() : command.arguments.front();
    command.on_slow = [program] {
        std::fprintf(stderr, "hetcoll_info doctor: waits for %s, at most %lld s\n", program.c_str(),
                     static_cast<long long>(kMostSeconds.count()));
    };
    Answer answer;
    answer.end = run_child(command, [&](const std::string &line) {
        answer.info.add_line(line);
        answer.other_mpi = answer.other_mpi || names_other_mpi(line);
        if (answer.first_line.empty() && line.find_first_not_of(" -\t\r") != line.npos) {
            answer.first_line = line;
        }
    });
    return answer;
}

// Few lines, because mpirun mixes longer output of its ranks within lines.
std::vector<std::string> info_command(const std::string &ompi_info)
{
    return {"sh", "-c",
            "\"$0\" --parsable --all 2>&1 | grep -E '^ompi:version:full:|^option:dlopen:|"
            "^path:(pkglibdir|libdir):|:param:mca_base_component_path:(value|source):|"
            "^mca:(coll:hetcoll|pml:ucx):version:|:param:coll:(value|source):|"
            ":param:coll_hetcoll_(enable|priority|tuning_table):(value|source):|"
            ":param:coll_[a-z0-9]+_priority:(value|source:[^d])|" // not: by default
            ":param:mca_base_(param_files|override_param_file):value:|"
            "hetcoll steps aside|unable to open mca_coll_hetcoll'",
            ompi_info};
}

bool is_in_a_job()
{
    return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

class OpenMpi {
public:
    explicit OpenMpi(const OpenMpiRequest &request) : request_(request) {}

    OpenMpiFindings check()
    {
        if (*kBuiltBy == '\0') {
            add("component", Mark::kNote, "none: this build of hetcoll is without Open MPI",
                "configure hetcoll without --without-ompi for one");
            return std::move(all_);
        }
        if (find_mpirun() && is_open_mpis() && has_ompi_info()) {
            all_.parameter_files = info_.parameter_files();
            all_.table = info_.parameter("coll_hetcoll_tuning_table");
            if (request_.component) {
                compare_release();
                find_component();
            }
        }
        if (request_.component_alone) {
            std::erase_if(all_.findings, [](const Finding &finding) {
                return finding.check != "component" && finding.mark == Mark::kOk;
            });
        }
        return std::move(all_);
    }

private:
    void add(const char *check, Mark mark, std::string found, std::string advice = {})
    {
        all_.findings.push_back({check, mark, std::move(found), std::move(advice)});
    }

    bool find_mpirun()
    {
        const std::string wanted = request_.mpirun.empty() ? "mpirun" : request_.mpirun;
        mpirun_ = on_path(wanted);
        if (!mpirun_.empty()) {
            return true;
        }
        const bool named = !request_.mpirun.empty();
        const std::string folder = std::filesystem::path(kBuiltBy).parent_path().string();
        add("open_mpi", Mark::kWrong,
            named ? wanted + " is no program that can be run" : "there is no mpirun on PATH",
            std::string("jobs cannot be started: ") +
                (is_program(kBuiltBy) ? "put " + folder + " on PATH"
                                      : "install Open MPI " + std::string(kBuiltFor)) +
                ", for which hetcoll was built");
        mpirun_ = named || !is_program(kBuiltBy) ? "" : kBuiltBy;
        return !mpirun_.empty();
    }

    bool is_open_mpis()
    {
        const Answer version = ask({mpirun_, "--version"});
        if (version.other_mpi) {
            add("open_mpi", Mark::kWrong,
                mpirun_ + " is another MPI's: it says '" + version.first_line.substr(0, 80) + "'",
                "its jobs do not know hetcoll, which is a part of Open MPI: put the folder of " +
                    std::string(kBuiltBy) + " first on PATH");
        }
        return !version.other_mpi;
    }

    // False: nothing more can be found out.
    bool has_ompi_info()
    {
        const std::string program = find_ompi_info();
        if (program.empty()) {
            add("open_mpi", Mark::kWrong, "no ompi_info next to " + mpirun_ + ", nor on PATH",
                "no more can be looked for: install it, it belongs to Open MPI");
            return false;
        }
        info_command_ = info_command(program);
        const Answer alone = ask(info_command_);
        info_ = alone.info;
        if (info_.ranks() == 0) {
            add("open_mpi", Mark::kWrong,
                program + " fails" +
                    (alone.end.timed_out ? ": it does not end"
                                         : ", or is not Open MPI's: " + alone.first_line),
                "no more can be looked for: install this Open MPI again");
        }
        return info_.ranks() != 0;
    }

    void compare_release()
    {
        const std::string release = info_.fact("ompi:version:full");
        const std::string_view built = kBuiltFor;
        const bool same = release.starts_with(built) &&
                          (release.size() == built.size() || release[built.size()] < '0' ||
                           release[built.size()] > '9'); // a release candidate's number may follow
        if (!same) {
            add("open_mpi", Mark::kWrong,
                release + ", by " + mpirun_ + ", and hetcoll was built for " + kBuiltFor + " of " +
                    kBuiltBy,
                "its ranks go on without hetcoll, which serves one exact release: build hetcoll "
                "for this one (configure --with-ompi=DIR), or put the folder of the other one "
                "first on PATH");
        } else if (all_.findings.empty()) {
            add("open_mpi", Mark::kOk, release + ", by " + mpirun_);
        }
        if (info_.fact("option:dlopen") == "no") {
            add("dlopen", Mark::kWrong, "this Open MPI was configured with --disable-dlopen",
                "it loads no component that was built outside of it: take another one, or build "
                "hetcoll inside its source (docs/install.md)");
        } else {
            add("dlopen", Mark::kOk, "Open MPI loads components");
        }
        all_.has_ucx = !info_.component("pml", "ucx").empty();
    }

    [[nodiscard]] std::string find_ompi_info() const
    {
        const std::string beside =
            (std::filesystem::path(mpirun_).parent_path() / "ompi_info").string();
        return is_program(beside) ? beside : on_path("ompi_info");
    }

    void find_component()
    {
        const bool in_a_job = is_in_a_job();
        const int wanted_ranks = in_a_job ? 1 : kRanks;
        who_ = in_a_job ? "this rank" : std::to_string(kRanks) + " ranks of mpirun";
        Answer answer;
        if (in_a_job) {
            answer.info = info_;
        } else {
            std::vector<std::string> job = {mpirun_, "--oversubscribe", "-n",
                                            std::to_string(kRanks)};
            job.insert(job.end(), info_command_.begin(), info_command_.end());
            answer = ask(job);
        }
        if (answer.info.ranks() < wanted_ranks) {
            report_failed_job(answer);
            return;
        }
        info_ = answer.info;
        if (info_.ranks_with_hetcoll() >= wanted_ranks) {
            report_found();
        } else {
            report_missing();
        }
    }

    void report_failed_job(const Answer &answer)
    {
        const std::string what = "mpirun -n " + std::to_string(kRanks);
        const bool blind = !looks_into(info_.fact("path:pkglibdir"));
        add("component", Mark::kWrong,
            answer.end.timed_out
                ? what + " does not end within " + std::to_string(kMostSeconds.count()) + " s"
                : what + " fails: " +
                      (answer.first_line.empty() ? "it says nothing" : answer.first_line),
            blind ? "it looks for all components of Open MPI in " + join(info_.searched()) +
                        " alone (" + source_of(kPath) + "):\n" + missing_line()
                  : "no job can be started like this: try mpirun -n 2 hostname");
    }

    void report_found()
    {
        all_.table = info_.parameter("coll_hetcoll_tuning_table");
        std::string folder;
        for (const std::string &searched : info_.searched()) {
            if (folder.empty() && has_component(searched)) {
                folder = searched;
            }
        }
        const std::string found =
            (folder.empty() ? "a part of Open MPI" : file_in(folder)) + ", found by " + who_;
        const std::string &other = request_.component_folder;
        const std::string coll = info_.parameter("coll"); // which ompi_info itself ignores
        if (!coll.empty() && coll.starts_with('^') == (coll.find("hetcoll") != coll.npos)) {
            add("component", Mark::kWrong,
                found + ", and the parameter coll is '" + coll + "' (" + source_of("coll") + ")",
                "jobs run without hetcoll: take that setting away");
            return;
        }
        if (info_.parameter("coll_hetcoll_enable") == "false" ||
            info_.parameter("coll_hetcoll_priority").starts_with('-')) {
            add("component", Mark::kNote, found + ", and switched off",
                "jobs run without hetcoll: see coll_hetcoll_enable (" +
                    source_of("coll_hetcoll_enable") + ") and coll_hetcoll_priority (" +
                    source_of("coll_hetcoll_priority") + ")");
        } else if (const std::vector<std::string> above = info_.above_hetcoll(); !above.empty()) {
            add("component", Mark::kWrong,
                found + ", and coll_hetcoll_priority is " +
                    info_.parameter("coll_hetcoll_priority") + " (" +
                    source_of("coll_hetcoll_priority") + ") and less than others: " + join(above),
                "jobs' MPI_Allreduce goes to the first of these, and may crash on device memory: "
                "take away what sets these priorities");
        } else if (!folder.empty() && has_component(other) && !is_same_folder(folder, other)) {
            add("component", Mark::kNote, found,
                "there is another one, which jobs do not take: " + file_in(other));
        } else {
            add("component", Mark::kOk, found);
        }
    }

    void report_missing()
    {
        const std::string none =
            info_.ranks_with_hetcoll() == 0 ? " find no hetcoll" : " do not all find hetcoll";
        const std::string start = who_ + none + ": ";
        const std::string &folder = request_.component_folder;
        const std::vector<std::string> searched = info_.searched();
        if (!info_.complaint().empty()) {
            add("component", Mark::kWrong, start + info_.complaint(),
                "jobs run without hetcoll: build it again for this Open MPI, or install what it "
                "lacks");
        } else if (const auto there = std::find_if(searched.begin(), searched.end(), has_component);
                   there != searched.end()) {
            add("component", Mark::kWrong, start + "Open MPI does not take " + file_in(*there),
                "jobs run without hetcoll: mpirun --mca coll_base_verbose 100 -n 1 ompi_info says "
                "why");
        } else if (folder.empty() || !has_component(folder)) {
            add("component", Mark::kWrong,
                start + "it is neither in " + (folder.empty() ? "any folder" : folder) +
                    ", where it should be installed, nor in " + join(searched),
                "jobs run without hetcoll: make install, or say where it is with --component DIR");
        } else {
            add("component", Mark::kWrong,
                start + "it is in " + folder + ", and they look in " + join(searched) + " (" +
                    source_of(kPath) + ")",
                "jobs run without hetcoll and do not say so. See which library is missing in their "
                "environment:\n" +
                    missing_line());
        }
    }

    [[nodiscard]] bool looks_into(const std::string &folder) const
    {
        const std::vector<std::string> searched = info_.searched();
        return std::any_of(searched.begin(), searched.end(),
                           [&](const std::string &each) { return is_same_folder(each, folder); });
    }

    [[nodiscard]] std::string source_of(const std::string &parameter) const
    {
        const std::string source = info_.source(parameter);
        return source.empty() ? "nobody says by whom" : "by " + source;
    }

    // From 5.0 on mpirun hands the variable to PMIx too, which complains of components that are not
    // its own unless its own path is named.
    [[nodiscard]] std::string missing_line() const
    {
        const std::string system = info_.fact("path:pkglibdir");
        const std::string &own = request_.component_folder;
        std::string line = std::string("export OMPI_MCA_") + kPath + "=";
        line += own.empty() || is_same_folder(own, system) ? system : own + ":" + system;
        if (std::atoi(info_.fact("ompi:version:full").c_str()) >= 5) {
            line += std::string(" PMIX_MCA_") + kPath + "=" + pmix_folder();
        }
        return line;
    }

    [[nodiscard]] std::string pmix_folder() const
    {
        // What Debian's PMIx sets for itself, and Open MPI's ranks take for theirs.
        if (std::getenv("OMPI_MCA_mca_base_component_path") == nullptr &&
            !looks_into(info_.fact("path:pkglibdir"))) {
            return info_.parameter(kPath);
        }
        const std::string brought = info_.fact("path:libdir") + "/pmix"; // by Open MPI
        std::error_code code;
        return std::filesystem::is_directory(brought, code)
                   ? brought
                   : "\"$(pkg-config --variable=libdir pmix)/pmix\"";
    }

    const OpenMpiRequest &request_;
    OpenMpiFindings all_;
    std::string mpirun_, who_;
    std::vector<std::string> info_command_;
    OmpiInfo info_; // of ompi_info alone, then of the ranks
};

} // namespace

OpenMpiFindings check_open_mpi(const OpenMpiRequest &request)
{
    OpenMpiFindings all = OpenMpi(request).check();
    if (!request.component) {
        all.findings.clear();
    }
    return all;
}

} // namespace hetcoll
