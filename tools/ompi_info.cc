#include "tools/ompi_info.h"

#include <string_view>

namespace hetcoll {
namespace {

constexpr std::string_view kPath = "mca_base_component_path";

std::string key_of(const std::string &parameter, const char *what)
{
    // "mca:coll:hetcoll:param:coll_hetcoll_enable:value": the first three words are not needed.
    return "param:" + parameter + ":" + what;
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
    const std::size_t quote = line.find(":\"");
    const std::size_t colon = quote != line.npos ? quote : line.rfind(':');
    if (colon == line.npos) {
        return;
    }
    std::string key = line.substr(0, colon), value = line.substr(colon + 1);
    if (quote != line.npos) { // ends there, unless it was cut off
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
