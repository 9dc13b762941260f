// A tuning table as a file: JSON in the shape of Open MPI's rule files of version 3, extended.
// docs/tuning.md describes it, tuning/hetcoll_tuning.schema.json is its schema.
#pragma once

#include "base/status.h"
#include "machine/cpu_limits.h"
#include "machine/fingerprint.h"
#include "machine/query.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

struct Range { // both ends belong to it
    static constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

    std::int64_t min = 0, max = kInfinite;

    [[nodiscard]] constexpr bool contains(std::int64_t value) const noexcept
    {
        return min <= value && value <= max;
    }
    [[nodiscard]] constexpr bool contains(const Range &other) const noexcept
    {
        return min <= other.min && other.max <= max;
    }
    [[nodiscard]] constexpr bool overlaps(const Range &other) const noexcept
    {
        return min <= other.max && other.min <= max;
    }
    friend bool operator==(const Range &, const Range &) = default;
};

// One rule: what serves calls of these sizes.
struct SizeRule {
    Range bytes;
    Algorithm algorithm{};
    std::optional<Algorithm> between_nodes{}; // none: the price's
    std::size_t chunk_bytes = 0;              // 0: the price's
    int line = 0;

    friend bool operator==(const SizeRule &, const SizeRule &) = default;
};

// Which communicators and calls a list of rules is for. Ranks per node: all nodes must be in range.
struct RuleSet {
    Range ranks, nodes, ranks_per_node, ranks_per_gpu, element_bytes;
    std::optional<OpClass> op{};
    std::optional<CallMemory> memory{};
    std::string machine; // empty: every machine
    std::vector<SizeRule> rules;
    int line = 0;

    friend bool operator==(const RuleSet &, const RuleSet &) = default;
};

struct Machine { // a class of hosts
    std::string name;
    Fingerprint fingerprint;
    std::string measurements; // where the raw measurements lie, relative to the table
    std::optional<CpuLimits> cpu{};
    int line = 0;
};

struct TableFile {
    std::string path; // for messages
    std::vector<Machine> machines;
    std::vector<RuleSet> sets; // the first that matches wins
};

inline constexpr std::size_t kMaxTableBytes = 1u << 20;
inline constexpr int kTableVersion = 3; // 'rule_file_version' of the tables that can be read

// Every error says file, line and the way out. Never throws.
[[nodiscard]] Result<TableFile> parse_table(std::string_view text,
                                            const std::string &path) noexcept;
[[nodiscard]] Result<TableFile> read_table(const std::string &path) noexcept;

// The text from which parse_table() reads the same table back. The same table gives the same text.
[[nodiscard]] std::string write_table(const TableFile &table);

// A hash of all that the file decides, for every machine: the same on two ranks if they have read
// the same table, whatever its path and its spaces.
[[nodiscard]] std::uint64_t table_hash(const TableFile &table) noexcept;

// "PATH:LINE: CAUSE; WAY OUT". Without a line: 0.
[[nodiscard]] Status table_error(const std::string &path, int line, const std::string &cause);

} // namespace hetcoll
