#include "tools/ompi_info.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::string_view kPath = "mca_base_component_path";

std::string key_of(const std::string &parameter, const char *what)
{
    // "mca:coll:hetcoll:param:coll_hetcoll_enable:value": the first three words are not needed.
    return "param:" + parameter + ":" + what;
}

// The value of a parameter comes after three words, and may have colons, as "file (PATH:LINE)" has.
// Else the key ends before a quote, or at the last colon.
std::size_t end_of_key(const std::string &line)
{
    std::size_t colon = line.find(":param:");
    if (colon != line.npos) {
        for (int word = 0; word < 3 && colon != line.npos; ++word) {
            colon = line.find(':', colon + 1);
        }
        return colon;
    }
    const std::size_t quote = line.find(":\"");
    return quote != line.npos ? quote : line.rfind(':');
}

std::vector<std::string> split(std::string_view text)
{
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        words.emplace_back(text.substr(0, comma));
        text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
    }
    return words;
}

// Whether the parameter coll lets that component take part.
bool is_selected(std::string_view coll, const std::string &component)
{
    const bool excludes = coll.starts_with('^');
    const std::vector<std::string> words = split(excludes ? coll.substr(1) : coll);
    const bool named = std::find(words.begin(), words.end(), component) != words.end();
    return coll.empty() || named != excludes;
}

// They reduce nothing on a communicator of several ranks, or pass calls on.
bool leaves_allreduce(const std::string &component)
{
    constexpr std::array kOthers = {"hetcoll", "self",  "inter",      "libnbc",
                                    "sync",    "adapt", "monitoring", "demo"};
    return std::find(kOthers.begin(), kOthers.end(), component) != kOthers.end();
}

} // namespace

void OmpiInfo::add_line(const std::string &line)
{
    if (complaint_.empty() && (line.find("hetcoll steps aside") != line.npos ||
                               line.find("unable to open mca_coll_hetcoll") != line.npos)) {
        const std::size_t host = line.find("] "); // "[host:pid] "
        complaint_ = line.starts_with('[') && host != line.npos ? line.substr(host + 2) : line;
        return;
    }
    const std::size_t colon = end_of_key(line);
    if (colon == line.npos) {
        return;
    }
    std::string key = line.substr(0, colon), value = line.substr(colon + 1);
    if (value.starts_with('"')) { // ends there, unless it was cut off
        value = value.substr(1, value.find_last_of('"') - 1);
    }
    constexpr std::string_view kRelease = "component:";
    if (key.ends_with(":version")) { // of three interfaces and the component
        if (!value.starts_with(kRelease)) {
            return;
        }
        value.erase(0, kRelease.size());
        with_hetcoll_ += key == "mca:coll:hetcoll:version" ? 1 : 0;
    }
    if (const std::size_t parameter = key.find(":param:"); parameter != key.npos) {
        key.erase(0, parameter + 1);
        ranks_ += key == key_of(std::string(kPath), "value") ? 1 : 0;
    }
    lines_.insert_or_assign(std::move(key), std::move(value));
}

std::string OmpiInfo::fact(const std::string &key) const
{
    const auto found = lines_.find(key);
    return found == lines_.end() ? "" : found->second;
}

std::string OmpiInfo::parameter(const std::string &name) const
{
    return fact(key_of(name, "value"));
}

std::string OmpiInfo::source(const std::string &name) const { return fact(key_of(name, "source")); }

std::string OmpiInfo::component(const std::string &framework, const std::string &name) const
{
    return fact("mca:" + framework + ":" + name + ":version");
}

std::vector<std::string> OmpiInfo::above_hetcoll() const
{
    constexpr std::string_view kBegin = "param:coll_", kEnd = "_priority:value";
    const int own = std::atoi(parameter("coll_hetcoll_priority").c_str());
    std::vector<std::pair<int, std::string>> above;
    for (const auto &[key, value] : lines_) {
        if (!key.starts_with(kBegin) || !key.ends_with(kEnd)) {
            continue;
        }
        const std::string name =
            key.substr(kBegin.size(), key.size() - kBegin.size() - kEnd.size());
        const int priority = std::atoi(value.c_str());
        if (priority > own && !leaves_allreduce(name) && is_selected(parameter("coll"), name)) {
            const std::string by = source("coll_" + name + "_priority");
            above.emplace_back(-priority,
                               name + " has " + value + (by.empty() ? "" : " (by " + by + ")"));
        }
    }
    std::sort(above.begin(), above.end());
    std::vector<std::string> texts;
    for (auto &[priority, text] : above) {
        texts.push_back(std::move(text));
    }
    return texts;
}

std::vector<std::string> OmpiInfo::parameter_files() const
{
    std::vector<std::string> files{parameter("mca_base_override_param_file")};
    for (std::string &file : split(parameter("mca_base_param_files"))) {
        files.push_back(std::move(file));
    }
    return files;
}

std::vector<std::string> OmpiInfo::searched() const
{
    std::vector<std::string> folders;
    std::string_view rest = lines_.contains(key_of(std::string(kPath), "value"))
                                ? std::string_view(lines_.at(key_of(std::string(kPath), "value")))
                                : std::string_view();
    while (!rest.empty()) {
        const std::size_t colon = rest.find(':');
        const std::string_view word = rest.substr(0, colon);
        if (word == "SYSTEM_DEFAULT") {
            folders.push_back(fact("path:pkglibdir"));
        } else if (!word.empty() && word != "USER_DEFAULT") {
            folders.emplace_back(word);
        }
        rest = colon == rest.npos ? std::string_view() : rest.substr(colon + 1);
    }
    return folders;
}

} // namespace hetcoll
