// TLS 1.3 over a socket, between two that know a key: both prove it before either reads a byte of
// the other's. There are no certificates. OpenSSL does it; the socket is nonblocking, and nothing
// here waits or raises SIGPIPE.
#pragma once

#include "aggregator/openssl_library.h"
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hetcoll {

struct AggregatorKey; // aggregator/endpoint.h

inline constexpr std::size_t kTlsRecordBytes = 16384; // the most that one record holds
// A peer that has this many sealed bytes to read, and asks for more, is lost.
inline constexpr std::size_t kMostSealedBytes = 256u << 10;

// The keys of one side, and OpenSSL's context.
class TlsContext {
public:
    // The first call opens OpenSSL. Fails if a key cannot be made ready: without its key nobody is
    // let in.
    static Result<std::shared_ptr<const TlsContext>> create(std::span<const AggregatorKey> keys);
    // The same with these calls in place of OpenSSL's, for tests of its errors.
    static Result<std::shared_ptr<const TlsContext>> create(std::span<const AggregatorKey> keys,
                                                            const OpensslCalls &calls);
    ~TlsContext();
    TlsContext(const TlsContext &) = delete;
    TlsContext &operator=(const TlsContext &) = delete;

private:
    friend class TlsStream;
    using Secret = std::vector<unsigned char>;
    explicit TlsContext(const OpensslCalls &calls) : calls_(calls) {}
    Status open();
    [[nodiscard]] Result<Secret> derive(const AggregatorKey &key) const;
    [[nodiscard]] SSL_SESSION *session_of(SSL *ssl, const Secret &secret) const;
    static int find_key(SSL *ssl, const unsigned char *identity, std::size_t length,
                        SSL_SESSION **session);
    static int use_key(SSL *ssl, const EVP_MD *hash, const unsigned char **identity,
                       std::size_t *length, SSL_SESSION **session);

    OpensslCalls calls_;
    SSL_CTX *context_ = nullptr;
    BIO_METHOD *socket_method_ = nullptr;
    std::map<std::string, Secret> secrets_; // by what goes over the network: kIdentity and the name
};

class TlsStream {
public:
    enum class Side : std::uint8_t { kAccepts, kConnects };

    // `key`: the name of the key that kConnects shows. The socket stays the caller's, and lives
    // longer.
    static Result<std::unique_ptr<TlsStream>> create(std::shared_ptr<const TlsContext> context,
                                                     int socket, Side side,
                                                     const std::string &key = {});
    ~TlsStream();
    TlsStream(const TlsStream &) = delete;
    TlsStream &operator=(const TlsStream &) = delete;

    // Lets the handshake advance. From the moment when it is open both sides have shown the key.
    enum class State : std::uint8_t { kHandshake, kOpen, kLost };
    State advance();
    [[nodiscard]] State state() const noexcept { return state_; }
    // Why it is lost.
    [[nodiscard]] const std::string &why() const noexcept { return why_; }
    // The name of the key that was shown; of kAccepts, once one has been named that we have.
    [[nodiscard]] const std::string &key() const noexcept { return key_; }

    // Require kOpen. read() answers how many bytes it has read, 0: none is there, or it is lost.
    [[nodiscard]] std::size_t read(std::span<std::byte> to);
    // Takes at most kTlsRecordBytes, all of them; flush() sends them. False: it is lost.
    bool write(std::span<const std::byte> bytes);
    // Something was received that read() has not been asked for.
    [[nodiscard]] bool has_unread() const noexcept;

    // Sends what there is, as far as the socket takes it. False: it is lost.
    bool flush();
    [[nodiscard]] std::size_t unsent() const noexcept { return out_.size(); }
    // Bytes that the socket has taken.
    [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
    // The memory of out_, with its spare capacity.
    [[nodiscard]] std::size_t memory() const noexcept { return out_.capacity(); }

private:
    friend class TlsContext;
    TlsStream(std::shared_ptr<const TlsContext> context, int socket)
        : context_(std::move(context)), socket_(socket)
    {
    }
    [[nodiscard]] const OpensslCalls &calls() const noexcept { return context_->calls_; }
    void lose(std::string why);
    void lose_by(int result);
    static int on_read(BIO *bio, char *to, int bytes);
    static int on_write(BIO *bio, const char *from, int bytes);
    static long on_control(BIO *bio, int what, long number, void *pointer);

    std::shared_ptr<const TlsContext> context_;
    int socket_;
    SSL *ssl_ = nullptr;
    State state_ = State::kHandshake;
    std::string why_, key_, identity_;
    std::size_t handshake_bytes_ = 0; // received
    int socket_error_ = 0;
    bool ended_ = false;         // the other side has closed
    std::uint32_t records_ = 0;  // written with this key
    std::vector<std::byte> out_; // sealed, to be sent
    std::uint64_t sent_ = 0;
};

} // namespace hetcoll
