// One communicator's state: who its ranks are, the settings that they agreed on, and what a
// repeated call would otherwise make again.
#pragma once

#include "engine/communicator/aggregation.h"
#include "engine/communicator/chooser.h"
#include "engine/communicator/executor.h"
#include "engine/communicator/freed.h"
#include "engine/communicator/mapped_call.h"
#include "engine/communicator/membership.h"
#include "engine/communicator/named_stream.h"
#include "engine/communicator/open_requests.h"
#include "engine/communicator/peers.h"
#include "engine/communicator/reserved.h"
#include "engine/communicator/schedules.h"
#include "engine/communicator/story.h"
#include "engine/communicator/watch.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

    [[nodiscard]] Process &process() noexcept { return process_; }
    [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return p2p_; }
    [[nodiscard]] std::size_t small_limit() const noexcept { return agreed_.small_limit; }
    [[nodiscard]] NodeGroup &group() noexcept { return group_; }
    [[nodiscard]] Peers &peers() noexcept { return peers_; }
    // Made by the first call that plans with it.
    [[nodiscard]] MappedCall &mapped()
    {
        if (mapped_ == nullptr) {
            mapped_ = std::make_unique<MappedCall>(process_, group_, peers_);
        }
        return *mapped_;
    }
    [[nodiscard]] Freed &freed() noexcept { return freed_; }
    [[nodiscard]] Aggregation &aggregation() noexcept { return aggregation_; }
    // Says who is missing when the current call waits long.
    [[nodiscard]] Watch &watch() noexcept { return watch_; }
    [[nodiscard]] Chooser &chooser() noexcept { return chooser_; }
    [[nodiscard]] Schedules &schedules() noexcept { return schedules_; }
    // What the trace calls it; null: nothing.
    [[nodiscard]] const char *tag() const noexcept { return tag_; }
    void set_tag(const char *tag) noexcept { tag_ = tag; }
    [[nodiscard]] NamedStream &named_stream() noexcept { return named_stream_; }
    // Of queued calls.
    [[nodiscard]] Reserved &reserved() noexcept { return reserved_; }
    [[nodiscard]] bool has_streams() const noexcept { return reserved_.exists(); }
    [[nodiscard]] Story &story() noexcept { return story_; }

    // The first operation makes the control pages before all else: resumable. If some rank has no
    // memory to begin that is over without them, and the next operation tries again.
    [[nodiscard]] bool is_ready() const noexcept { return ready_; }
    [[nodiscard]] Progress make_ready(int tag);

    // What this rank calls now, and by which function if it is not the family's blocking one.
    void begin_call(const hetcoll_call &call, const char *mpi_name = nullptr) noexcept
    {
        group_.begin_call(signature_of(call));
        watch_.begin(mpi_name);
    }

    // A small call whose buffers are surely host memory on this rank, served without looking any
    // further: programs make thousands of these a second and must not feel hetcoll. The other ranks
    // may have device memory. Nothing if the call is not of this kind.
    [[nodiscard]] std::optional<int> try_host(const hetcoll_call &call) noexcept;

    // How the call's elements are combined: sums of half and bfloat16 as kSumOnce, unless
    // coll_hetcoll_accumulate has it otherwise or the order of the ranks is kept; those of 8-bit
    // floats always.
    [[nodiscard]] ReduceOp op_of(const hetcoll_call &call) const noexcept;

    // Whether the call sums floats as integers: coll_hetcoll_fixed_point, in so many bits.
    [[nodiscard]] bool uses_fixed_point(const hetcoll_call &call) const noexcept;
    [[nodiscard]] int fixed_point_bits() const noexcept
    {
        return static_cast<int>(agreed_.fixed_point);
    }
    // After a peer's memory could not be mapped on some rank, which has said so: that is also why a
    // forced algorithm cannot run.
    void give_up_mapping() noexcept
    {
        peers_.give_up_mapping();
        chooser_.expect_no_mapping();
    }
    // A small call's flags said that all ranks have device memory: the next one looks whether its
    // GPUs reach each other. The same on every rank.
    void note_small_device_call() noexcept { small_device_call_ = true; }
    [[nodiscard]] bool should_find_peers() const noexcept
    {
        return small_device_call_ && !peers_.known() && group_.uses_pages();
    }

    // This rank is about to make a call that Open MPI serves: the ranks of the node see it. An
    // error if one of the two beside this one has begun another call in its place. Then messages of
    // some ranks may be under way that nobody takes, so no further call goes to Open MPI.
    [[nodiscard]] [[gnu::always_inline]] int hand_on(CallSignature call) noexcept
    {
        return group_.hand_on(call) ? HETCOLL_SUCCESS : look_at_handed_on(call);
    }

    // Once for every poll while Open MPI serves that call.
    void look_in_open_mpi() noexcept { watch_.look_in_open_mpi(process_.patience()); }

    // The ranks call differently, as that meeting has found. Says so if this rank is to, and
    // returns the error.
    [[nodiscard]] int fail_differing(const Meeting &meeting) noexcept;
    // Another rank has ended this call by itself, as that meeting has told: it fails here too,
    // without a meeting.
    [[nodiscard]] bool has_missed(const hetcoll_call &call) noexcept
    {
        if (catches_up_ && (call.number == 0 || is_later(call.number, newest_))) {
            catches_up_ = false;
            serves_host_ = ready_;
        }
        return catches_up_;
    }

    // After a driver error that all ranks have been told of.
    void forget_peers() noexcept;
    // A rank works on another device than its peers know, as all have been told.
    void find_peers_anew() noexcept
    {
        peers_.count_move();
        forget_peers();
    }

    // A communicator runs one operation at a time, so these are the current one's.
    [[nodiscard]] Meeting &meeting() noexcept { return meeting_; }
    // Made by the first one that starts it.
    [[nodiscard]] Executor &executor()
    {
        if (executor_ == nullptr) {
            executor_ = std::make_unique<Executor>();
            executor_->limit_slots(agreed_.slot_bytes);
        }
        return *executor_;
    }
    [[nodiscard]] Messages &messages() noexcept { return *messages_; }
    // After a network failure: a message may still arrive in them, so they are left to it.
    void abandon_messages() noexcept;
    [[nodiscard]] Membership &membership() noexcept { return membership_; }
    // After membership().lost(), once this rank's GPU has stopped, until it is true: no message and
    // no GPU of others touches this rank's memory any more. Then close_dead() unmaps the memory of
    // dead ranks.
    [[nodiscard]] bool step_leave() noexcept;
    void close_dead() noexcept;
    // All of that for a call that uses no GPU, until it is true: no further call succeeds.
    [[nodiscard]] bool leave(int code) noexcept;
    // After a meeting with a vector, or the first: why there is no page, or no room for it.
    void say_page_problem();
    // Lets the GPU copy to and from the control page at full speed. The device's context is
    // current.
    void pin_page(Device &device);

private:
    [[nodiscard]] int leave_host(int code) noexcept;
    [[nodiscard]] int look_at_handed_on(CallSignature call) noexcept;
    int fail_handed_on(const CallSignature &own, int rank, const CallSignature &other) noexcept;
    [[nodiscard]] int hear_host() noexcept;
    void observe_host(const hetcoll_call &call, std::uint64_t start_ns) noexcept;
    void say_split_machine(std::span<const hetcoll_facts> facts);
    void say_what_differs();

    Process &process_;
    OpenRequests requests_;
    const hetcoll_p2p &p2p_; // of requests_
    hetcoll_facts agreed_;
    NodeGroup group_;
    Membership membership_{p2p_, group_};
    Freed freed_{process_.node_sharing(), process_.contexts(), group_};
    Watch watch_;
    Peers peers_;
    std::unique_ptr<MappedCall> mapped_;
    Aggregation aggregation_;
    Chooser chooser_;
    Schedules schedules_;
    std::unique_ptr<Executor> executor_;
    Reserved reserved_;
    NamedStream named_stream_{process_.contexts()};
    const char *tag_ = nullptr;
    Story story_;
    bool ready_ = false;
    bool serves_host_ = false; // ready_, and not catches_up_
    bool catches_up_ = false;  // calls up to newest_ have ended on some rank
    std::uint32_t newest_ = 0;
    int hands_on_no_more_ = 0; // but fails with this error
    bool left_open_ = false;   // the control page's descriptor
    bool small_device_call_ = false;
    Meeting meeting_;
    struct {
        int op = 0, kind = -1;
        HostReduction reduction = nullptr;
    } host_sum_; // of try_host()'s last call, which the next is mostly like
    std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
    struct Pins {
        unsigned long long context; // Context::id()
        const void *made;           // the page, or the rooms where there are some
        PinnedMemory page, rooms;
    };
    std::unique_ptr<Pins> pins_; // null: nothing was to be pinned yet
    // Calls served by try_host(). Only this communicator writes it, so that it costs no locked
    // instruction.
    std::atomic<std::uint64_t> host_calls_{0};
};

} // namespace hetcoll
