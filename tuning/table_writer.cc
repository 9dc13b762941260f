// A table as text: one line a rule, so that a change shows as the lines that changed.
#include "tuning/table_file.h"

namespace hetcoll {
namespace {

std::string quoted(const std::string &text)
{
    constexpr const char *kHex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            out += "\\u00";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

// Members of an object, with commas between them.
class Members {
public:
    explicit Members(std::string separator) : separator_(std::move(separator)) {}
    void add(const std::string &key, const std::string &value)
    {
        text_ += (text_.empty() ? "" : separator_) + quoted(key) + ": " + value;
    }
    void add(const std::string &key, const Range &range)
    {
        if (range == Range{}) {
            return;
        }
        add(key + "_min", std::to_string(range.min));
        add(key + "_max", range.max == Range::kInfinite ? "\"inf\"" : std::to_string(range.max));
    }
    [[nodiscard]] const std::string &text() const { return text_; }

private:
    std::string separator_, text_;
};

std::string rule_text(const SizeRule &rule)
{
    Members members(", ");
    members.add("msg_size_min", std::to_string(rule.bytes.min));
    members.add("msg_size_max",
                rule.bytes.max == Range::kInfinite ? "\"inf\"" : std::to_string(rule.bytes.max));
    members.add("alg", quoted(algorithm_name(rule.algorithm)));
    if (rule.between_nodes) {
        members.add("between_nodes", quoted(algorithm_name(*rule.between_nodes)));
    }
    if (rule.chunk_bytes != 0) {
        members.add("chunk_bytes", std::to_string(rule.chunk_bytes));
    }
    return "{" + members.text() + "}";
}

template <class List, class Text>
std::string list_text(const List &list, const std::string &indent, Text text)
{
    std::string out;
    for (const auto &item : list) {
        out += (out.empty() ? "\n" : ",\n") + indent + text(item);
    }
    return out;
}

std::string set_text(const RuleSet &set)
{
    Members members(",\n       ");
    if (!set.machine.empty()) {
        members.add("machine", quoted(set.machine));
    }
    members.add("comm_size", set.ranks);
    members.add("nodes", set.nodes);
    members.add("ranks_per_node", set.ranks_per_node);
    members.add("ranks_per_gpu", set.ranks_per_gpu);
    members.add("element_size", set.element_bytes);
    if (set.op) {
        members.add("op", *set.op == OpClass::kSum ? "\"sum\"" : "\"other\"");
    }
    if (set.memory) {
        members.add("memory", *set.memory == CallMemory::kDevice ? "\"device\"" : "\"mixed\"");
    }
    members.add("rules", "[" + list_text(set.rules, "         ", rule_text) + "]");
    return "{" + members.text() + "}";
}

std::string machine_text(const Machine &machine)
{
    Members facts(",\n                       ");
    for (const auto &[name, value] : machine.fingerprint.facts) {
        facts.add(name, quoted(value));
    }
    Members members(",\n     ");
    members.add("name", quoted(machine.name));
    members.add("fingerprint", "{" + facts.text() + "}");
    if (machine.cpu) {
        members.add("cpu_read_bytes", std::to_string(machine.cpu->read_bytes));
        members.add("cpu_write_bytes", std::to_string(machine.cpu->write_bytes));
    }
    if (!machine.measurements.empty()) {
        members.add("measurements", quoted(machine.measurements));
    }
    return "{" + members.text() + "}";
}

} // namespace

std::string write_table(const TableFile &table)
{
    std::string text = "{\n  \"$schema\": \"hetcoll_tuning.schema.json\",\n"
                       "  \"rule_file_version\": " +
                       std::to_string(kTableVersion) + ",\n  \"module\": \"hetcoll\",\n";
    if (!table.machines.empty()) {
        text += "  \"machines\": [" + list_text(table.machines, "    ", machine_text) + "],\n";
    }
    return text + "  \"collectives\": {\n    \"allreduce\": [" +
           list_text(table.sets, "      ", set_text) + "]\n  }\n}\n";
}

} // namespace hetcoll
