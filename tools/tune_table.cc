#include "tools/tune_table.h"

#include "tuning/build_table.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace hetcoll {

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20; // of measurements

std::string folder_of(const std::string &path)
{
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

// Whether a file can be made there; the folder too.
bool may_write(std::filesystem::path folder)
{
    std::error_code code;
    while (!std::filesystem::exists(folder, code) && folder.has_relative_path()) {
        folder = folder.parent_path();
    }
    return access(folder.c_str(), W_OK | X_OK) == 0;
}

// Relative to the folder of a table at `path`, as tables name measurements.
std::string beside(const std::string &path, const std::string &measurements)
{
    std::error_code code;
    const std::filesystem::path relative =
        std::filesystem::proximate(measurements, folder_of(path), code);
    return code ? measurements : relative.generic_string();
}

bool is_empty(const std::string &path)
{
    std::error_code code;
    return std::filesystem::file_size(path, code) == 0 && !code;
}

// The file at `path` or, as that will hide it, in the data folder; it may be empty. An error if
// what is at `path` is not understood: it would be lost.
Result<TableFile> old_table(const std::string &path, std::vector<std::string> &notes)
{
    TableFile none;
    none.path = path;
    const InstalledFolders folders = installed_folders();
    const bool hides = path == folders.config + "/" + kTableName && !std::filesystem::exists(path);
    const std::string from = hides ? folders.data + "/" + kTableName : path;
    if (!std::filesystem::exists(from) || is_empty(from)) {
        return none;
    }
    Result<TableFile> old = read_table(from);
    if (!old.ok() && hides) {
        notes.push_back("hides a table that cannot be used: " + old.status().message());
        return none;
    }
    if (!old.ok()) {
        return error(Errc::kInvalid,
                     "%s is kept, as it is no table that this version can read and may have what "
                     "others need: move it away, or give another --output. Its fault: "
                     "%s",
                     path.c_str(), old.status().message().c_str());
    }
    for (Machine &machine : old->machines) {
        if (hides && !machine.measurements.empty()) {
            machine.measurements =
                beside(path, (std::filesystem::path(folders.data) / machine.measurements).string());
        }
    }
    old->path = path;
    return old;
}

} // namespace

std::string table_to_install(const InstalledFolders &folders)
{
    const std::string table = folders.config + "/" + kTableName;
    const bool data_alone =
        !may_write(folders.config) && access(table.c_str(), F_OK) != 0 && may_write(folders.data);
    return data_alone ? folders.data + "/" + kTableName : table;
}

std::string measurements_path(const std::string &table, const std::string &machine)
{
    std::filesystem::path path(table);
    path.replace_extension(machine + ".measurements");
    return path.string();
}

Status check_output(const std::string &path)
{
    const std::string folder = folder_of(path);
    std::error_code code;
    if (std::filesystem::exists(path, code) && !std::filesystem::is_regular_file(path, code)) {
        return error(Errc::kInvalid,
                     "%s cannot be written (it is not a regular file): give "
                     "--output",
                     path.c_str());
    }
    code.clear();
    std::filesystem::create_directories(folder, code);
    const bool writable = !code && access(folder.c_str(), W_OK | X_OK) == 0;
    const int cause = code ? code.value() : errno;
    if (!writable) {
        return error(Errc::kInvalid,
                     "%s cannot be written (%s): give --output, or the rights to write there",
                     path.c_str(), std::strerror(cause));
    }
    std::vector<std::string> unsaid;
    return old_table(path, unsaid).take_status();
}

Status write_file(const std::string &path, const std::string &text)
{
    const std::string fresh = path + ".new." + std::to_string(getpid());
    errno = 0;
    std::FILE *const file = std::fopen(fresh.c_str(), "we");
    bool written = file != nullptr;
    written = written && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    written = (file == nullptr || std::fclose(file) == 0) && written;
    if (written && std::rename(fresh.c_str(), path.c_str()) == 0) {
        return {};
    }
    const int cause = errno;
    std::remove(fresh.c_str());
    return error(Errc::kInvalid, "%s cannot be written (%s)", path.c_str(), std::strerror(cause));
}

Result<std::string> read_file(const std::string &path)
{
    errno = 0;
    const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "re"),
                                                                std::fclose);
    std::string text;
    std::array<char, 65536> part{};
    for (std::size_t got = 1; file && got != 0 && text.size() <= kMostBytes;) {
        got = std::fread(part.data(), 1, part.size(), file.get());
        text.append(part.data(), got);
    }
    if (!file || std::ferror(file.get()) != 0) { // a folder, too
        return error(Errc::kInvalid, "%s cannot be read (%s)", path.c_str(), std::strerror(errno));
    }
    if (text.size() > kMostBytes) {
        return error(Errc::kInvalid, "%s cannot be read (it has more than %zu bytes)", path.c_str(),
                     kMostBytes);
    }
    return text;
}

Result<WrittenTable> update_table(const std::string &path, const Measurements &measurements)
{
    WrittenTable written;
    Result<TableFile> table = old_table(path, written.notes);
    if (!table.ok()) {
        return table.take_status();
    }
    const BuiltRules built = build_rules(measurements);
    written.notes.insert(written.notes.end(), built.notes.begin(), built.notes.end());
    for (const RuleSet &set : built.sets) {
        written.rules += static_cast<int>(set.rules.size());
    }
    if (written.rules == 0) {
        return error(Errc::kInvalid, "%s holds no measurement, so there is nothing to choose by",
                     measurements.path.c_str());
    }
    for (const Machine &other : table->machines) {
        if (other.name != measurements.machine &&
            other.fingerprint.facts == measurements.fingerprint.facts) {
            written.notes.push_back(measurements.machine + " has the fingerprint of " + other.name +
                                    ": hosts take the rules of the one that the table has first");
        }
    }
    replace_machine(*table, measurements, built, beside(path, measurements.path));
    const std::string text = write_table(*table);
    if (const Result<TableFile> read_back = parse_table(text, path); !read_back.ok()) {
        return error(Errc::kInvalid,
                     "with the rules for %s no job could read the table, so %s stays as it is: "
                     "give another --output. Its fault would be: %s",
                     measurements.machine.c_str(), path.c_str(),
                     read_back.status().message().c_str());
    }
    if (Status status = write_file(path, text); !status.ok()) {
        return status;
    }
    return written;
}

} // namespace hetcoll
