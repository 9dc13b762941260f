#include "test/unit/engine_scripted_aggregator.h"

namespace hetcoll::test {
namespace {

ScriptedAggregator *running = nullptr;

class ScriptedClient final : public AggregatorClient {
public:
    explicit ScriptedClient(ScriptedAggregator &aggregator)
        : aggregator_(aggregator), table_(aggregator.messages.table())
    {
        ++aggregator_.clients;
    }
    ~ScriptedClient() override { --aggregator_.clients; }

    AggregatorState step() override
    {
        if (aggregator_.fails || aggregator_.messages.has_failed()) {
            return AggregatorState::kFailed;
        }
        return aggregator_.joining_steps-- > 0 ? AggregatorState::kJoining
                                               : AggregatorState::kJoined;
    }
    [[nodiscard]] const Status &status() const noexcept override { return why_; }
    void begin(ReduceOp op, ElementKind kind, std::size_t count) override
    {
        aggregator_.begun.push_back({op, kind, count});
    }
    [[nodiscard]] const hetcoll_p2p &table() const noexcept override { return table_; }
    [[nodiscard]] int window() const noexcept override { return 4; }
    [[nodiscard]] AggregatorTraffic traffic() const noexcept override { return {}; }
    void wait(int /*milliseconds*/) override {}

private:
    ScriptedAggregator &aggregator_;
    hetcoll_p2p table_;
    const Status why_ = error(Errc::kUnsupported, "the script has ended the connection");
};

} // namespace

ScriptedAggregator::ScriptedAggregator() { running = this; }
ScriptedAggregator::~ScriptedAggregator() { running = nullptr; }

// What calls of AggregatorClient::start() are linked to, and what they were: -Wl,--wrap of its
// name.
#define HETCOLL_TEST_START "_ZN7hetcoll16AggregatorClient5startERKNS_14AggregatorPlanE"
Result<std::unique_ptr<AggregatorClient>>
start_scripted(const AggregatorPlan &plan) asm("__wrap_" HETCOLL_TEST_START);
Result<std::unique_ptr<AggregatorClient>>
start_real(const AggregatorPlan &plan) asm("__real_" HETCOLL_TEST_START);

Result<std::unique_ptr<AggregatorClient>> start_scripted(const AggregatorPlan &plan)
{
    if (running == nullptr) {
        return start_real(plan);
    }
    running->plans.push_back(plan);
    if (running->refuses) {
        return error(Errc::kUnsupported, "the script lets nobody connect");
    }
    return std::unique_ptr<AggregatorClient>(std::make_unique<ScriptedClient>(*running));
}

} // namespace hetcoll::test
