#include "schedule/shares.h"

#include <algorithm>
#include <numeric>

namespace hetcoll {
namespace {

// Less than this of a vector is a rounding error of T.
constexpr double kLeastWeight = 1e-9;

} // namespace

double weighted_time(int ranks, double sum_of_rates, double least_rate) noexcept
{
    return std::max(2.0 * (ranks - 1) / sum_of_rates, 1 / least_rate);
}

std::vector<int> shares_of_rates(std::span<const double> rates)
{
    const int ranks = static_cast<int>(rates.size());
    double sum = 0;
    for (const double rate : rates) {
        sum += rate;
    }
    const double time =
        ranks > 1 ? weighted_time(ranks, sum, *std::min_element(rates.begin(), rates.end())) : 0;
    std::vector<double> weights;
    for (const double rate : rates) {
        const double weight = time * rate - 1;
        weights.push_back(weight < kLeastWeight ? 0 : weight);
    }
    // One rank, or two equal ones, get no weight, and equal shares.
    if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; })) {
        return std::vector<int>(rates.size(), 1);
    }
    return shares_of_weights(weights);
}

std::vector<int> shares_of_weights(std::span<const double> weights)
{
    const double most = *std::max_element(weights.begin(), weights.end());
    std::vector<int> shares(weights.size());
    if (std::all_of(weights.begin(), weights.end(),
                    [=](double weight) { return weight == 0 || weight == most; })) {
        std::transform(weights.begin(), weights.end(), shares.begin(),
                       [](double weight) { return weight == 0 ? 0 : 1; });
        return shares;
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> rest(weights.size());
    int left = kShareParts;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double ideal = weights[i] / sum * kShareParts;
        shares[i] = static_cast<int>(ideal);
        rest[i] = ideal - shares[i];
        left -= shares[i];
    }
    for (; left > 0; --left) {
        const auto next = std::max_element(rest.begin(), rest.end());
        ++shares[static_cast<std::size_t>(next - rest.begin())];
        *next = -1;
    }
    const int divisor = std::accumulate(shares.begin(), shares.end(), 0,
                                        [](int a, int b) { return std::gcd(a, b); });
    for (int &share : shares) {
        share /= divisor;
    }
    return shares;
}

} // namespace hetcoll
