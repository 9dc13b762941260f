// A process of its own that shares device memory with others and maps theirs, for tests of what
// goes on between processes. It does what it is asked, one question at a time.
#pragma once

#include "transport/exporter.h"
#include "transport/node_identity.h"
#include "transport/peer_memory.h"
#include "transport/reach_probe.h"
#include "transport/shared_page.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hetcoll::test {

enum class PeerMemoryType : std::uint8_t { kPlain, kVmm, kVmmWithoutFd, kManaged, kPool };

enum class Ask : std::uint8_t {
    kHello,        // identity
    kAllocate,     // type, bytes, pieces -> slot
    kFree,         // slot
    kFill,         // slot, offset, word
    kDescribe,     // slot, offset, bytes -> buffer
    kMap,          // owner, buffer, bytes -> address, word
    kMapElsewhere, // the same by another lease, as another thread has
    kRead,         // address -> word
    kRelease,      // the lease of kMap
    kCloseAll,     // mappings
    kCloseOwner,   // owner
    kForget,       // owner, freed
    kCloseFreed,   // what was to be forgotten
    kCloseExports, // Exporter::close_all()
    kLook,         // for freed memory, and gives it up
    kLookInCall,   // Exporter::look_sometimes()
    kTellFreed,    // owner (a peer that is told) -> freed
    kWithdraw,     // buffer
    kLimits,       // pieces (mappings), bytes
    kFaults,       // text
    kCounters,     // -> peer, exporter
    kStep,         // FdSocket::step()
    kOffer,        // -> offer, once it is ready
    kProbe,        // owner, offer: starts a probe
    kProbeStep,    // -> reach
    kReset,        // the device
    kNewContext,   // maps in a context of its own on the same device from here on
    kMapInThreads, // owner, buffer, pieces (threads), bytes (times)
    kAttach,       // ticket -> word
    kDescriptors,  // -> word: open file descriptors
    kCalls,        // text -> word: how often that driver call was made
};

// Both go through a socket as they are.
struct PeerQuestion {
    Ask ask;
    PeerMemoryType type = PeerMemoryType::kPlain;
    int slot = 0;
    int pieces = 1;
    std::size_t bytes = 0, offset = 0;
    std::uint64_t address = 0;
    std::uint32_t word = 0;
    ProcessIdentity owner{};
    SharedBuffer buffer{};
    ReachOffer offer{};
    SharedPageTicket ticket{};
    FreedMemory freed{};
    char text[256] = {};
};

struct PeerAnswer {
    bool ok = true;
    int slot = 0;
    std::uint64_t address = 0; // 0 and ok: pending
    std::uint32_t word = 0;
    ProcessIdentity identity{};
    SharedBuffer buffer{};
    ReachOffer offer{};
    Reach reach = Reach::kPending;
    PeerCounters peer{};
    ExporterCounters exporter{};
    FreedMemory freed{};
    char message[512] = {}; // of an error
};

class Peer {
public:
    // With these variables, as "EMU_NUM_DEVICES=2", in the environment; on device `ordinal`.
    explicit Peer(const std::vector<std::string> &environment = {}, int ordinal = 0);
    ~Peer(); // fails the test if the process did not end well
    Peer(const Peer &) = delete;
    Peer &operator=(const Peer &) = delete;

    [[nodiscard]] PeerAnswer ask(const PeerQuestion &question) const;
    [[nodiscard]] PeerAnswer ask(Ask what) const { return ask(PeerQuestion{.ask = what}); }
    void tell(const PeerQuestion &question) const; // and expects it to work
    void tell(Ask what) const { tell(PeerQuestion{.ask = what}); }
    void kill(); // it does not end well

    [[nodiscard]] const ProcessIdentity &identity() const { return identity_; }

    // The owner's side.
    [[nodiscard]] int allocate(std::size_t bytes, PeerMemoryType type = PeerMemoryType::kPlain,
                               int pieces = 1) const;
    void free(int slot) const;
    void fill(int slot, std::uint32_t word, std::size_t offset = 0) const;
    [[nodiscard]] SharedBuffer describe(int slot, std::size_t offset = 0,
                                        std::size_t bytes = 4) const;
    // Its news for a peer, after a look.
    [[nodiscard]] FreedMemory tell_freed(const Peer &peer) const;
    // The other side: maps, with the owner's help, and reads the first word.
    [[nodiscard]] PeerAnswer map(const Peer &owner, const SharedBuffer &buffer) const;
    [[nodiscard]] std::uint32_t read(std::uint64_t address) const;
    [[nodiscard]] PeerCounters counters() const { return ask(Ask::kCounters).peer; }
    void set_limits(int mappings, std::size_t bytes) const;
    void set_faults(const char *faults) const;
    [[nodiscard]] std::uint32_t calls(const char *name) const;

private:
    pid_t process_ = -1;
    int socket_ = -1;
    bool killed_ = false;
    ProcessIdentity identity_{};
};

// Returns what processes with EMU_LEAKS_FILE=`path` in the environment did not free, and removes
// the file.
[[nodiscard]] std::string leaks_in(const std::string &path);

} // namespace hetcoll::test
