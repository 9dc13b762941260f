// Where messages go: Open MPI's output streams in the component, stderr in tools and tests.
#pragma once

namespace hetcoll {

// level 0 is for what the user must see; 1 and up are shown by coll_hetcoll_verbose.
struct Log {
    void (*write)(int level, const char *line) = nullptr; // one line without a line feed
    int verbose = 0;

    [[nodiscard]] bool enabled(int level) const noexcept
    {
        return write != nullptr && level <= verbose;
    }
};

[[gnu::format(printf, 3, 4)]] void log(const Log &to, int level, const char *format, ...);

} // namespace hetcoll
