#include "tools/info_html.h"

#include "measure/command_line.h"
#include "measure/output_file.h"
#include "tools/job_table.h"
#include "tools/report.h"
#include "tools/trace_calls.h"
#include "tuning/table.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace hetcoll {
namespace {

// The table's note about the origin of its rules for that machine, if it has one.
std::vector<std::string> measurements_of(const TableFile &file, const std::string &machine)
{
    std::vector<std::string> paths;
    for (const Machine &candidate : file.machines) {
        if (candidate.name == machine && !candidate.measurements.empty()) {
            const auto beside =
                std::filesystem::path(file.path).parent_path() / candidate.measurements;
            std::error_code code;
            if (std::filesystem::is_regular_file(beside, code)) {
                paths.push_back(beside.string());
            }
        }
    }
    return paths;
}

Result<Measurements> read_measurements(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::string text;
    if (file && !std::filesystem::is_directory(path)) {
        text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    } else {
        return error(Errc::kInvalid, "%s cannot be read (%s)", path.c_str(),
                     std::strerror(file ? EISDIR : errno));
    }
    return parse_measurements(text, path);
}

std::vector<int> powers_up_to(int most)
{
    std::vector<int> nodes;
    for (int count = 1; count < most; count *= 2) {
        nodes.push_back(count);
    }
    nodes.push_back(most);
    return nodes;
}

// All that a page is made from; print_report() looks at it.
struct Sources {
    std::optional<Topology> topology;
    std::optional<TableFile> file;
    JobTable table;
    std::vector<Measurements> measurements;
    std::optional<TraceJob> job;
};

Result<Sources> read_sources(const HtmlRequest &request, const TopologyRequest &topology,
                             const ExplainRequest &explain, const TraceRequest &trace)
{
    Sources sources;
    Result<Topology> loaded = load_topology(topology); // says on stderr if there is no GPU here
    if (!loaded.ok()) {
        return loaded.take_status();
    }
    sources.topology = std::move(*loaded);
    std::vector<std::string> measured = request.measurements;
    if (!explain.table.empty()) {
        Result<TableFile> file = read_table(explain.table);
        if (!file.ok()) {
            return file.take_status();
        }
        std::vector<Topology> nodes; // of a job that uses all GPUs
        if (!sources.topology->gpus().empty()) {
            nodes.push_back(*sources.topology);
        }
        Result<JobTable> table = table_of_job(*file, explain.machine, nodes, explain.driver);
        if (!table.ok()) {
            return table.take_status();
        }
        if (!table->note.empty()) {
            std::fprintf(stderr, "hetcoll_info: %s: %s\n", explain.table.c_str(),
                         table->note.c_str());
        }
        sources.table = std::move(*table);
        sources.file = std::move(*file);
        if (measured.empty() && sources.table.table) {
            measured = measurements_of(*sources.file, sources.table.table->machine());
        }
    }
    for (const std::string &path : measured) {
        Result<Measurements> measurements = read_measurements(path);
        if (!measurements.ok()) {
            return measurements.take_status();
        }
        sources.measurements.push_back(std::move(*measurements));
    }
    if (!trace.files.empty()) {
        Result<TraceJob> job = read_job(trace.files);
        if (!job.ok()) {
            return job.take_status();
        }
        sources.job = std::move(*job);
    }
    return sources;
}

} // namespace

void add_html_options(CommandLine &line, HtmlRequest &request)
{
    line.add_option("PAGE", request.path, "the file to write; - is stdout")
        .required()
        .type_name("");
    line.add_option("--measurements", request.measurements,
                    "what hetcoll_tune has measured; default: what the table names")
        .type_name("FILE...");
}

Result<std::string> show_html(const HtmlRequest &request, const TopologyRequest &topology,
                              const ExplainRequest &explain, const CallRequest &call,
                              const TraceRequest &trace)
{
    Result<OutputFile> file = OutputFile::open(request.path); // before the work
    if (!file.ok()) {
        return file.take_status();
    }
    Result<Sources> sources = read_sources(request, topology, explain, trace);
    if (!sources.ok()) {
        return sources.take_status();
    }
    const Result<std::string> page =
        print_report({.topology = sources->topology ? &*sources->topology : nullptr,
                      .topology_name = topology.name,
                      .file = sources->file ? &*sources->file : nullptr,
                      .machine = explain.machine,
                      .driver = explain.driver,
                      .table = std::move(sources->table),
                      .measurements = std::move(sources->measurements),
                      .job = sources->job ? &*sources->job : nullptr,
                      .nodes = powers_up_to(call.nodes),
                      .small_limit = explain.small_limit});
    if (!page.ok()) {
        return error(page.status().code(), "%s", page.status().message().c_str());
    }
    if (Status status = file->write(*page); !status.ok()) {
        return status;
    }
    return request.path == "-"
               ? std::string()
               : format("wrote %s, %zu bytes\n", request.path.c_str(), page->size());
}

} // namespace hetcoll
