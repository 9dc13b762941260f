#include "measure/own_path.h"

#include <filesystem>
#include <system_error>

namespace hetcoll {

std::string own_path()
{
    std::error_code code;
    return std::filesystem::read_symlink("/proc/self/exe", code).string();
}

} // namespace hetcoll
