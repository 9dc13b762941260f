#include "aggregator/names.h"

#include "base/library.h"

#include <csignal>
#include <new>
#include <system_error>
#include <thread>

namespace hetcoll {
namespace {

void look_up_now(Names::LookUp &to, const Endpoint &endpoint) noexcept
{
    try {
        to.end(look_up(endpoint));
    } catch (const std::bad_alloc &) {
        to.end(Status::out_of_memory());
    }
}

// The thread lasts as long as the name service takes, which may be longer than whoever asked is
// there, so it owns what it needs. The application's signals are not for it.
void start(const std::shared_ptr<Names::LookUp> &look_up, const Endpoint &endpoint)
{
    keep_loaded(reinterpret_cast<void *>(&look_up_now));
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); // cannot fail with these arguments
    try {
        std::thread([look_up, endpoint] { look_up_now(*look_up, endpoint); }).detach();
    } catch (const std::system_error &problem) {
        look_up->end(error(Errc::kNoMemory, "there is no thread to look up its host in (%s)",
                           problem.code().message().c_str()));
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace

std::shared_ptr<const Names::LookUp> Names::ask(const Endpoint &endpoint)
{
    const std::lock_guard lock(mutex_);
    std::shared_ptr<LookUp> &known = known_[endpoint.text()];
    if (known == nullptr || (known->is_over() && !known->answer().ok())) {
        known = std::make_shared<LookUp>();
        if (auto numeric = look_up(endpoint, HostKind::kNumeric); numeric.ok()) {
            known->end(std::move(numeric));
        } else {
            start(known, endpoint);
        }
    }
    return known;
}

void Names::forget(const Endpoint &endpoint)
{
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(endpoint.text());
    if (found != known_.end() && found->second->is_over()) {
        known_.erase(found);
    }
}

} // namespace hetcoll
