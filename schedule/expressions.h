// The content of a block, as a symbol in place of numbers. For replay.cc.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace hetcoll {

// A rank's part, or op(lhs, rhs) of two such expressions. Equal expressions have equal numbers;
// operands have smaller numbers than what is made of them.
using Expression = int;
inline constexpr Expression kUnwritten = -1;

class Expressions {
public:
    // The part of rank r is expression r.
    explicit Expressions(int ranks) : ranks_(ranks) {}

    Expression combine(Expression lhs, Expression rhs)
    {
        const auto [it, is_new] =
            known_.try_emplace(std::pair(lhs, rhs), ranks_ + operands_.size());
        if (is_new) {
            operands_.emplace_back(lhs, rhs);
        }
        return it->second;
    }

    // How often each rank's part is in an expression; 2 stands for any larger number.
    [[nodiscard]] std::vector<int> count_parts(Expression expression) const
    {
        std::vector<int> times(ranks_ + operands_.size(), 0);
        times[expression] = 1;
        for (Expression e = static_cast<Expression>(times.size()) - 1; e >= ranks_; --e) {
            const auto [lhs, rhs] = operands_[e - ranks_];
            times[lhs] = std::min(2, times[lhs] + times[e]);
            times[rhs] = std::min(2, times[rhs] + times[e]);
        }
        times.resize(ranks_);
        return times;
    }

private:
    int ranks_;
    std::vector<std::pair<Expression, Expression>> operands_; // of expression ranks_ + index
    std::map<std::pair<Expression, Expression>, Expression> known_;
};

} // namespace hetcoll
