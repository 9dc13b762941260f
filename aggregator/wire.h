// Connections that carry messages of a header and a payload, in order: TLS over TCP in the
// component and in the server, queues in memory in unit tests. One thread at a time.
#pragma once

#include "aggregator/endpoint.h"
#include "aggregator/protocol.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace hetcoll {

using Connection = std::uint64_t; // of one wire; not used twice
inline constexpr Connection kNoConnection = 0;

// Received bytes in the wire's memory, which goes back to it with the last of them.
class Payload {
public:
    class Owner {
    public:
        virtual void take_back(std::byte *data) noexcept = 0;

    protected:
        ~Owner() = default;
    };

    Payload() = default;
    Payload(Owner &owner, std::byte *data, std::size_t size) noexcept
        : owner_(&owner), data_(data), size_(size)
    {
    }
    Payload(Payload &&other) noexcept { swap(other); }
    Payload &operator=(Payload &&other) noexcept
    {
        Payload(std::move(other)).swap(*this);
        return *this;
    }
    ~Payload()
    {
        if (owner_ != nullptr) {
            owner_->take_back(data_);
        }
    }

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    void swap(Payload &other) noexcept
    {
        std::swap(owner_, other.owner_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }
    Owner *owner_ = nullptr;
    std::byte *data_ = nullptr;
    std::size_t size_ = 0;
};

// Why a connection is lost to one that does not have the other side's key.
inline constexpr const char *kWrongKey =
    "the key is not this aggregator's: give all workers the file that it has";

// Why a connection is lost before there is one: the name service knows no such host.
inline constexpr const char *kUnknownHost = "its host is not known";

// Why a connection is lost to one that takes nothing of what it is sent.
inline constexpr const char *kDoesNotRead = "it does not read what it is sent";

// Events; only progress() calls these. A connection that has been closed tells nothing more.
class WireEvents {
public:
    // Somebody has connected, and has shown the key of this name.
    virtual void on_accepted(Connection connection, const std::string &key) = 0;
    virtual void on_message(Connection connection, std::span<const std::byte> header,
                            Payload payload) = 0;
    // The connection cannot be used any more: the other side has closed it or is gone, or `why`
    // says more.
    virtual void on_lost(Connection connection, const std::string &why) = 0;

protected:
    ~WireEvents() = default;
};

// Called once, when a payload that was sent is no longer needed: perhaps before send() returns, and
// also when the connection is lost or closed.
class SendBuffer {
public:
    virtual void on_sent() noexcept = 0;

protected:
    ~SendBuffer() = default;
};

class Wire {
public:
    virtual ~Wire() = default;
    // Does not wait for the other side. Shows it the key of this name.
    virtual Result<Connection> connect(const Endpoint &to, const std::string &key) = 0;
    // How large a payload the other side may send from now on; none until this is called. Whoever
    // sends a larger one is lost, before there is memory for it.
    virtual void allow_payload(Connection connection, std::size_t most_bytes) = 0;
    // Sends nothing to a connection that is lost or closed.
    virtual void send(Connection to, const HeaderBytes &header,
                      std::span<const std::byte> payload = {}, SendBuffer *buffer = nullptr) = 0;
    // Messages that were sent to it, and that the network has not taken.
    [[nodiscard]] virtual std::size_t waiting(Connection connection) const = 0;
    // Closes immediately; messages in flight may be lost.
    virtual void close(Connection connection) = 0;
    // True if something has happened.
    virtual bool progress(WireEvents &events) = 0;
    // Something for the user to know; empty: nothing new.
    [[nodiscard]] virtual std::string take_note() { return {}; }
    // Waits until there may be something for progress() to do, `fd` can be read (-1: none), or the
    // time is over.
    virtual void wait(int milliseconds, int fd) = 0;
};

} // namespace hetcoll
