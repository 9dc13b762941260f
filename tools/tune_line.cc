#include "tools/tune_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hetcoll {

void tell(const char *kind, const std::string &text)
{
    std::printf("@%s%s;\n", kind, text.c_str());
    std::fflush(stdout);
}

std::vector<std::string> messages_in(const std::string &line)
{
    std::vector<std::string> messages;
    for (std::size_t at = line.find('@'); at != std::string::npos; at = line.find('@', at + 1)) {
        const std::size_t end = line.find(';', at);
        if (end != std::string::npos) {
            messages.push_back(line.substr(at + 1, end - at - 1));
        }
    }
    return messages;
}

std::optional<Sample> sample_in(const std::string &line)
{
    const auto parsed =
        parse_measurements("hetcoll measurements 1\nmachine any\n" + line + "\n", "a job's output");
    return parsed.ok() && parsed->samples.size() == 1 ? std::optional(parsed->samples[0])
                                                      : std::nullopt;
}

std::string sample_line(const JobShape &shape, const std::string &algorithm,
                        std::size_t chunk_bytes, std::size_t bytes, double min_us, double median_us,
                        double p90_us)
{
    const auto ns = [](double us) { return std::max<std::int64_t>(std::llround(us * 1e3), 1); };
    const Sample sample{
        .setup = {.ranks = shape.ranks,
                  .nodes = shape.nodes,
                  .ranks_per_node_min = shape.ranks_per_node_min,
                  .ranks_per_node_max = shape.ranks_per_node_max,
                  .ranks_per_gpu = shape.ranks_per_gpu},
        .variant = {.algorithm = find_algorithm(algorithm).value_or(Algorithm{}),
                    .chunk_bytes = static_cast<std::int64_t>(chunk_bytes)},
        .bytes = static_cast<std::int64_t>(bytes),
        .min_ns = ns(min_us),
        .median_ns = ns(median_us),
        .p90_ns = ns(p90_us),
    };
    std::string line = write_sample(sample);
    line.pop_back();
    return line;
}

} // namespace hetcoll
