// One communicator's state: who its ranks are, what they have agreed on, where they meet, and what
// a repeated call would otherwise make again.
#pragma once

#include "engine/communicator/agreed_settings.h"
#include "engine/communicator/departure.h"
#include "engine/communicator/freed.h"
#include "engine/communicator/membership.h"
#include "engine/communicator/named_stream.h"
#include "engine/communicator/open_requests.h"
#include "engine/communicator/page_pins.h"
#include "engine/communicator/planner.h"
#include "engine/communicator/reserved.h"
#include "engine/communicator/same_calls.h"
#include "engine/communicator/story.h"
#include "engine/communicator/watch.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"

#include <memory>
#include <span>

namespace hetcoll {

class Communicator {
public:
    // facts[r] are those of rank r.
    Communicator(Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
                 std::span<const hetcoll_facts> facts);
    ~Communicator();
    Communicator(const Communicator &) = delete;
    Communicator &operator=(const Communicator &) = delete;

    // For what is made for a communicator's calls.
    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const Log &log() const noexcept { return process_.log(); }
    [[nodiscard]] Counters &counters() noexcept { return process_.counters(); }
    [[nodiscard]] Gpus &gpus() noexcept { return process_.gpus(); }
    [[nodiscard]] Planner &planner() noexcept { return planner_; }

    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] const AgreedSettings &agreed() const noexcept { return agreed_; }
    [[nodiscard]] NodeGroup &group() noexcept { return group_; }
    // A communicator runs one operation at a time, so these are the current one's.
    [[nodiscard]] Meeting &meeting() noexcept { return meeting_; }
    [[nodiscard]] Messages &messages() noexcept { return *messages_; }
    // After a network failure: a message may still arrive in them, so they are left to it.
    void abandon_messages() noexcept;

    // The first operation makes the control pages before all else: resumable. If some rank has no
    // memory to begin that is over without them, and the next operation tries again.
    [[nodiscard]] bool is_ready() const noexcept { return same_calls_.is_ready(); }
    [[nodiscard]] Progress make_ready(int tag);

    // This rank's current call, and its function if that is not the family's blocking one.
    void begin_call(const hetcoll_call &call, const char *mpi_name = nullptr) noexcept
    {
        group_.own_call().begin(signature_of(call));
        watch_.begin(mpi_name);
    }
    // This rank is about to make a call that Open MPI serves: the ranks of the node see it. The
    // call's error, if those next to this one have begun another call.
    [[nodiscard]] [[gnu::always_inline]] int hand_on(CallSignature call) noexcept
    {
        return group_.handed_on().tell(call) ? HETCOLL_SUCCESS
                                             : same_calls_.look_at_handed_on(call);
    }
    [[nodiscard]] SameCalls &same_calls() noexcept { return same_calls_; }
    // Says who is missing when the current call waits long.
    [[nodiscard]] Watch &watch() noexcept { return watch_; }
    // Once for every poll while Open MPI serves a call.
    void look_in_open_mpi() noexcept { watch_.look_in_open_mpi(process_.patience()); }
    // After a meeting with a vector: why there is no page, or no room for it.
    void say_page_problem();

    [[nodiscard]] Freed &freed() noexcept { return freed_; }
    // Made by the first call whose GPU copies to the page, because a communicator is light.
    [[nodiscard]] PagePins &page_pins()
    {
        if (page_pins_ == nullptr) {
            page_pins_ = std::make_unique<PagePins>(process_, group_);
        }
        return *page_pins_;
    }
    [[nodiscard]] Membership &membership() noexcept { return membership_; }
    [[nodiscard]] Departure departure() noexcept
    {
        return {gpus(), group_, membership_, requests_, planner_};
    }

    [[nodiscard]] NamedStream &named_stream() noexcept { return named_stream_; }
    // State of queued calls.
    [[nodiscard]] Reserved &reserved() noexcept { return reserved_; }
    [[nodiscard]] bool has_streams() const noexcept { return reserved_.exists(); }

    // The trace's name of it; null: none.
    [[nodiscard]] const char *tag() const noexcept { return tag_; }
    void set_tag(const char *tag) noexcept { tag_ = tag; }
    [[nodiscard]] Story &story() noexcept { return story_; }

private:
    Process &process_;
    OpenRequests requests_;
    const hetcoll_p2p &p2p_; // of requests_
    AgreedSettings agreed_;
    NodeGroup group_;
    OpenPages::Place open_page_;
    Membership membership_{p2p_, group_};
    Freed freed_;
    Watch watch_;
    SameCalls same_calls_{process_.log(), group_};
    Planner planner_{process_, group_, agreed_};
    Reserved reserved_;
    NamedStream named_stream_;
    const char *tag_ = nullptr;
    Story story_;
    Meeting meeting_;
    std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
    std::unique_ptr<PagePins> page_pins_; // null: nothing was to be pinned yet
};

} // namespace hetcoll
