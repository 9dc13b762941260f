#include "schedule/replay_results.h"

#include "schedule/print.h"

#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kNone = -1;

class ResultCheck {
public:
    ResultCheck(std::span<const Schedule> schedules, const Contract &contract,
                Expressions &expressions, std::span<const RankResult> results)
        : schedules_(schedules), contract_(contract), expressions_(expressions), results_(results)
    {
    }

    Status check_block(int block);

private:
    // The participants that are not switches.
    [[nodiscard]] int rank_count() const
    {
        return contract_.ranks > 0 ? contract_.ranks : static_cast<int>(results_.size());
    }
    // A part that no step has written is the rank's first one.
    [[nodiscard]] Expression at_end(int rank, int block) const
    {
        const Expression written = results_[rank].expression[block];
        return written == kUnwritten ? rank : written;
    }
    [[nodiscard]] std::string name_block(int rank, int block) const;
    [[nodiscard]] bool holds(Holders holders, int rank, int block) const;
    [[nodiscard]] bool stays_right(int rank, int block) const;
    Status check_parts(int rank, int block) const;
    Status check_order(int rank, int block);

    std::span<const Schedule> schedules_;
    const Contract &contract_;
    Expressions &expressions_;
    std::span<const RankResult> results_;
};

std::string ResultCheck::name_block(int rank, int block) const
{
    const int writer = results_[rank].writer[block];
    return "rank " + std::to_string(rank) + ", block " + std::to_string(block) +
           ", last written by step " + std::to_string(writer) + " (" +
           describe(schedules_[rank].steps[writer]) + ")";
}

bool ResultCheck::holds(Holders holders, int rank, int block) const
{
    const int ranks = rank_count();
    if (rank >= ranks) {
        return false;
    }
    switch (holders) {
    case Holders::kEveryRank: return true;
    case Holders::kOwner: return block / (schedules_[0].block_count / ranks) == rank;
    case Holders::kRoot: return rank == contract_.root;
    }
    return false;
}

// Whether what the rank holds at first is the sum already: nobody else has a part of it.
bool ResultCheck::stays_right(int rank, int block) const
{
    const bool alone = contract_.first != Holders::kEveryRank || rank_count() == 1;
    return alone && holds(contract_.first, rank, block);
}

Status ResultCheck::check_parts(int rank, int block) const
{
    const std::vector<int> times = expressions_.count_parts(at_end(rank, block));
    for (int part = 0; part < static_cast<int>(times.size()); ++part) {
        const bool belongs = holds(contract_.first, part, block);
        if (times[part] != (belongs ? 1 : 0)) {
            return error(Errc::kInvalid, "%s: the part of rank %d is in it%s",
                         name_block(rank, block).c_str(), part,
                         !belongs           ? ", which has none at first"
                         : times[part] == 0 ? " not at all"
                                            : " more than once");
        }
    }
    return Status();
}

Status ResultCheck::check_order(int rank, int block)
{
    Expression fold = kUnwritten;
    for (int part = 0; part < static_cast<int>(results_.size()); ++part) {
        if (holds(contract_.first, part, block)) {
            fold = fold == kUnwritten ? part : expressions_.combine(fold, part);
        }
    }
    if (at_end(rank, block) != fold) {
        return error(Errc::kInvalid, "%s: not the left fold of the parts in rank order",
                     name_block(rank, block).c_str());
    }
    return Status();
}

// Every rank that is to hold the block at the end has the sum, by the same expression.
Status ResultCheck::check_block(int block)
{
    int first = kNone;
    for (int rank = 0; rank < static_cast<int>(results_.size()); ++rank) {
        if (!holds(contract_.last, rank, block)) {
            continue;
        }
        const bool written = results_[rank].expression[block] != kUnwritten;
        if (!written && !stays_right(rank, block)) {
            return error(Errc::kInvalid, "rank %d never writes block %d: %s", rank, block,
                         holds(contract_.first, rank, block) ? "its result stays in the input"
                                                             : "it has none at first");
        }
        const bool known = first != kNone && at_end(rank, block) == at_end(first, block);
        if (written && !known) {
            if (Status status = check_parts(rank, block); !status.ok()) {
                return status;
            }
        }
        if (first == kNone) {
            first = rank;
        } else if (!known) {
            return error(Errc::kInvalid,
                         "%s: computed by another expression than on rank %d, so the bits may "
                         "differ",
                         name_block(rank, block).c_str(), first);
        }
    }
    return contract_.in_rank_order && first != kNone ? check_order(first, block) : Status();
}

} // namespace

Status check_results(std::span<const Schedule> schedules, const Contract &contract,
                     Expressions &expressions, std::span<const RankResult> results)
{
    ResultCheck check(schedules, contract, expressions, results);
    for (int block = 0; !schedules.empty() && block < schedules[0].block_count; ++block) {
        if (Status status = check.check_block(block); !status.ok()) {
            return status;
        }
    }
    return Status();
}

} // namespace hetcoll
