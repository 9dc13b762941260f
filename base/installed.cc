#include "base/installed.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <memory>
#include <string_view>
#include <unistd.h>

namespace hetcoll {
namespace {

constexpr std::string_view kDataBelowPrefix = "/share/hetcoll";
constexpr const char *kShipped = "/dgx1v.topology"; // by which a folder of topologies is known

std::string without_last(std::string path)
{
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
    return path;
}

std::string real_path(const std::string &path)
{
    const std::unique_ptr<char, void (*)(void *)> real(realpath(path.c_str(), nullptr), std::free);
    return real ? real.get() : "";
}

bool has_topologies(const std::string &folder)
{
    return access((folder + kShipped).c_str(), R_OK) == 0;
}

// `configured`, in an installation that was configured for `from` and lies at `to`. A path that was
// to lie outside of it, /etc perhaps, has not moved with it.
std::string moved(const std::string &configured, const std::string &from, const std::string &to)
{
    return configured.starts_with(from + "/") ? to + configured.substr(from.size()) : configured;
}

} // namespace

std::string own_folder()
{
    Dl_info info{};
    link_map *object = nullptr;
    static const char marker = 0;
    if (dladdr1(&marker, &info, reinterpret_cast<void **>(&object), RTLD_DL_LINKMAP) == 0 ||
        object == nullptr) {
        return {};
    }
    const bool is_program = object->l_name == nullptr || *object->l_name == '\0';
    return without_last(real_path(is_program ? "/proc/self/exe" : object->l_name));
}

InstalledFolders installed_folders_of(const std::string &folder)
{
    InstalledFolders folders{HETCOLL_DATA_FOLDER "/topology", HETCOLL_CONFIG_FOLDER,
                             HETCOLL_DATA_FOLDER, HETCOLL_COMPONENT_FOLDER};
    // Another installation may lie above one that shares its folder with Open MPI: a distribution's
    // package in /usr, and what somebody has built in /usr/local.
    if (folder.empty() ||
        (folder == real_path(folders.component) && has_topologies(folders.topologies))) {
        return folders;
    }
    const bool is_split = !folders.data.ends_with(kDataBelowPrefix); // by configure --datadir
    for (std::string above = folder;; above = without_last(above)) {
        if (const std::string built = above + "/topology/machines"; has_topologies(built)) {
            folders.topologies = built;
            return folders;
        }
        if (const std::string data = above + std::string(kDataBelowPrefix);
            !is_split && has_topologies(data + "/topology")) {
            const std::string prefix =
                folders.data.substr(0, folders.data.size() - kDataBelowPrefix.size());
            return {data + "/topology", moved(folders.config, prefix, above), data,
                    moved(folders.component, prefix, above)};
        }
        if (above.empty()) {
            return folders;
        }
    }
}

InstalledFolders installed_folders() { return installed_folders_of(own_folder()); }

std::string installed_table(const InstalledFolders &folders)
{
    for (const std::string &folder : {folders.config, folders.data}) {
        std::string table = folder + "/" + kTableName;
        // One that cannot be looked at is not passed over: its reader says why.
        if (access(table.c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
            return table;
        }
    }
    return {};
}

} // namespace hetcoll
