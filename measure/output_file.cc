#include "measure/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hetcoll {
namespace {

Status problem(const std::string &path, int cause)
{
    return error(Errc::kInvalid, "%s cannot be written (%s)", path == "-" ? "stdout" : path.c_str(),
                 std::strerror(cause));
}

} // namespace

void OutputFile::Close::operator()(std::FILE *file) const noexcept
{
    if (file != stdout) {
        (void)std::fclose(file);
    }
    if (!remove.empty()) {
        (void)std::remove(remove.c_str());
    }
}

Result<OutputFile> OutputFile::open(const std::string &path)
{
    if (path == "-") {
        return OutputFile(path, stdout, false);
    }
    const bool is_new = access(path.c_str(), F_OK) != 0;
    std::FILE *const file = std::fopen(path.c_str(), "ae"); // what is there stays
    if (file == nullptr) {
        return problem(path, errno);
    }
    return OutputFile(path, file, is_new);
}

Status OutputFile::write(const std::string &text)
{
    errno = 0;
    struct stat status {};
    const bool is_file = fstat(fileno(file_.get()), &status) == 0 && S_ISREG(status.st_mode);
    const bool cut = file_.get() == stdout || !is_file || ftruncate(fileno(file_.get()), 0) == 0;
    if (!cut || std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
        std::fflush(file_.get()) != 0) {
        return problem(path_, errno);
    }
    file_.get_deleter().remove.clear();
    return {};
}

} // namespace hetcoll
