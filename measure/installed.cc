#include "measure/installed.h"

#include <filesystem>
#include <system_error>

namespace hetcoll {

std::string own_path()
{
    std::error_code code;
    return std::filesystem::read_symlink("/proc/self/exe", code).string();
}

std::string topology_folder()
{
    std::filesystem::path program = std::filesystem::path(own_path()).parent_path();
    if (program.filename() == ".libs") { // where libtool puts a program that its script starts
        program = program.parent_path();
    }
    for (const char *folder : {"topology/machines", "../share/hetcoll/topology"}) {
        std::error_code code;
        const std::filesystem::path path = program / folder;
        if (std::filesystem::is_regular_file(path / "dgx1v.topology", code)) {
            return path.lexically_normal().string();
        }
    }
    return HETCOLL_DATA_FOLDER "/topology";
}

} // namespace hetcoll
