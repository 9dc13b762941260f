#include "tuning/measurements.h"

#include "machine/query.h"
#include "plan/way.h"

#include <charconv>
#include <cstdio>

namespace hetcoll {
namespace {

constexpr const char *kColumns =
    "columns algorithm between_nodes ranks nodes ranks_per_node_min ranks_per_node_max "
    "ranks_per_gpu element_bytes op memory bytes chunk_bytes min_us median_us p90_us job\n";
constexpr std::size_t kFields = 15;            // and the job, which older files have not
constexpr std::int64_t kMaxUs = 1'000'000'000; // a call of a quarter of an hour is none

std::vector<std::string_view> words_of(std::string_view line)
{
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words;
    while (true) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) {
            return words;
        }
        const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        line.remove_prefix(end);
    }
}

template <class Number> bool read_whole(std::string_view word, Number *value)
{
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), *value);
    return code == std::errc() && end == word.data() + word.size() && *value >= 0;
}

// "12", "12.3", "12.345": digits after the third are cut off.
bool read_us(std::string_view word, std::int64_t *ns)
{
    const std::size_t point = std::min(word.find('.'), word.size());
    std::int64_t whole = 0;
    if (!read_whole(word.substr(0, point), &whole) || whole > kMaxUs) {
        return false;
    }
    std::int64_t fraction = 0;
    for (std::size_t i = 1; i <= 3; ++i) {
        const std::size_t at = point + i;
        fraction = fraction * 10 + (at < word.size() ? word[at] - '0' : 0);
    }
    *ns = whole * 1000 + fraction;
    const std::string_view digits = point < word.size() ? word.substr(point + 1) : "0";
    return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

bool read_algorithm(std::string_view word, Algorithm *algorithm)
{
    const std::optional<Algorithm> found = find_algorithm(word);
    if (found) {
        *algorithm = *found;
    }
    return found.has_value();
}

// Empty, or what is wrong.
std::string read_sample(const std::vector<std::string_view> &words, Sample *sample)
{
    if (words.size() != kFields && words.size() != kFields + 1) {
        return std::to_string(words.size()) + " words, not " + std::to_string(kFields) + " or " +
               std::to_string(kFields + 1);
    }
    const auto wrong = [&](std::size_t i, const char *what) {
        return "'" + std::string(words[i].substr(0, 40)) + "' is no " + what;
    };
    Setup &setup = sample->setup;
    if (!read_algorithm(words[0], &sample->variant.algorithm)) {
        return wrong(0, "algorithm");
    }
    if (words[1] != "-") {
        sample->variant.between_nodes.emplace();
        if (!read_algorithm(words[1], &*sample->variant.between_nodes) ||
            !contains(kBetweenNodesAlgorithms, *sample->variant.between_nodes)) {
            return wrong(1, "algorithm between nodes");
        }
    }
    int *const counts[] = {&setup.ranks, &setup.nodes, &setup.ranks_per_node_min,
                           &setup.ranks_per_node_max, &setup.ranks_per_gpu};
    for (std::size_t i = 0; i < std::size(counts); ++i) {
        if (!read_whole(words[2 + i], counts[i]) || *counts[i] == 0) {
            return wrong(2 + i, "number of ranks or nodes");
        }
    }
    if (!read_whole(words[7], &setup.element_bytes) || setup.element_bytes == 0) {
        return wrong(7, "size of an element");
    }
    if (words[8] != "sum" && words[8] != "other") {
        return wrong(8, "class of ops");
    }
    setup.op = words[8] == "sum" ? OpClass::kSum : OpClass::kOther;
    if (words[9] != "device" && words[9] != "mixed") {
        return wrong(9, "kind of memory");
    }
    setup.memory = words[9] == "device" ? CallMemory::kDevice : CallMemory::kMixed;
    if (!read_whole(words[10], &sample->bytes)) {
        return wrong(10, "size");
    }
    if (!read_whole(words[11], &sample->variant.chunk_bytes) ||
        sample->variant.chunk_bytes % 16 != 0 ||
        sample->variant.chunk_bytes > static_cast<std::int64_t>(kLargestChunkBytes)) {
        return wrong(11, "chunk");
    }
    std::int64_t *const times[] = {&sample->min_ns, &sample->median_ns, &sample->p90_ns};
    for (std::size_t i = 0; i < std::size(times); ++i) {
        if (!read_us(words[12 + i], times[i])) {
            return wrong(12 + i, "time");
        }
    }
    if (sample->min_ns == 0 || sample->min_ns > sample->median_ns ||
        sample->median_ns > sample->p90_ns) {
        return "minimum, median and 90th percentile are not in order, or zero";
    }
    if (words.size() > kFields && !read_whole(words[kFields], &sample->job)) {
        return wrong(kFields, "number of a job");
    }
    return {};
}

std::string us_text(std::int64_t ns)
{
    char text[32];
    std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    return text;
}

class Parser {
public:
    explicit Parser(Measurements &into) : into_(into) {}

    // Empty, or what is wrong.
    std::string line(std::string_view text)
    {
        const std::vector<std::string_view> words = words_of(text);
        if (words.empty() || words[0] == "columns") {
            return {};
        }
        if (!begun_) {
            begun_ = words.size() == 3 && words[0] == "hetcoll" && words[1] == "measurements" &&
                     words[2] == "1";
            return begun_ ? "" : "it does not begin with 'hetcoll measurements 1'";
        }
        if (words[0] == "machine") {
            const bool good = words.size() == 2 && into_.machine.empty();
            into_.machine = good ? words[1] : "";
            return good ? "" : "'machine' takes one name, once";
        }
        if (words[0] == "fact") {
            return fact(words);
        }
        if (words[0] == "cpu") {
            return cpu(words);
        }
        Sample sample;
        std::string wrong = read_sample(words, &sample);
        if (wrong.empty()) {
            into_.samples.push_back(sample);
        }
        return wrong;
    }

private:
    std::string cpu(const std::vector<std::string_view> &words)
    {
        CpuSample sample;
        const bool good = words.size() == 5 && (words[1] == "read" || words[1] == "write") &&
                          read_whole(words[2], &sample.bytes) &&
                          read_us(words[3], &sample.cpu_ns) && read_us(words[4], &sample.copy_ns);
        sample.writes = good && words[1] == "write";
        if (good) {
            into_.cpu.push_back(sample);
        }
        return good ? "" : "'cpu' takes 'read' or 'write', a size and two times";
    }

    std::string fact(const std::vector<std::string_view> &words)
    {
        if (words.size() < 3) {
            return "'fact' takes a key and a value";
        }
        std::string value(words[2]);
        for (std::size_t i = 3; i < words.size(); ++i) {
            value += ' ';
            value += words[i];
        }
        const bool fresh =
            into_.fingerprint.facts.emplace(std::string(words[1]), std::move(value)).second;
        return fresh ? "" : "fact '" + std::string(words[1]) + "' is there twice";
    }

    Measurements &into_;
    bool begun_ = false;
};

} // namespace

std::string variant_name(const Variant &variant)
{
    return algorithm_name(variant.algorithm) +
           (variant.chunk_bytes == 0 ? "" : "/" + std::to_string(variant.chunk_bytes));
}

Result<Measurements> parse_measurements(std::string_view text, const std::string &path)
{
    Measurements measurements;
    measurements.path = path;
    Parser parser(measurements);
    int line = 0;
    const auto fault = [&](const std::string &cause) {
        return error(Errc::kInvalid, "%s:%d: %s; measure again with hetcoll_tune", path.c_str(),
                     line, cause.c_str());
    };
    while (!text.empty()) {
        ++line;
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string cause = parser.line(text.substr(0, end));
        if (!cause.empty()) {
            return fault(cause);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (measurements.machine.empty()) {
        return fault("it names no machine");
    }
    return measurements;
}

std::string write_sample(const Sample &sample)
{
    const Setup &setup = sample.setup;
    std::string text = algorithm_name(sample.variant.algorithm);
    const auto add = [&](const std::string &word) { text += " " + word; };
    add(sample.variant.between_nodes ? algorithm_name(*sample.variant.between_nodes) : "-");
    for (const int count : {setup.ranks, setup.nodes, setup.ranks_per_node_min,
                            setup.ranks_per_node_max, setup.ranks_per_gpu}) {
        add(std::to_string(count));
    }
    add(std::to_string(setup.element_bytes));
    add(setup.op == OpClass::kSum ? "sum" : "other");
    add(setup.memory == CallMemory::kDevice ? "device" : "mixed");
    add(std::to_string(sample.bytes));
    add(std::to_string(sample.variant.chunk_bytes));
    for (const std::int64_t ns : {sample.min_ns, sample.median_ns, sample.p90_ns}) {
        add(us_text(ns));
    }
    add(std::to_string(sample.job));
    return text + "\n";
}

std::string write_measurements(const Measurements &measurements)
{
    std::string text = "hetcoll measurements 1\nmachine " + measurements.machine + "\n";
    for (const auto &[key, value] : measurements.fingerprint.facts) {
        text += "fact " + key + " " + value + "\n";
    }
    for (const CpuSample &sample : measurements.cpu) {
        text += std::string("cpu ") + (sample.writes ? "write " : "read ") +
                std::to_string(sample.bytes) + " " + us_text(sample.cpu_ns) + " " +
                us_text(sample.copy_ns) + "\n";
    }
    text += kColumns;
    for (const Sample &sample : measurements.samples) {
        text += write_sample(sample);
    }
    return text;
}

} // namespace hetcoll
