// The addresses of aggregators' hosts. A name is looked up in a thread of its own, so that a name
// service that is slow holds up only those that need its answer.
#pragma once

#include "aggregator/socket.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {

// Any thread. One for all wires of a process: a name is looked up once, however many connect.
class Names {
public:
    class LookUp {
    public:
        [[nodiscard]] bool is_over() const noexcept
        {
            return over_.load(std::memory_order_acquire);
        }
        // Requires is_over().
        [[nodiscard]] const Result<std::vector<Address>> &answer() const noexcept
        {
            return answer_;
        }
        // Once.
        void end(Result<std::vector<Address>> answer) noexcept
        {
            answer_ = std::move(answer);
            over_.store(true, std::memory_order_release);
        }

    private:
        Result<std::vector<Address>> answer_ = std::vector<Address>();
        std::atomic<bool> over_{false};
    };

    // Does not wait. Shares a look-up that has not ended, or that has found addresses.
    [[nodiscard]] std::shared_ptr<const LookUp> ask(const Endpoint &endpoint);
    // No aggregator answered there: the next one to ask has the name looked up again.
    void forget(const Endpoint &endpoint);

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<LookUp>> known_; // by the endpoint's text
};

} // namespace hetcoll
