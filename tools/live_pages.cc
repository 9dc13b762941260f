#include "tools/live_pages.h"

#include "engine/meeting/control_page.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace hetcoll {
namespace {

using Slot = ControlPage::Slot;

// The part of a slot that is read: all before the offer.
class Head {
public:
    // False if the file ends before.
    [[nodiscard]] bool read(int fd, int local_rank) noexcept
    {
        const std::size_t at =
            SharedPage::kAlignment + static_cast<std::size_t>(local_rank) * sizeof(Slot);
        return pread(fd, bytes_.data(), bytes_.size(), static_cast<off_t>(at)) ==
               static_cast<ssize_t>(bytes_.size());
    }
    template <class T> [[nodiscard]] T get(std::size_t offset) const noexcept
    {
        T value;
        std::memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }
    [[nodiscard]] ControlPage::Who who() const noexcept
    {
        return get<ControlPage::Who>(offsetof(Slot, who));
    }
    [[nodiscard]] std::uint32_t arrived() const noexcept
    {
        return get<std::uint32_t>(offsetof(Slot, arrived));
    }

private:
    std::array<std::byte, offsetof(Slot, offer)> bytes_;
};

// The rank may write meanwhile: what it says of a meeting stands while that is its last one.
bool read_steady(int fd, int local_rank, Head &head) noexcept
{
    constexpr int kTries = 4; // a rank at full speed is shown between two calls
    for (int i = 0; i < kTries; ++i) {
        Head before;
        if (!before.read(fd, local_rank) || !head.read(fd, local_rank)) {
            return false;
        }
        if (before.arrived() == head.arrived()) {
            break;
        }
    }
    return true;
}

bool is_sound(const ControlPage::Who &who, const ControlPage::Who &first) noexcept
{
    return who.layout == first.layout && who.process.pid > 0 && who.rank >= 0 &&
           who.rank < who.ranks && who.ranks == first.ranks && who.node_ranks == first.node_ranks &&
           who.comm_id == first.comm_id;
}

LiveRank rank_of(const Head &head)
{
    const ControlPage::Who who = head.who();
    const std::uint32_t meeting = head.arrived();
    const std::size_t turn = meeting % 2;
    LiveRank rank{.rank = who.rank,
                  .process = who.process,
                  .state = process_state(who.process),
                  .meeting = meeting,
                  .call_number = head.get<std::uint32_t>(offsetof(Slot, call_number) +
                                                         turn * sizeof(std::uint32_t)),
                  .call = {},
                  .looked_s_ago = {}};
    const auto call = head.get<CallSignature>(offsetof(Slot, call) + turn * sizeof(CallSignature));
    if (is_signature(call)) {
        rank.call = call;
    }
    const auto looked_ns = head.get<std::uint64_t>(offsetof(Slot, looked_ns));
    const auto clock = std::chrono::steady_clock::now().time_since_epoch(); // as ranks read it
    const auto now = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(clock).count());
    if (looked_ns != 0 && looked_ns <= now) {
        rank.looked_s_ago = static_cast<double>(now - looked_ns) * 1e-9;
    }
    return rank;
}

struct CloseFile {
    void operator()(DIR *dir) const noexcept { closedir(dir); }
};
using Folder = std::unique_ptr<DIR, CloseFile>;

// The number that a name is.
std::optional<int> number_of(const char *name) noexcept
{
    int number = 0;
    const char *const end = name + std::strlen(name);
    const auto [last, code] = std::from_chars(name, end, number);
    return code == std::errc() && last == end ? std::optional(number) : std::nullopt;
}

// A descriptor of a file without a name in shared memory, or -1. Other files are not opened: that
// may have an effect.
int open_page(const std::string &link) noexcept
{
    char target[64];
    const ssize_t length = readlink(link.c_str(), target, sizeof target);
    constexpr std::string_view kFolder = "/dev/shm/";
    struct stat file {};
    if (length <= 0 ||
        !std::string_view(target, static_cast<std::size_t>(length)).starts_with(kFolder) ||
        stat(link.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink != 0) {
        return -1;
    }
    return open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

struct Search {
    std::vector<LivePage> pages;
    std::set<std::pair<dev_t, ino_t>> seen; // children of a process have its descriptors too
    std::optional<int> other_version;       // who has such a page
};

void search_process(int pid, Search &search)
{
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    const Folder files(opendir(folder.c_str()));
    while (const dirent *entry = files ? readdir(files.get()) : nullptr) {
        const int fd = number_of(entry->d_name) ? open_page(folder + "/" + entry->d_name) : -1;
        if (fd < 0) {
            continue;
        }
        struct stat file {};
        if (fstat(fd, &file) == 0 && search.seen.insert({file.st_dev, file.st_ino}).second) {
            Result<LivePage> page = read_live_page(fd, pid);
            if (page.ok()) {
                search.pages.push_back(std::move(*page));
            } else if (page.status().code() == Errc::kUnsupported) {
                search.other_version = pid;
            }
        }
        close(fd);
    }
}

Status check_asked(int pid)
{
    if (auto started = process_start_time(pid); !started.ok()) {
        return error(Errc::kInvalid, "%s", started.status().message().c_str());
    }
    struct stat process {};
    if (stat(("/proc/" + std::to_string(pid)).c_str(), &process) != 0) {
        return error(Errc::kInvalid, "process %d cannot be looked at (%s)", pid,
                     std::strerror(errno));
    }
    if (geteuid() != 0 && process.st_uid != geteuid()) {
        return error(Errc::kInvalid,
                     "process %d is user %u's, and only that user or root can look at its "
                     "communicators: run hetcoll_info as one of them",
                     pid, static_cast<unsigned>(process.st_uid));
    }
    return {};
}

Status none_found(std::optional<int> pid, const Search &search)
{
    if (search.other_version) {
        return error(Errc::kInvalid,
                     "process %d has communicators of another version of hetcoll, which this one "
                     "cannot read: use the hetcoll_info that was installed with it",
                     *search.other_version);
    }
    const std::string who = pid ? "process " + std::to_string(*pid) : "no process of this user";
    return error(Errc::kInvalid,
                 "%s has %scommunicator to show: it has one after its first collective call that "
                 "hetcoll serves, with other ranks",
                 who.c_str(), pid ? "no " : "a ");
}

} // namespace

std::uint32_t LivePage::last_meeting() const noexcept
{
    std::uint32_t last = here.front().meeting;
    for (const LiveRank &rank : here) {
        last = is_behind(last, rank.meeting) ? rank.meeting : last;
    }
    return last;
}

Result<LivePage> read_live_page(int fd, int owner)
{
    SharedPageHeader header{};
    ControlPage::Who first{};
    struct stat file {};
    if (fstat(fd, &file) != 0 || pread(fd, &header, sizeof header, 0) != sizeof header ||
        header.magic != SharedPageHeader::kMagic ||
        file.st_size != static_cast<off_t>(SharedPage::kAlignment + header.bytes) ||
        pread(fd, &first, sizeof first, SharedPage::kAlignment) != sizeof first) {
        return error(Errc::kInvalid, "a file of process %d is no control page", owner);
    }
    if (first.layout == 0) {
        return error(Errc::kInvalid, "process %d has a control page that is being made", owner);
    }
    if (first.layout != ControlPage::kLayout) {
        return error(Errc::kUnsupported, "process %d has a control page of another version", owner);
    }
    const auto ranks = static_cast<std::size_t>(std::max(first.node_ranks, 0));
    if (ranks == 0 || ranks != header.bytes / sizeof(Slot) || header.bytes % sizeof(Slot) != 0) {
        return error(Errc::kInvalid, "process %d has a control page for %zu ranks in %llu bytes",
                     owner, ranks, static_cast<unsigned long long>(header.bytes));
    }
    LivePage page{.comm_id = first.comm_id, .ranks = first.ranks, .here = {}};
    for (int local = 0; local < first.node_ranks; ++local) {
        Head head;
        if (!read_steady(fd, local, head) || !is_sound(head.who(), first)) {
            return error(Errc::kInvalid, "process %d has a control page without rank %d of %d",
                         owner, local, first.node_ranks);
        }
        page.here.push_back(rank_of(head));
    }
    return page;
}

Result<std::vector<LivePage>> find_live_pages(std::optional<int> pid)
{
    if (Status status = pid ? check_asked(*pid) : Status(); !status.ok()) {
        return status;
    }
    Search search;
    const Folder processes(opendir("/proc"));
    while (const dirent *entry = processes ? readdir(processes.get()) : nullptr) {
        if (const std::optional<int> process = number_of(entry->d_name)) {
            search_process(*process, search); // another user's cannot be looked into
        }
    }
    if (pid) {
        std::erase_if(search.pages, [&](const LivePage &page) {
            return std::none_of(page.here.begin(), page.here.end(),
                                [&](const LiveRank &rank) { return rank.process.pid == *pid; });
        });
    }
    if (search.pages.empty()) {
        return none_found(pid, search);
    }
    std::sort(search.pages.begin(), search.pages.end(), [](const auto &a, const auto &b) {
        return std::pair(a.comm_id, a.here.front().process.pid) <
               std::pair(b.comm_id, b.here.front().process.pid);
    });
    return std::move(search.pages);
}

} // namespace hetcoll
