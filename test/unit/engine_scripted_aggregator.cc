#include "test/unit/engine_scripted_aggregator.h"

#include "aggregator/client_library.h"

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

// Connects to the script, or to a real aggregator as the file would that the component loads.
class Clients final : public AggregatorClients {
public:
    [[nodiscard]] Result<std::unique_ptr<AggregatorClient>>
    start(const AggregatorPlan &plan) override
    {
        if (running == nullptr) {
            return real_->start(plan);
        }
        running->plans.push_back(plan);
        if (running->refuses) {
            return error(Errc::kUnsupported, "the script lets nobody connect");
        }
        return std::unique_ptr<AggregatorClient>(std::make_unique<ScriptedClient>(*running));
    }

private:
    const std::unique_ptr<AggregatorClients> real_{HETCOLL_AGGREGATOR_CLIENTS()};
};

} // namespace

ScriptedAggregator::ScriptedAggregator() { running = this; }
ScriptedAggregator::~ScriptedAggregator() { running = nullptr; }

// Replaces load_aggregator_clients(), by -Wl,--wrap of its name.
Result<std::unique_ptr<AggregatorClients>>
load_scripted() asm("__wrap__ZN7hetcoll23load_aggregator_clientsEv");

Result<std::unique_ptr<AggregatorClients>> load_scripted()
{
    return std::unique_ptr<AggregatorClients>(std::make_unique<Clients>());
}

} // namespace hetcoll::test
