#include "measure/named_files.h"

#include "measure/command_line.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

namespace hetcoll {
namespace {

// A file that the command line names.
struct NamedFile {
    std::string option, path;
};

std::vector<NamedFile> named_files(const CommandLine &line, const std::vector<std::string> &options)
{
    std::vector<NamedFile> files;
    for (const std::string &option : options) {
        for (const std::string &path : line.words_of(option)) {
            files.push_back({option, path});
        }
    }
    return files;
}

// A regular file, or one that is not there yet.
bool is_same_file(const std::string &a, const std::string &b)
{
    namespace fs = std::filesystem;
    std::error_code code;
    if (a.empty() || b.empty()) {
        return false;
    }
    if (fs::exists(a, code) || fs::exists(b, code)) {
        return fs::is_regular_file(a, code) && fs::equivalent(a, b, code);
    }
    return fs::weakly_canonical(a, code) == fs::weakly_canonical(b, code);
}

} // namespace

std::string find_overwritten(const CommandLine &line, const std::vector<std::string> &writes,
                             const std::vector<std::string> &reads)
{
    const std::vector<NamedFile> written = named_files(line, writes),
                                 read = named_files(line, reads);
    for (std::size_t i = 0; i < written.size(); ++i) {
        const NamedFile &file = written[i];
        for (std::size_t j = 0; j < i; ++j) {
            if (is_same_file(file.path, written[j].path)) {
                return written[j].option + " and " + file.option + " both write " +
                       (file.path == "-" ? "to stdout" : file.path) + ": give each a file";
            }
        }
        for (const NamedFile &input : read) {
            const std::string before_gpus = input.path.substr(0, input.path.rfind(':'));
            if (is_same_file(file.path, input.path) || is_same_file(file.path, before_gpus)) {
                return file.option + " would overwrite " + file.path + ", which " +
                       (input.option.starts_with('-') ? input.option : "the program") +
                       " reads: give another file";
            }
        }
    }
    return {};
}

std::string find_twice(const CommandLine &line, const std::string &option)
{
    const std::vector<NamedFile> files = named_files(line, {option});
    for (std::size_t i = 0; i < files.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (is_same_file(files[i].path, files[j].path)) {
                return files[i].path;
            }
        }
    }
    return {};
}

} // namespace hetcoll
