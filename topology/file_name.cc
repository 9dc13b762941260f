// From the name that a user gives to the topology it means.
#include "topology/file.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/stat.h>

namespace hetcoll {
namespace {

bool is_file(const std::string &path)
{
    struct stat info;
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<std::string> read_text(const std::string &path, const std::string &looked_in)
{
    const auto failed = [&](const char *cause) {
        return error(Errc::kInvalid, "%s: cannot be read (%s), name a topology file%s%s",
                     path.c_str(), cause, looked_in.empty() ? "" : " or one of those in ",
                     looked_in.c_str());
    };
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
        return failed(std::strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) { // a pipe would block, a device might never end
        return failed("not a regular file");
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "re"),
                                                                std::fclose);
    if (file == nullptr) {
        return failed(std::strerror(errno));
    }
    // One byte more than allowed: parse_topology() then says so.
    std::string text(kMaxTopologyFileBytes + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get()) != 0) {
        return failed(std::strerror(errno));
    }
    return text;
}

} // namespace

TopologyName split_topology_name(const std::string &name)
{
    const std::size_t colon = name.rfind(':');
    if (colon == name.npos || name.find_first_not_of("0123456789,-", colon + 1) != name.npos) {
        return {.file = name, .gpus = {}};
    }
    return {.file = name.substr(0, colon), .gpus = name.substr(colon + 1)};
}

Result<std::vector<int>> parse_gpu_list(const std::string &text)
{
    std::vector<int> gpus;
    const char *at = text.data(), *const end = at + text.size();
    for (bool more = true; more;) {
        int first = 0, last = 0;
        auto parsed = std::from_chars(at, end, first);
        last = first;
        if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '-') {
            parsed = std::from_chars(parsed.ptr + 1, end, last);
        }
        at = parsed.ptr;
        more = at != end && *at == ',';
        if (parsed.ec != std::errc{} || (at != end && !more) || first < 0 || first > last ||
            last >= kMaxVertices) {
            return error(Errc::kInvalid,
                         "'%.80s' is not a list of GPUs, write numbers and ranges like 0,3-5",
                         text.c_str());
        }
        at += more ? 1 : 0;
        for (int gpu = first; gpu <= last; ++gpu) {
            gpus.push_back(gpu);
        }
    }
    return gpus;
}

std::string find_topology_file(const std::string &file, const std::string &shipped_folder)
{
    if (file.find('/') == file.npos && !shipped_folder.empty() && !is_file(file)) {
        for (const char *ending : {"", ".topology"}) {
            const std::string path = shipped_folder + "/" + file + ending;
            if (!file.empty() && is_file(path)) {
                return path;
            }
        }
    }
    return file;
}

Result<Topology> read_topology(const std::string &name, const std::string &shipped_folder)
{
    const TopologyName parts = split_topology_name(name);
    const std::string path = find_topology_file(parts.file, shipped_folder);
    Result<std::string> text = read_text(path, is_file(path) ? "" : shipped_folder);
    if (!text.ok()) {
        return text.take_status();
    }
    Result<Topology> topology = parse_topology(*text, path);
    if (!topology.ok() || parts.gpus.empty()) {
        return topology;
    }
    Result<std::vector<int>> gpus = parse_gpu_list(parts.gpus);
    if (!gpus.ok()) {
        return gpus.take_status();
    }
    Result<Topology> part = fragment(*topology, *gpus);
    if (!part.ok()) {
        return error(Errc::kInvalid, "%s: %s", path.c_str(), part.status().message().c_str());
    }
    return part;
}

} // namespace hetcoll
