#include "tools/tune_line.h"

#include "tuning/measurements.h"

#include <algorithm>
#include <cmath>

namespace hetcoll {

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
        .variant = {.algorithm = find_algorithm(algorithm).value_or(Algorithm::kRing),
                    .chunk_bytes = static_cast<std::int64_t>(chunk_bytes)},
        .bytes = static_cast<std::int64_t>(bytes),
        .min_ns = ns(min_us),
        .median_ns = ns(median_us),
        .p90_ns = ns(p90_us),
    };
    return write_sample(sample);
}

} // namespace hetcoll
