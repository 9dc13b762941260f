// The first driver error of a rank in a call. From then on the rank only serves its peers, so that
// none of them hangs: it starts no copy and no kernel, and takes those that it has started for
// over. Their content is lost, its messages are not.
#pragma once

#include "base/status.h"

#include <utility>

namespace hetcoll {

class FirstError {
public:
    // `failed`: the rank has failed already, for another reason.
    void start(bool failed) noexcept
    {
        failed_ = failed;
        error_ = {};
    }
    void join(bool failed) noexcept { failed_ = failed_ || failed; }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    void note(Status status) noexcept
    {
        if (!status.ok() && !failed_) {
            failed_ = true;
            error_ = std::move(status);
        }
    }
    // Whether a copy or a kernel is over, as `done` says.
    template <class Done> [[nodiscard]] bool is_over(const Done &done)
    {
        if (failed_) {
            return true;
        }
        Result<bool> over = done();
        if (!over.ok()) {
            note(over.take_status());
            return true;
        }
        return *over;
    }
    // Once.
    [[nodiscard]] Status take() noexcept { return std::move(error_); }

private:
    bool failed_ = false;
    Status error_;
};

} // namespace hetcoll
