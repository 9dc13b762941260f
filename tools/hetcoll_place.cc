// hetcoll_place: how to lay a training out on a cluster of unequal GPUs. Needs no GPU and no MPI.
#include "base/installed.h"
#include "measure/command_line.h"
#include "measure/named_files.h"
#include "measure/output_file.h"
#include "tools/place_json.h"
#include "tools/place_print.h"

#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr int kMostSamples = 100000000;

struct Request {
    std::string file, allocation;
    std::string json_path; // "-": stdout
    bool json = false;
    bool rank_file = false;
    int in_flight = 0, batch = 0;
};

void add_options(hetcoll::CommandLine &line, Request &request)
{
    std::vector<std::string> names;
    for (int i = 0; i < hetcoll::kPolicyCount; ++i) {
        names.emplace_back(hetcoll::policy_name(static_cast<hetcoll::Policy>(i)));
    }
    line.add_option("file", request.file,
                    "the file with the cluster and the model; docs/placement.md has the format")
        .required()
        .type_name("");
    line.add_option("--allocation", request.allocation,
                    "show this allocation: NP, ED, HD or ED-local; default: compare all")
        .check(hetcoll::one_of(names));
    line.add_flag("--rankfile", request.rank_file, "print a rank file for mpirun")
        .needs("--allocation");
    line.add_option("--in-flight", request.in_flight,
                    "minibatches in flight in a worker; default: as many as it has stages")
        .check(hetcoll::whole_number(1, 1000));
    line.add_option("--batch", request.batch,
                    "samples to split over the workers; default: the file's batch for each")
        .check(hetcoll::whole_number(1, kMostSamples))
        .needs("--allocation")
        .excludes("--rankfile");
    line.add_option("--json", request.json_path, "print JSON, to FILE or stdout (-)")
        .type_name("[FILE]")
        .value_optional()
        .excludes("--rankfile");
}

hetcoll::Result<std::string> show(const Request &request)
{
    auto cluster = hetcoll::read_place_file(request.file, hetcoll::installed_folders().topologies);
    if (!cluster.ok()) {
        return cluster.take_status();
    }
    if (request.allocation.empty()) {
        return request.json ? comparison_json(*cluster, request.in_flight)
                            : print_comparison(*cluster, request.in_flight);
    }
    auto policy = hetcoll::Policy::kNodePartition;
    while (request.allocation != policy_name(policy)) { // one of them: the options say so
        policy = static_cast<hetcoll::Policy>(static_cast<int>(policy) + 1);
    }
    auto allocation = allocate(*cluster, policy, request.in_flight);
    if (!allocation.ok()) {
        return hetcoll::error(allocation.status().code(), "%s: %s is not possible: %s",
                              request.file.c_str(), request.allocation.c_str(),
                              allocation.status().message().c_str());
    }
    if (request.rank_file) {
        return print_rank_file(*cluster, *allocation);
    }
    const auto workers = static_cast<long long>(allocation->workers.size());
    const long long batch = request.batch > 0 ? request.batch : cluster->model.batch * workers;
    if (batch > kMostSamples) {
        return hetcoll::error(hetcoll::Errc::kInvalid,
                              "%s: 'batch' %d for each of %lld workers is too much to split, give "
                              "--batch up to %d",
                              request.file.c_str(), cluster->model.batch, workers, kMostSamples);
    }
    return request.json ? allocation_json(*cluster, *allocation, static_cast<int>(batch))
                        : print_allocation(*cluster, *allocation, static_cast<int>(batch));
}

} // namespace

int main(int argc, char **argv)
{
    hetcoll::CommandLine line("hetcoll_place",
                              "Compares ways to lay a training out on a cluster of unequal GPUs.");
    Request request;
    add_options(line, request);
    int exit_code = 0;
    if (!line.parse(argc, argv, exit_code)) {
        return exit_code;
    }
    if (const std::string lost = hetcoll::find_overwritten(line, {"--json"}, {"file"});
        !lost.empty()) {
        return line.usage_error(lost);
    }
    request.json = line.is_given("--json");
    const auto fail = [](const hetcoll::Status &status) {
        std::fprintf(stderr, "hetcoll_place: %s\n", status.message().c_str());
        return 1;
    };
    auto output = hetcoll::OutputFile::open(request.json_path.empty() ? "-" : request.json_path);
    if (!output.ok()) { // before the work
        return fail(output.status());
    }
    const hetcoll::Result<std::string> text = show(request);
    if (!text.ok()) {
        return fail(text.status());
    }
    const hetcoll::Status written = output->write(*text);
    return written.ok() ? 0 : fail(written);
}
