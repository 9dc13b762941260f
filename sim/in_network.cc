#include "sim/in_network.h"

#include "base/slots.h"
#include "price/meeting_time.h"
#include "price/rank.h"

#include <deque>
#include <utility>

namespace hetcoll {
namespace {

// Reduces what its ports bring at the rate of the links: message k goes on when all ports have
// brought it, whatever the other messages do.
class Switch {
public:
    Switch(const SwitchTree &tree, int participant, std::size_t count, std::size_t element_bytes)
        : tree_(tree), steps_(tree, participant), count_(count), element_bytes_(element_bytes)
    {
    }

    void run(Activities &activities)
    {
        activities_ = &activities;
        fill();
        while (!messages_.empty()) {
            end(activities.wait());
            while (!messages_.empty() && messages_.front().left == 0) {
                messages_.pop_front();
                ++first_;
            }
            fill();
        }
    }

private:
    // The steps of one message of one slice: receives, perhaps up and back, sends.
    struct Message {
        int left = 0;          // steps that are not done
        int to_come = 0;       // receives of ports
        std::int64_t next = 0; // the first step after these
    };

    // Opens enough messages that no window of the ranks is ever short of one.
    void fill()
    {
        const int open = 4 * tree_.window * tree_.ranks_per_node;
        while (static_cast<int>(messages_.size()) < open && index_ < steps_.count()) {
            Message message;
            const int number = first_ + static_cast<int>(messages_.size());
            const int block = steps_.at(index_).step.blocks.first;
            bytes_.resize(static_cast<std::size_t>(number) + 1);
            bytes_.back() = static_cast<double>(
                block_span(count_, tree_.block_count(), block).count * element_bytes_);
            if (bytes_.back() == 0) { // as SimRank: nobody sends an empty block
                while (index_ < steps_.count() && steps_.at(index_).step.blocks.first == block) {
                    ++index_;
                }
                bytes_.pop_back();
                continue;
            }
            for (; index_ < steps_.count(); ++index_) {
                const Step step = steps_.at(index_).step;
                if (step.blocks.first != block) {
                    break;
                }
                ++message.left;
                if (step.kind != StepKind::kSend && step.channel == 0) { // from a port
                    ++message.to_come;
                    message.next = index_ + 1;
                    activities_->receive(step.peer, step.channel, token(number, kBrought));
                }
            }
            messages_.push_back(message);
        }
    }

    enum What : std::uint8_t { kBrought, kSentUp, kCameDown, kSentDown };
    [[nodiscard]] static int token(int message, What what) { return message * 4 + what; }

    void end(int ended)
    {
        const int number = ended / 4;
        Message &message = messages_[static_cast<std::size_t>(number - first_)];
        --message.left;
        if (ended % 4 == kBrought && --message.to_come == 0) {
            const Step step = steps_.at(message.next).step;
            if (step.channel == 0 && step.kind == StepKind::kSend) { // up
                const int above = step.peer;
                activities_->send(above, 0, bytes_[static_cast<std::size_t>(number)],
                                  token(number, kSentUp));
                activities_->receive(above, 1, token(number, kCameDown));
                message.next += 2;
            } else {
                send_down(number, message);
            }
        } else if (ended % 4 == kCameDown) {
            send_down(number, message);
        }
    }

    void send_down(int number, const Message &message)
    {
        const int block = steps_.at(message.next).step.blocks.first;
        for (std::int64_t i = message.next; i < steps_.count(); ++i) {
            const Step step = steps_.at(i).step;
            if (step.blocks.first != block) {
                break;
            }
            activities_->send(step.peer, step.channel, bytes_[static_cast<std::size_t>(number)],
                              token(number, kSentDown));
        }
    }

    const SwitchTree &tree_;
    SwitchSteps steps_;
    std::size_t count_, element_bytes_;
    Activities *activities_ = nullptr;
    std::int64_t index_ = 0; // the first step that no message has
    int first_ = 0;          // number of the first open message
    std::deque<Message> messages_;
    std::vector<double> bytes_; // by message
};

} // namespace

Result<SwitchTree> switch_tree(const Cluster &cluster, const Ranks &ranks, std::size_t bytes,
                               const InNetworkOptions &options)
{
    const Query &query = ranks.query;
    if (query.nodes < 2 || query.ranks_per_node_min != query.ranks_per_node_max) {
        return error(
            Errc::kUnsupported,
            "in_network needs several nodes with as many GPUs each: %d nodes have %d to %d",
            query.nodes, query.ranks_per_node_min, query.ranks_per_node_max);
    }
    const std::size_t slot = slot_bytes_of(kBounceSlots * kLargestChunkBytes, slots_for(2));
    if (options.message_bytes == 0 || options.message_bytes > slot) {
        return error(Errc::kInvalid, "messages of %zu bytes: take 1 to %zu, a slot of a bounce",
                     options.message_bytes, slot);
    }
    SwitchTree tree;
    tree.ranks_per_node = query.ranks_per_node_max;
    tree.leaf_count = cluster.rack_count();
    tree.messages = message_count(bytes / static_cast<std::size_t>(tree.ranks_per_node) + 4,
                                  options.message_bytes);
    tree.window = options.window;
    for (int node = 0; node < query.nodes; ++node) {
        tree.leaf_of.push_back(cluster.rack_of(node));
    }
    return tree;
}

Result<SimResult> simulate_in_network(const Cluster &cluster, const Ranks &ranks,
                                      const SimCall &call, const InNetworkOptions &options)
{
    Result<SwitchTree> tree = switch_tree(cluster, ranks, call.bytes, options);
    if (!tree.ok()) {
        return tree.take_status();
    }
    Result<Platform> machine = build_platform(cluster, {.path = call.path, .switches = true});
    if (!machine.ok()) {
        return machine.take_status();
    }
    const std::size_t count = call.bytes / call.element_bytes;
    const double meeting = call.meetings ? meeting_us(cluster, ranks) : 0;
    std::vector<SimActor> actors;
    for (int participant = 0; participant < tree->participants(); ++participant) {
        const bool is_rank = participant < tree->ranks();
        const std::vector<int> &hosts = is_rank ? machine->host_of : machine->switch_of;
        const auto host = static_cast<std::size_t>(participant - (is_rank ? 0 : tree->ranks()));
        actors.push_back(
            {hosts[host], [&, participant, is_rank](Activities &activities) {
                 if (!is_rank) {
                     activities.sleep_us(meeting);
                     Switch(*tree, participant, count, call.element_bytes).run(activities);
                     return;
                 }
                 activities.sleep_us(meeting);
                 SimRankPlan plan;
                 plan.feed = feed_schedule(build_in_network(*tree, participant));
                 plan.count = count;
                 plan.element_bytes = call.element_bytes;
                 plan.chunk_bytes = kLargestChunkBytes;
                 plan.last_channel = plan.feed->channel_count();
                 plan.is_mapped = [&, participant](int peer) {
                     return peer < tree->ranks() &&
                            ranks.node_of[static_cast<std::size_t>(peer)] ==
                                ranks.node_of[static_cast<std::size_t>(participant)];
                 };
                 plan.actor_of = [](int peer) { return peer; };
                 run_to_end(SimRank(std::move(plan)), activities);
                 activities.sleep_us(meeting);
             }});
    }
    Result<ChildOutcome> run = run_in_child(*machine, actors, call.most_s);
    if (!run.ok()) {
        return run.take_status();
    }
    SimResult result{};
    result.us = run->outcome.us;
    result.transfers = run->outcome.transfers;
    result.cost = run->cost;
    result.choice.chunk_bytes = options.message_bytes;
    return result;
}

} // namespace hetcoll
