// The one function of hetcoll_aggregators.so.
#include "aggregator/client_library.h"
#include "aggregator/names.h"

namespace hetcoll {
namespace {

class Clients final : public AggregatorClients {
public:
    [[nodiscard]] Result<std::unique_ptr<AggregatorClient>>
    start(const AggregatorPlan &plan) override
    {
        AggregatorPlan with_names = plan;
        with_names.names = names_;
        return AggregatorClient::start(with_names);
    }

private:
    const std::shared_ptr<Names> names_ = std::make_shared<Names>();
};

} // namespace
} // namespace hetcoll

hetcoll::AggregatorClients *HETCOLL_AGGREGATOR_CLIENTS()
{
    return std::make_unique<hetcoll::Clients>().release();
}
