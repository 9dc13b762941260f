#include "tools/info_doctor.h"

#include "measure/command_line.h"
#include "measure/json_document.h"
#include "tools/doctor.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::array kChecks = {"component",     "parameters", "gpus", "shm",
                                "locked_memory", "ucx",        "table"};

// Names of lines that differ from their check's name: users write the names that they have seen.
struct Line {
    std::string_view name, check;
};
constexpr std::array kLines = {Line{"open_mpi", "component"}, Line{"dlopen", "component"},
                               Line{"driver", "gpus"}, Line{"kernels", "gpus"},
                               Line{"peers", "gpus"}};

// The check that `word` asks for, or nothing.
std::string_view check_of(std::string_view word)
{
    const auto *const line = std::find_if(kLines.begin(), kLines.end(),
                                          [&](const Line &known) { return known.name == word; });
    const std::string_view name = line == kLines.end() ? word : line->check;
    return std::find(kChecks.begin(), kChecks.end(), name) == kChecks.end() ? "" : name;
}

std::string check_names()
{
    std::string names;
    for (const char *name : kChecks) {
        names += (names.empty() ? "" : ",") + std::string(name);
    }
    return names;
}

std::vector<std::string> words_of(const DoctorRequest &request)
{
    std::vector<std::string> words;
    std::istringstream all(request.only);
    for (std::string word; std::getline(all, word, ',');) {
        words.push_back(word);
    }
    return words;
}

bool is_asked_for(const DoctorRequest &request, std::string_view check)
{
    const std::vector<std::string> words = words_of(request);
    return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string &word) {
               return check_of(word) == check;
           });
}

std::vector<Finding> look(const DoctorRequest &request)
{
    InstalledFolders folders = installed_folders();
    if (!request.component.empty()) {
        folders.component = request.component;
    }
    const auto wanted = [&](const char *check) { return is_asked_for(request, check); };
    OpenMpiFindings open_mpi;
    if (wanted("component") || wanted("parameters") || wanted("table")) {
        open_mpi = check_open_mpi({.mpirun = request.mpirun,
                                   .component_folder = folders.component,
                                   .component_alone = !request.only.empty(),
                                   .component = wanted("component")});
    }
    if (open_mpi.table.empty()) {
        const char *const set = std::getenv("OMPI_MCA_coll_hetcoll_tuning_table");
        open_mpi.table = set == nullptr ? "auto" : set;
    }
    std::vector<Finding> findings = std::move(open_mpi.findings);
    const auto add = [&findings](std::vector<Finding> more) {
        std::move(more.begin(), more.end(), std::back_inserter(findings));
    };
    if (wanted("parameters")) {
        add(check_parameters(open_mpi.parameter_files));
    }
    if (wanted("gpus")) {
        add(check_gpus());
    }
    if (wanted("shm")) {
        findings.push_back(check_shared_memory());
    }
    if (wanted("locked_memory")) {
        findings.push_back(check_locked_memory());
    }
    if (wanted("ucx")) {
        findings.push_back(check_ucx(open_mpi.has_ucx));
    }
    if (wanted("table")) {
        findings.push_back(check_table(open_mpi.table, folders));
    }
    return findings;
}

std::string padded(std::string word, std::size_t width)
{
    word.resize(std::max(word.size() + 1, width), ' ');
    return word;
}

std::string print(const std::vector<Finding> &findings, std::size_t wrong)
{
    constexpr std::size_t kMark = 7, kCheck = 15;
    std::string text;
    for (const Finding &finding : findings) {
        text += padded(mark_name(finding.mark), kMark) + padded(finding.check, kCheck) +
                finding.found + "\n";
        std::istringstream advice(finding.advice);
        for (std::string line; std::getline(advice, line);) {
            text += std::string(kMark + kCheck, ' ') + line + "\n";
        }
    }
    return text + (wrong == 0   ? "hetcoll_info: nothing is wrong\n"
                   : wrong == 1 ? "hetcoll_info: one thing is wrong\n"
                                : "hetcoll_info: " + std::to_string(wrong) + " things are wrong\n");
}

std::string print_json(const std::vector<Finding> &findings, std::size_t wrong)
{
    Json json = json_document("hetcoll_info");
    Json list = Json::array();
    for (const Finding &finding : findings) {
        list.push_back({{"check", finding.check},
                        {"mark", mark_name(finding.mark)},
                        {"found", finding.found},
                        {"advice", finding.advice}});
    }
    json["doctor"] = {{"wrong", wrong}, {"findings", std::move(list)}};
    return json_text(json);
}

} // namespace

void add_doctor_options(CommandLine &line, DoctorRequest &request)
{
    line.add_option("CHECK", request.only, "some of " + check_names() + "; default: all")
        .type_name("");
    line.add_option("--mpirun", request.mpirun, "the mpirun of the jobs; default: the one on PATH");
    line.add_option("--component", request.component,
                    "the folder of mca_coll_hetcoll.so; default: where make install puts it")
        .type_name("DIR");
}

Status check_doctor(const DoctorRequest &request)
{
    for (const std::string &word : words_of(request)) {
        if (check_of(word).empty()) {
            return error(Errc::kInvalid, "'%s' is no check, write some of %s", word.c_str(),
                         check_names().c_str());
        }
    }
    return {};
}

Diagnosis show_doctor(const DoctorRequest &request)
{
    const std::vector<Finding> findings = look(request);
    const auto wrong = static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(),
                      [](const Finding &finding) { return finding.mark == Mark::kWrong; }));
    return {request.json ? print_json(findings, wrong) : print(findings, wrong), wrong == 0};
}

} // namespace hetcoll
