// A tuning table made ready for one machine: what choose() looks calls up in.
#pragma once

#include "tuning/table_file.h"

#include <vector>

namespace hetcoll {

class Table {
public:
    // Reads a file and takes what is for this machine. An error says file, line and the way out:
    // also if the file is for other machines only.
    [[nodiscard]] static Result<Table> load(const std::string &path,
                                            const Fingerprint &machine) noexcept;
    // The rules for the first machine whose fingerprint this one has, and those for every machine.
    [[nodiscard]] static Result<Table> select(const TableFile &file, const Fingerprint &machine);
    // For the machine of that name; empty: the only one, if there is one.
    [[nodiscard]] static Result<Table> select_named(const TableFile &file, const std::string &name);

    // The first rule that is for the call and whose algorithm is in `set`; -1: none. Allocates
    // nothing.
    [[nodiscard]] int find(const Query &query, AlgorithmSet set) const noexcept;
    // Requires 0 <= rule < rule_count(), as everything with a rule here.
    [[nodiscard]] const SizeRule &rule(int rule) const noexcept
    {
        return rules_[static_cast<std::size_t>(rule)];
    }
    [[nodiscard]] int rule_count() const noexcept { return static_cast<int>(rules_.size()); }
    // The list that the rule is in: what it is for. It has no rules of its own.
    [[nodiscard]] const RuleSet &set_of(int rule) const noexcept;

    // A hash of everything that choices depend on: two ranks with the same hash always choose the
    // same.
    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    [[nodiscard]] const std::string &machine() const noexcept { return machine_; }
    // Limits of that machine, if they were measured. Not part of the hash.
    [[nodiscard]] const std::optional<CpuLimits> &cpu() const noexcept { return cpu_; }

private:
    struct Entry {
        RuleSet set;
        int first, count; // in rules_, by size
    };
    Table(const TableFile &file, const std::string &machine);
    [[nodiscard]] std::uint64_t compute_hash() const noexcept;

    std::string path_, machine_;
    std::optional<CpuLimits> cpu_;
    std::vector<Entry> entries_;
    std::vector<SizeRule> rules_;
    std::uint64_t hash_ = 0;
};

} // namespace hetcoll
