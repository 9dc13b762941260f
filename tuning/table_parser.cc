// From the tree of a JSON text to a table: every fault is worded here, with its line.
#include "machine/query.h"
#include "plan/way.h"
#include "tuning/table_file.h"

#include "tuning/json_walk.h"

#include <algorithm>
#include <exception>

namespace hetcoll {
namespace {

constexpr std::size_t kMaxSets = 512, kMaxRules = 8192, kMaxMachines = 64;
constexpr std::int64_t kChunkMultiple = 16;

// Walks the tree and fills the table; the first fault ends it.
class TableReader : JsonWalk {
public:
    explicit TableReader(TableFile &table) : table_(table) {}

    [[nodiscard]] bool read(const JsonNode &root);
    [[nodiscard]] Status fault() const { return table_error(table_.path, line_, cause_); }

private:
    bool text(const JsonNode &object, const char *key, std::string *value);
    bool number(const JsonNode &node, const char *key, std::int64_t *value);
    bool range(const JsonNode &object, const std::string &name, Range *value);
    bool word(const JsonNode &object, const char *key, Names known, int *index);
    bool algorithm(const JsonNode &node, const char *key, AlgorithmSet known, Algorithm *value);

    bool read_machine(const JsonNode &node);
    bool read_set(const JsonNode &node);
    bool read_distribution(const JsonNode &node, RuleSet &set);
    bool read_rule(const JsonNode &node, RuleSet &set);
    bool check_overlap();

    TableFile &table_;
    std::size_t rules_ = 0;
};

bool TableReader::text(const JsonNode &object, const char *key, std::string *value)
{
    const JsonNode *node = find_member(object, key);
    if (node == nullptr) {
        return true;
    }
    if (!is(Kind::kString, *node, quoted(key))) {
        return false;
    }
    *value = node->string;
    return true;
}

// A whole number from 0, or "inf".
bool TableReader::number(const JsonNode &node, const char *key, std::int64_t *value)
{
    if (node.kind == Kind::kString) {
        if (node.string != "inf" && node.string != "INF" && node.string != "Inf") {
            return fail(node.line, quoted(key) + " is " + quoted(node.string) +
                                       ", not a whole number or \"inf\"");
        }
        *value = Range::kInfinite;
        return true;
    }
    if (!is(Kind::kInteger, node, quoted(key))) {
        return false;
    }
    if (node.integer < 0) {
        return fail(node.line, quoted(key) + " is " + std::to_string(node.integer) +
                                   ", a size is never negative");
    }
    *value = node.integer;
    return true;
}

bool TableReader::range(const JsonNode &object, const std::string &name, Range *value)
{
    const std::string low = name + "_min", high = name + "_max";
    const JsonNode *min = find_member(object, low.c_str()),
                   *max = find_member(object, high.c_str());
    if ((min != nullptr && !number(*min, low.c_str(), &value->min)) ||
        (max != nullptr && !number(*max, high.c_str(), &value->max))) {
        return false;
    }
    if (value->min > value->max) {
        return fail((max != nullptr ? max : min)->line,
                    quoted(low) + " is above " + quoted(high) + ": nothing is between them");
    }
    return true;
}

// *index of the word in `known`; -1 if the key is missing.
bool TableReader::word(const JsonNode &object, const char *key, Names known, int *index)
{
    *index = -1;
    const JsonNode *node = find_member(object, key);
    if (node == nullptr) {
        return true;
    }
    if (!is(Kind::kString, *node, quoted(key))) {
        return false;
    }
    for (const char *name : known) {
        ++*index;
        if (node->string == name) {
            return true;
        }
    }
    return fail(node->line,
                quoted(key) + " is " + quoted(node->string) + ", not one of " + list_of(known));
}

bool TableReader::algorithm(const JsonNode &node, const char *key, AlgorithmSet known,
                            Algorithm *value)
{
    if (!is(Kind::kString, node, quoted(key))) {
        return false;
    }
    const std::optional<Algorithm> found = find_algorithm(node.string);
    if (found && contains(known, *found)) {
        *value = *found;
        return true;
    }
    return fail(node.line, quoted(key) + ": unknown algorithm " + quoted(node.string) +
                               ", known are " + names_of(known));
}

bool TableReader::read_machine(const JsonNode &node)
{
    if (!is_object_of({"name", "fingerprint", "measurements", "cpu_read_bytes", "cpu_write_bytes"},
                      node, "a machine")) {
        return false;
    }
    Machine machine;
    machine.line = node.line;
    const JsonNode *reads = find_member(node, "cpu_read_bytes"),
                   *writes = find_member(node, "cpu_write_bytes");
    if ((reads == nullptr) != (writes == nullptr)) {
        return fail(node.line, "a machine has 'cpu_read_bytes' and 'cpu_write_bytes', or neither");
    }
    if (reads != nullptr) {
        std::int64_t read_bytes = 0, write_bytes = 0;
        if (!number(*reads, "cpu_read_bytes", &read_bytes) ||
            !number(*writes, "cpu_write_bytes", &write_bytes)) {
            return false;
        }
        machine.cpu = CpuLimits{.read_bytes = static_cast<std::size_t>(read_bytes),
                                .write_bytes = static_cast<std::size_t>(write_bytes)};
    }
    if (!text(node, "name", &machine.name) || !text(node, "measurements", &machine.measurements)) {
        return false;
    }
    if (machine.name.empty()) {
        return fail(node.line, "a machine has no 'name'");
    }
    for (const Machine &other : table_.machines) {
        if (other.name == machine.name) {
            return fail(node.line, "machine " + quoted(machine.name) + " is there twice");
        }
    }
    const JsonNode *facts = find_member(node, "fingerprint");
    if (facts == nullptr) {
        return fail(node.line, "machine " + quoted(machine.name) + " has no 'fingerprint'");
    }
    if (!is(Kind::kObject, *facts, "'fingerprint'")) {
        return false;
    }
    for (std::size_t i = 0; i < facts->keys.size(); ++i) {
        if (!is(Kind::kString, facts->items[i], quoted(facts->keys[i]))) {
            return false;
        }
        machine.fingerprint.facts[facts->keys[i]] = facts->items[i].string;
    }
    if (table_.machines.size() == kMaxMachines) {
        return fail(node.line, "more than " + std::to_string(kMaxMachines) + " machines");
    }
    table_.machines.push_back(std::move(machine));
    return true;
}

bool TableReader::read_rule(const JsonNode &node, RuleSet &set)
{
    if (!is_object_of({"msg_size_min", "msg_size_max", "alg", "between_nodes", "chunk_bytes"}, node,
                      "a rule")) {
        return false;
    }
    SizeRule rule;
    rule.line = node.line;
    const JsonNode *name = find_member(node, "alg");
    if (name == nullptr) {
        return fail(node.line, "a rule has no 'alg'");
    }
    if (!range(node, "msg_size", &rule.bytes) ||
        !algorithm(*name, "alg", kAllAlgorithms, &rule.algorithm)) {
        return false;
    }
    if (const JsonNode *between = find_member(node, "between_nodes"); between != nullptr) {
        rule.between_nodes.emplace();
        if (!algorithm(*between, "between_nodes", kBetweenNodesAlgorithms, &*rule.between_nodes)) {
            return false;
        }
    }
    if (const JsonNode *chunk = find_member(node, "chunk_bytes"); chunk != nullptr) {
        std::int64_t bytes = 0;
        if (!number(*chunk, "chunk_bytes", &bytes)) {
            return false;
        }
        const auto most = static_cast<std::int64_t>(kLargestChunkBytes);
        if (bytes % kChunkMultiple != 0 || bytes == 0 || bytes > most) {
            return fail(chunk->line, "'chunk_bytes' is " + std::to_string(bytes) +
                                         ", not a multiple of " + std::to_string(kChunkMultiple) +
                                         " from " + std::to_string(kChunkMultiple) + " to " +
                                         std::to_string(most));
        }
        rule.chunk_bytes = static_cast<std::size_t>(bytes);
    }
    for (const SizeRule &other : set.rules) {
        if (other.bytes.overlaps(rule.bytes)) {
            return fail(node.line, "its message sizes overlap those of the rule in line " +
                                       std::to_string(other.line));
        }
    }
    if (++rules_ > kMaxRules) {
        return fail(node.line, "more than " + std::to_string(kMaxRules) + " rules");
    }
    set.rules.push_back(rule);
    return true;
}

// Open MPI's way to say how the ranks lie.
bool TableReader::read_distribution(const JsonNode &node, RuleSet &set)
{
    int which = -1;
    if (!word(node, "comm_rank_distribution", {"any", "one-per-node", "single-node"}, &which)) {
        return false;
    }
    const bool twice =
        (which == 1 && set.ranks_per_node != Range{}) || (which == 2 && set.nodes != Range{});
    if (twice) {
        return fail(
            find_member(node, "comm_rank_distribution")->line,
            "'comm_rank_distribution' and a range of nodes or of ranks on each: one of them "
            "is enough");
    }
    if (which == 1) {
        set.ranks_per_node = {1, 1};
    } else if (which == 2) {
        set.nodes = {1, 1};
    }
    return true;
}

bool TableReader::read_set(const JsonNode &node)
{
    if (!is_object_of({"machine", "comm_size_min", "comm_size_max", "comm_rank_distribution",
                       "nodes_min", "nodes_max", "ranks_per_node_min", "ranks_per_node_max",
                       "ranks_per_gpu_min", "ranks_per_gpu_max", "element_size_min",
                       "element_size_max", "op", "memory", "rules"},
                      node, "a list of rules")) {
        return false;
    }
    RuleSet set;
    set.line = node.line;
    int op = -1, memory = -1;
    if (!text(node, "machine", &set.machine) || !range(node, "comm_size", &set.ranks) ||
        !range(node, "nodes", &set.nodes) || !range(node, "ranks_per_node", &set.ranks_per_node) ||
        !range(node, "ranks_per_gpu", &set.ranks_per_gpu) ||
        !range(node, "element_size", &set.element_bytes) || !read_distribution(node, set) ||
        !word(node, "op", {"sum", "other", "any"}, &op) ||
        !word(node, "memory", {"device", "mixed", "any"}, &memory)) {
        return false;
    }
    if (op == 0 || op == 1) {
        set.op = static_cast<OpClass>(op);
    }
    if (memory == 0 || memory == 1) {
        set.memory = static_cast<CallMemory>(memory);
    }
    const auto same = [&](const Machine &machine) { return machine.name == set.machine; };
    if (!set.machine.empty() &&
        std::none_of(table_.machines.begin(), table_.machines.end(), same)) {
        return fail(node.line, "machine " + quoted(set.machine) + " is not in 'machines'");
    }
    const JsonNode *rules = find_member(node, "rules");
    if (rules == nullptr) {
        return fail(node.line, "a list of rules has no 'rules'");
    }
    if (!is(Kind::kArray, *rules, "'rules'")) {
        return false;
    }
    for (const JsonNode &rule : rules->items) {
        if (!read_rule(rule, set)) {
            return false;
        }
    }
    if (table_.sets.size() == kMaxSets) {
        return fail(node.line, "more than " + std::to_string(kMaxSets) + " lists of rules");
    }
    table_.sets.push_back(std::move(set));
    return true;
}

// How two lists lie to each other: a later one may be wider than an earlier one, which is then its
// exception, and nothing else.
template <class T> bool may_meet(const std::optional<T> &a, const std::optional<T> &b)
{
    return !a || !b || *a == *b;
}
template <class T> bool within(const std::optional<T> &inner, const std::optional<T> &outer)
{
    return !outer || (inner && *inner == *outer);
}
bool overlap(const RuleSet &a, const RuleSet &b)
{
    return (a.machine.empty() || b.machine.empty() || a.machine == b.machine) &&
           a.ranks.overlaps(b.ranks) && a.nodes.overlaps(b.nodes) &&
           a.ranks_per_node.overlaps(b.ranks_per_node) &&
           a.ranks_per_gpu.overlaps(b.ranks_per_gpu) && a.element_bytes.overlaps(b.element_bytes) &&
           may_meet(a.op, b.op) && may_meet(a.memory, b.memory);
}
bool contained(const RuleSet &inner, const RuleSet &outer)
{
    return (outer.machine.empty() || inner.machine == outer.machine) &&
           outer.ranks.contains(inner.ranks) && outer.nodes.contains(inner.nodes) &&
           outer.ranks_per_node.contains(inner.ranks_per_node) &&
           outer.ranks_per_gpu.contains(inner.ranks_per_gpu) &&
           outer.element_bytes.contains(inner.element_bytes) && within(inner.op, outer.op) &&
           within(inner.memory, outer.memory);
}

bool TableReader::check_overlap()
{
    for (std::size_t later = 1; later < table_.sets.size(); ++later) {
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            const RuleSet &a = table_.sets[earlier], &b = table_.sets[later];
            if (overlap(a, b) && (!contained(a, b) || contained(b, a))) {
                return fail(b.line, "its ranges overlap those of the list in line " +
                                        std::to_string(a.line) +
                                        ", and that one is no exception to it");
            }
        }
    }
    return true;
}

bool TableReader::read(const JsonNode &root)
{
    if (!is_object_of({"$schema", "rule_file_version", "module", "machines", "collectives"}, root,
                      "the table")) {
        return false;
    }
    const JsonNode *version = find_member(root, "rule_file_version");
    if (version == nullptr || version->kind != Kind::kInteger) {
        return fail(version == nullptr ? root.line : version->line,
                    "it has no number 'rule_file_version', so it is not a table of hetcoll's");
    }
    if (version->integer != kTableVersion) {
        const bool is_newer = version->integer > kTableVersion;
        return fail(version->line, "'rule_file_version' is " + std::to_string(version->integer) +
                                       ", and this hetcoll reads " + std::to_string(kTableVersion) +
                                       (is_newer ? ": a newer hetcoll has written the table"
                                                 : ": an older hetcoll has written the table"));
    }
    const JsonNode *module = find_member(root, "module");
    if (module == nullptr || module->string != "hetcoll") {
        return fail(module == nullptr ? root.line : module->line, "'module' is not \"hetcoll\"");
    }
    if (const JsonNode *machines = find_member(root, "machines"); machines != nullptr) {
        if (!is(Kind::kArray, *machines, "'machines'")) {
            return false;
        }
        for (const JsonNode &machine : machines->items) {
            if (!read_machine(machine)) {
                return false;
            }
        }
    }
    const JsonNode *collectives = find_member(root, "collectives");
    if (collectives == nullptr) {
        return fail(root.line, "the table has no 'collectives'");
    }
    if (!is_object_of({"allreduce"}, *collectives, "'collectives'")) {
        return false;
    }
    const JsonNode *lists = find_member(*collectives, "allreduce");
    if (lists == nullptr) {
        return fail(collectives->line, "'collectives' has no 'allreduce'");
    }
    if (!is(Kind::kArray, *lists, "'allreduce'")) {
        return false;
    }
    for (const JsonNode &list : lists->items) {
        if (!read_set(list)) {
            return false;
        }
    }
    return check_overlap();
}

Result<TableFile> parse(std::string_view text, const std::string &path)
{
    TableFile table;
    table.path = path;
    if (text.size() > kMaxTableBytes) {
        return table_error(path, 0,
                           "it has " + std::to_string(text.size()) +
                               " bytes, a table has at most " + std::to_string(kMaxTableBytes));
    }
    JsonNode root;
    JsonError problem;
    if (!read_json(text, &root, &problem)) {
        return table_error(path, problem.line, problem.cause);
    }
    TableReader reader(table);
    if (!reader.read(root)) {
        return reader.fault();
    }
    return table;
}

} // namespace

Result<TableFile> parse_table(std::string_view text, const std::string &path) noexcept
{
    try {
        return parse(text, path);
    } catch (const std::exception &) { // std::bad_alloc
        return error(Errc::kNoMemory, "no memory for a tuning table");
    }
}

} // namespace hetcoll
