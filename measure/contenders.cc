#include "measure/contenders.h"

#include "engine/types/settings.h"
#include "schedule/algorithm_rows.h"

#include <charconv>
#include <utility>

namespace hetcoll {

namespace {

std::string known_names()
{
    std::string names = "auto, nonblocking, persistent, host_copy";
    for (int i = 0; i < kAlgorithmCount; ++i) {
        names += std::string(", ") + algorithm_name(static_cast<Algorithm>(i));
    }
    return names;
}

Result<Contender> parse_contender(const std::string &name)
{
    Contender contender;
    contender.name = name;
    const std::size_t slash = name.find('/');
    const std::string algorithm = name.substr(0, slash);
    if (algorithm == "host_copy" && slash == std::string::npos) {
        contender.host_copy = true;
        return contender;
    }
    if (slash == std::string::npos && (algorithm == "nonblocking" || algorithm == "persistent")) {
        contender.call = algorithm == "persistent" ? CallKind::kPersistent : CallKind::kNonblocking;
        return contender;
    }
    if (slash != std::string::npos) {
        const char *const end = name.data() + name.size();
        const auto [stop, code] =
            std::from_chars(name.data() + slash + 1, end, contender.chunk_bytes);
        if (code != std::errc() || stop != end) {
            return error(Errc::kInvalid, "'%s': what follows the slash is not a number of bytes",
                         name.c_str());
        }
        if (contender.chunk_bytes < HETCOLL_MIN_CHUNK ||
            contender.chunk_bytes > HETCOLL_MAX_CHUNK) {
            return error(Errc::kInvalid, "'%s': a chunk has from %d to %lu bytes", name.c_str(),
                         HETCOLL_MIN_CHUNK, HETCOLL_MAX_CHUNK);
        }
    }
    if (algorithm != "auto") {
        if (!find_algorithm(algorithm)) {
            return error(Errc::kInvalid, "'%s' is not an algorithm, write all or some of %s",
                         algorithm.c_str(), known_names().c_str());
        }
        contender.algorithm = algorithm;
    }
    return contender;
}

} // namespace

Result<std::vector<Contender>> Contenders::parse(const std::vector<std::string> &names)
{
    std::vector<Contender> contenders;
    for (const std::string &name : names) {
        std::vector<std::string> each = {name};
        if (name == "all") {
            each = {"auto"};
            for (int i = 0; i < kAlgorithmCount; ++i) {
                each.emplace_back(algorithm_name(static_cast<Algorithm>(i)));
            }
            each.emplace_back("host_copy");
        }
        for (const std::string &one : each) {
            Result<Contender> contender = parse_contender(one);
            if (!contender.ok()) {
                return contender.take_status();
            }
            contenders.push_back(*contender);
        }
    }
    return contenders;
}

Result<Contenders> Contenders::create(MPI_Comm comm, const std::vector<std::string> &names)
{
    Result<std::vector<Contender>> parsed = parse(names);
    if (!parsed.ok()) {
        return parsed.take_status();
    }
    Contenders contenders;
    contenders.contenders_ = std::move(*parsed);
    const Parameters parameters;
    for (Contender &contender : contenders.contenders_) {
        if (Status status = parameters.set(
                contender.algorithm.empty() ? "auto" : contender.algorithm, contender.chunk_bytes);
            !status.ok()) {
            return status;
        }
        MPI_Comm_dup(comm, &contender.comm);
        // The first call is when a communicator takes the settings.
        int one = 1;
        MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, contender.comm);
    }
    if (Status status = parameters.set("auto", 0); !status.ok()) {
        return status;
    }
    return contenders;
}

Contenders::~Contenders()
{
    for (Contender &contender : contenders_) {
        if (contender.comm != MPI_COMM_NULL) {
            MPI_Comm_free(&contender.comm);
        }
    }
}

} // namespace hetcoll
