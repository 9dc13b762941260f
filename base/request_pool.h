// The requests of a table of message functions (base/p2p.h), used again and again: a steady call
// allocates none.
#pragma once

#include <memory>
#include <vector>

namespace hetcoll {

template <class Request> class RequestPool {
public:
    // A request in its initial state; it belongs to the caller until given back.
    [[nodiscard]] Request *take()
    {
        if (idle_.empty()) {
            requests_.push_back(std::make_unique<Request>());
            idle_.push_back(requests_.back().get());
        }
        Request *const request = idle_.back();
        idle_.pop_back();
        *request = {};
        return request;
    }
    void give_back(Request *request) { idle_.push_back(request); }

    // Both those in use and those that are free.
    [[nodiscard]] const std::vector<std::unique_ptr<Request>> &all() const noexcept
    {
        return requests_;
    }

private:
    std::vector<std::unique_ptr<Request>> requests_;
    std::vector<Request *> idle_;
};

} // namespace hetcoll
