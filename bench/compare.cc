#include "bench/compare.h"

#include "base/status.h"
#include "measure/command_line.h"
#include "tuning/json_reader.h"

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace hetcoll {

namespace {

struct Measurement {
    // Section of the file, collective, bytes, "in place" or nothing, the algorithm asked for.
    std::tuple<std::string, std::string, std::int64_t, std::string, std::string> call;
    double median_us = 0;
    std::string algorithm; // that ran
};

struct Results {
    std::map<std::string, std::string> facts;
    std::vector<Measurement> measurements;
};

std::string word_of(const JsonNode &object, const char *name)
{
    const JsonNode *const found = find_member(object, name);
    return found != nullptr ? found->string : std::string();
}

// The median of a result, or of its part `in_place`; 0: there is none.
double median_of(const JsonNode &timed)
{
    const JsonNode *const median = find_member(timed, "median_us");
    return median != nullptr && median->real > 0 ? median->real : 0;
}

void add_result(const JsonNode &result, Results &to)
{
    const JsonNode *const bytes = find_member(result, "bytes");
    if (bytes == nullptr) {
        return;
    }
    const auto add = [&](const JsonNode &timed, const char *place) {
        if (const double median = median_of(timed); median > 0) {
            to.measurements.push_back({{word_of(result, "section"), word_of(result, "collective"),
                                        bytes->integer, place, word_of(result, "asked")},
                                       median,
                                       word_of(result, "algorithm")});
        }
    };
    add(result, "");
    if (const JsonNode *const in_place = find_member(result, "in_place"); in_place != nullptr) {
        add(*in_place, "in place");
    }
}

Result<Results> read_results(const std::string &path)
{
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (!file.is_open() || file.bad()) {
        return error(Errc::kInvalid, "%s cannot be read (%s)", path.c_str(),
                     errno != 0 ? std::strerror(errno) : "it is not a file");
    }
    JsonNode json;
    JsonError problem;
    if (!read_json(text, &json, &problem)) {
        return error(Errc::kInvalid, "%s:%d: %s", path.c_str(), problem.line,
                     problem.cause.c_str());
    }
    const JsonNode *const list = find_member(json, "results");
    if (word_of(json, "tool") != "hetcoll_bench" || list == nullptr) {
        return error(Errc::kInvalid,
                     "%s is not a file of hetcoll_bench: write one with hetcoll_bench --json FILE",
                     path.c_str());
    }
    Results results;
    for (std::size_t i = 0; i < json.keys.size(); ++i) {
        if (json.items[i].kind == JsonNode::Kind::kString) {
            results.facts[json.keys[i]] = json.items[i].string;
        }
    }
    for (const JsonNode &result : list->items) {
        add_result(result, results);
    }
    return results;
}

void print_facts(const Results &first, const Results &second)
{
    std::map<std::string, std::string> names = first.facts;
    names.insert(second.facts.begin(), second.facts.end());
    const auto value = [](const Results &of, const std::string &name) {
        const auto found = of.facts.find(name);
        return found != of.facts.end() ? found->second : std::string("-");
    };
    for (const auto &[name, ignored] : names) {
        const std::string before = value(first, name), after = value(second, name);
        if (before != after) {
            std::printf("# %-13s %s\n#   %-11s %s\n", name.c_str(), before.c_str(),
                        "second:", after.c_str());
        }
    }
}

void print_row(const Measurement &before, const Measurement &after)
{
    const auto &[section, collective, bytes, place, asked] = before.call;
    const std::string algorithm = before.algorithm == after.algorithm
                                      ? after.algorithm
                                      : before.algorithm + " -> " + after.algorithm;
    const std::string call =
        collective + (place.empty() ? "" : ", " + place) + (asked.empty() ? "" : ", " + asked);
    std::printf("%-25s %13lld %11.1f %11.1f %7.3f  %s\n", call.c_str(),
                static_cast<long long>(bytes), before.median_us, after.median_us,
                before.median_us / after.median_us, algorithm.c_str());
}

} // namespace

int compare_results(const std::vector<std::string> &words)
{
    CommandLine line("hetcoll_bench compare",
                     "Compares two files of hetcoll_bench --json, call by call.\nThe ratio is the "
                     "first median over the second: above 1 the second file is faster.");
    std::string first_path, second_path;
    line.add_option("FIRST", first_path, "a file that hetcoll_bench has written").required();
    line.add_option("SECOND", second_path, "another one, of the same calls").required();
    int exit_code = 0;
    if (!line.parse(words, exit_code)) {
        return exit_code;
    }
    Result<Results> first = read_results(first_path), second = read_results(second_path);
    for (const Result<Results> *read : {&first, &second}) {
        if (!read->ok()) {
            return line.usage_error(read->status().message());
        }
    }
    std::map<decltype(Measurement::call), const Measurement *> of_second;
    for (const Measurement &measured : second->measurements) {
        of_second[measured.call] = &measured;
    }
    std::vector<std::pair<const Measurement *, const Measurement *>> both;
    for (const Measurement &measured : first->measurements) {
        if (const auto found = of_second.find(measured.call); found != of_second.end()) {
            both.emplace_back(&measured, found->second);
        }
    }
    if (both.empty()) {
        std::fprintf(stderr,
                     "hetcoll_bench compare: %s and %s have no call in common: measure the same "
                     "collectives and sizes\n",
                     first_path.c_str(), second_path.c_str());
        return 1;
    }
    print_facts(*first, *second);
    std::printf("#%-24s %13s %11s %11s %7s  %s\n#%-24s %13s %11s %11s %7s\n", "call", "size",
                "first", "second", "ratio", "algorithm", "", "(B)", "(us)", "(us)", "");
    double logs = 0;
    for (const auto &[before, after] : both) {
        print_row(*before, *after);
        logs += std::log(before->median_us / after->median_us);
    }
    const std::size_t alone =
        first->measurements.size() + second->measurements.size() - 2 * both.size();
    std::printf("# geometric mean of %zu: %.3f\n", both.size(),
                std::exp(logs / static_cast<double>(both.size())));
    if (alone > 0) {
        std::printf("# in one file alone: %zu\n", alone);
    }
    return end_output("hetcoll_bench", 0);
}

} // namespace hetcoll
