#include "tuning/table.h"

#include "base/hash.h"

#include <algorithm>
#include <exception>

namespace hetcoll {
namespace {

bool matches(const RuleSet &set, const Query &query) noexcept
{
    const NodeShape shape = node_shape(query);
    return set.ranks.contains(query.ranks) && set.nodes.contains(query.nodes) &&
           set.ranks_per_node.contains(Range{shape.min, shape.max}) &&
           set.ranks_per_gpu.contains(query.ranks_per_gpu) &&
           set.element_bytes.contains(static_cast<std::int64_t>(query.element_bytes)) &&
           (!set.op || *set.op == query.op) && (!set.memory || *set.memory == query.memory);
}

void add(Hash &hash, const Range &range) noexcept
{
    hash.add(static_cast<std::uint64_t>(range.min));
    hash.add(static_cast<std::uint64_t>(range.max));
}

template <class T> std::uint64_t number(const std::optional<T> &value) noexcept
{
    return value ? 1 + static_cast<std::uint64_t>(*value) : 0;
}

// All but its machine and its rules.
void add(Hash &hash, const RuleSet &set) noexcept
{
    for (const Range *range :
         {&set.ranks, &set.nodes, &set.ranks_per_node, &set.ranks_per_gpu, &set.element_bytes}) {
        add(hash, *range);
    }
    hash.add(number(set.op));
    hash.add(number(set.memory));
}

void add(Hash &hash, const SizeRule &rule) noexcept
{
    add(hash, rule.bytes);
    hash.add(static_cast<std::uint64_t>(rule.algorithm));
    hash.add(number(rule.between_nodes));
    hash.add(rule.chunk_bytes);
}

} // namespace

Table::Table(const TableFile &file, const std::string &machine)
    : path_(file.path), machine_(machine)
{
    for (const Machine &known : file.machines) {
        if (known.name == machine) {
            cpu_ = known.cpu;
        }
    }
    for (const RuleSet &set : file.sets) {
        if (!set.machine.empty() && set.machine != machine) {
            continue;
        }
        const auto first = static_cast<std::ptrdiff_t>(rules_.size());
        rules_.insert(rules_.end(), set.rules.begin(), set.rules.end());
        std::sort(rules_.begin() + first, rules_.end(),
                  [](const SizeRule &a, const SizeRule &b) { return a.bytes.min < b.bytes.min; });
        entries_.push_back({set, static_cast<int>(first), static_cast<int>(set.rules.size())});
        entries_.back().set.rules.clear();
    }
    hash_ = compute_hash();
}

Result<Table> Table::load(const std::string &path, const Fingerprint &machine) noexcept
{
    Result<TableFile> file = read_table(path);
    if (!file.ok()) {
        return file.take_status();
    }
    try {
        return select(*file, machine);
    } catch (const std::exception &) { // std::bad_alloc
        return error(Errc::kNoMemory, "no memory for a tuning table");
    }
}

Result<Table> Table::select(const TableFile &file, const Fingerprint &machine)
{
    std::string difference;
    for (const Machine &candidate : file.machines) {
        const std::string here = machine.first_difference(candidate.fingerprint);
        if (here.empty()) {
            return Table(file, candidate.name);
        }
        difference += (difference.empty() ? "" : ", ") + candidate.name + ": " + here;
    }
    const auto for_all = [](const RuleSet &set) { return set.machine.empty(); };
    if (difference.empty() || std::any_of(file.sets.begin(), file.sets.end(), for_all)) {
        return Table(file, {});
    }
    constexpr std::size_t kMost = 400;
    if (difference.size() > kMost) {
        difference.resize(kMost);
        difference += "...";
    }
    return table_error(file.path, file.machines.front().line,
                       "it was measured on another machine (" + difference + ")");
}

Result<Table> Table::select_named(const TableFile &file, const std::string &name)
{
    if (name.empty() && file.machines.size() <= 1) {
        return Table(file, file.machines.empty() ? std::string() : file.machines.front().name);
    }
    std::string names;
    for (const Machine &machine : file.machines) {
        if (machine.name == name) {
            return Table(file, name);
        }
        names += (names.empty() ? "" : ", ") + machine.name;
    }
    return error(Errc::kInvalid, "%s: no machine '%s' in it: say one of %s", file.path.c_str(),
                 name.c_str(), names.c_str());
}

int Table::find(const Query &query, AlgorithmSet set) const noexcept
{
    const auto bytes = static_cast<std::int64_t>(query.bytes);
    for (const Entry &entry : entries_) {
        if (!matches(entry.set, query)) {
            continue;
        }
        const auto begin = rules_.begin() + entry.first, end = begin + entry.count;
        const auto after =
            std::upper_bound(begin, end, bytes, [](std::int64_t size, const SizeRule &rule) {
                return size < rule.bytes.min;
            });
        if (after == begin) {
            continue;
        }
        const auto rule = after - 1;
        if (rule->bytes.contains(bytes) && contains(set, rule->algorithm)) {
            return static_cast<int>(rule - rules_.begin());
        }
    }
    return -1;
}

const RuleSet &Table::set_of(int rule) const noexcept
{
    std::size_t i = 0;
    while (rule >= entries_[i].first + entries_[i].count) {
        ++i;
    }
    return entries_[i].set;
}

std::uint64_t Table::compute_hash() const noexcept
{
    Hash hash;
    for (const Entry &entry : entries_) {
        add(hash, entry.set);
        hash.add(static_cast<std::uint64_t>(entry.count));
        for (int i = entry.first; i < entry.first + entry.count; ++i) {
            add(hash, rule(i));
        }
    }
    return hash.value();
}

std::uint64_t table_hash(const TableFile &table) noexcept
{
    Hash hash;
    for (const Machine &machine : table.machines) {
        hash.add(machine.name);
        hash.add(machine.fingerprint.hash());
    }
    for (const RuleSet &set : table.sets) {
        hash.add(set.machine);
        add(hash, set);
        hash.add(set.rules.size());
        for (const SizeRule &rule : set.rules) {
            add(hash, rule);
        }
    }
    return hash.value();
}

} // namespace hetcoll
