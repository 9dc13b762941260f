#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/endpoint.h"
#include "aggregator/tls.h"
#include "aggregator/wire.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace hetcoll {
namespace {

// The part of a key that goes over the network in the clear, next to its name.
constexpr const char *kIdentity = "hetcoll aggregator 1 ";
// A key of the TLS exchange is HMAC-SHA256 of these, so that the file's is used for nothing else.
constexpr std::size_t kSecretBytes = 32;
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01}; // RFC 8446, B.4
// The most bytes read from a peer that has not proved the key. A hello of ours has 400 bytes.
constexpr std::size_t kMostHandshakeBytes = 8192;
constexpr std::size_t kReadAheadBytes = 64u << 10;
// RFC 8446, 5.5: a key of AES-GCM is good for 24 million records.
constexpr std::uint32_t kMostRecords = 1u << 22;

// The stream whose call of OpenSSL this thread is in: OpenSSL calls back from nowhere else.
thread_local TlsStream *at_work = nullptr;

class AtWork {
public:
    explicit AtWork(TlsStream *stream) noexcept : before_(std::exchange(at_work, stream)) {}
    ~AtWork() { at_work = before_; }
    AtWork(const AtWork &) = delete;
    AtWork &operator=(const AtWork &) = delete;

private:
    TlsStream *before_;
};

} // namespace

// ---- keys ----

Result<std::shared_ptr<const TlsContext>> TlsContext::create(std::span<const AggregatorKey> keys)
{
    Result<OpensslCalls> calls = load_openssl();
    return calls.ok() ? create(keys, *calls) : calls.take_status();
}

Result<std::shared_ptr<const TlsContext>> TlsContext::create(std::span<const AggregatorKey> keys,
                                                             const OpensslCalls &calls)
{
    std::shared_ptr<TlsContext> made(new TlsContext(calls));
    for (const AggregatorKey &key : keys) {
        Result<Secret> secret = made->derive(key);
        if (!secret.ok()) {
            return secret.take_status();
        }
        made->secrets_[kIdentity + key.name] = std::move(*secret);
    }
    if (Status opened = made->open(); !opened.ok()) {
        return opened;
    }
    return std::shared_ptr<const TlsContext>(std::move(made));
}

Result<TlsContext::Secret> TlsContext::derive(const AggregatorKey &key) const
{
    const std::string text = kIdentity + key.name;
    Secret secret(kSecretBytes);
    unsigned length = 0;
    if (calls_.HMAC(calls_.EVP_sha256(), key.secret.data(), static_cast<int>(key.secret.size()),
                    reinterpret_cast<const unsigned char *>(text.data()), text.size(),
                    secret.data(), &length) == nullptr ||
        length != kSecretBytes) {
        return error(Errc::kUnsupported,
                     "HMAC-SHA256 of key %s failed in OpenSSL, so nobody could be let in by it",
                     key.name.c_str());
    }
    return secret;
}

Status TlsContext::open()
{
    context_ = calls_.SSL_CTX_new(calls_.TLS_method());
    socket_method_ = calls_.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "hetcoll socket");
    const bool made = context_ != nullptr && socket_method_ != nullptr &&
                      calls_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION,
                                          nullptr) == 1 &&
                      calls_.SSL_CTX_set_ciphersuites(
                          context_, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
                      calls_.SSL_CTX_set_num_tickets(context_, 0) == 1 &&
                      calls_.BIO_meth_set_read(socket_method_, &TlsStream::on_read) == 1 &&
                      calls_.BIO_meth_set_write(socket_method_, &TlsStream::on_write) == 1 &&
                      calls_.BIO_meth_set_ctrl(socket_method_, &TlsStream::on_control) == 1;
    if (!made) {
        calls_.ERR_clear_error();
        return error(Errc::kUnsupported, "OpenSSL has no TLS 1.3 with AES-128-GCM and SHA-256 "
                                         "here, which connections to aggregators need");
    }
    calls_.SSL_CTX_set_options(context_, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    calls_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_READ_AHEAD, 1, nullptr);
    calls_.SSL_CTX_set_default_read_buffer_len(context_, kReadAheadBytes);
    calls_.SSL_CTX_set_psk_find_session_callback(context_, &TlsContext::find_key);
    calls_.SSL_CTX_set_psk_use_session_callback(context_, &TlsContext::use_key);
    return {};
}

TlsContext::~TlsContext()
{
    if (context_ != nullptr) {
        calls_.SSL_CTX_free(context_);
    }
    if (socket_method_ != nullptr) {
        calls_.BIO_meth_free(socket_method_);
    }
}

// Null where OpenSSL fails: the handshake fails then.
SSL_SESSION *TlsContext::session_of(SSL *ssl, const Secret &secret) const
{
    const SSL_CIPHER *const cipher = calls_.SSL_CIPHER_find(ssl, kAes128GcmSha256);
    SSL_SESSION *const session = calls_.SSL_SESSION_new();
    if (session != nullptr && cipher != nullptr &&
        calls_.SSL_SESSION_set1_master_key(session, secret.data(), secret.size()) == 1 &&
        calls_.SSL_SESSION_set_cipher(session, cipher) == 1 &&
        calls_.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
        return session;
    }
    calls_.SSL_SESSION_free(session);
    return nullptr;
}

// A key that we do not have is no error to OpenSSL: the handshake goes on without, and fails
// because there is no certificate.
int TlsContext::find_key(SSL *ssl, const unsigned char *identity, std::size_t length,
                         SSL_SESSION **session)
{
    *session = nullptr;
    TlsStream *const stream = at_work;
    const TlsContext &self = *stream->context_;
    const auto found =
        self.secrets_.find(std::string(reinterpret_cast<const char *>(identity), length));
    if (found == self.secrets_.end()) {
        return 1;
    }
    stream->key_ = found->first.substr(std::strlen(kIdentity));
    *session = self.session_of(ssl, found->second);
    return *session != nullptr ? 1 : 0;
}

int TlsContext::use_key(SSL *ssl, const EVP_MD * /*hash*/, const unsigned char **identity,
                        std::size_t *length, SSL_SESSION **session)
{
    const TlsStream *const stream = at_work;
    const TlsContext &self = *stream->context_;
    *session = self.session_of(ssl, self.secrets_.at(stream->identity_));
    *identity = reinterpret_cast<const unsigned char *>(stream->identity_.data());
    *length = stream->identity_.size();
    return *session != nullptr ? 1 : 0;
}

// ---- a connection ----

Result<std::unique_ptr<TlsStream>> TlsStream::create(std::shared_ptr<const TlsContext> context,
                                                     int socket, Side side, const std::string &key)
{
    std::unique_ptr<TlsStream> made(new TlsStream(std::move(context), socket));
    const OpensslCalls &calls = made->calls();
    if (side == Side::kConnects) {
        made->key_ = key;
        made->identity_ = kIdentity + key;
        if (!made->context_->secrets_.contains(made->identity_)) {
            return error(Errc::kInvalid, "there is no key %s to connect with", key.c_str());
        }
    }
    const AtWork here(made.get());
    made->ssl_ = calls.SSL_new(made->context_->context_);
    BIO *const bio = calls.BIO_new(made->context_->socket_method_);
    if (made->ssl_ == nullptr || bio == nullptr) {
        if (bio != nullptr) {
            calls.BIO_free(bio);
        }
        calls.ERR_clear_error();
        return error(Errc::kNoMemory, "OpenSSL cannot make a connection");
    }
    if (side ==
        Side::kConnects) { // a server that shows a certificate in place of the key is not believed
        calls.SSL_set_verify(made->ssl_, SSL_VERIFY_PEER, nullptr);
    }
    calls.BIO_set_init(bio, 1);
    calls.SSL_set_bio(made->ssl_, bio, bio); // it is the SSL's now
    (side == Side::kAccepts ? calls.SSL_set_accept_state : calls.SSL_set_connect_state)(made->ssl_);
    return made;
}

TlsStream::~TlsStream()
{
    if (ssl_ != nullptr) {
        const AtWork here(this);
        calls().SSL_free(ssl_);
    }
}

TlsStream::State TlsStream::advance()
{
    if (state_ != State::kHandshake) {
        return state_;
    }
    const AtWork here(this);
    calls().ERR_clear_error();
    const int result = calls().SSL_do_handshake(ssl_);
    if (result == 1) {
        // With a key, and not in another way that OpenSSL may know.
        if (calls().SSL_session_reused(ssl_) == 1 && !key_.empty()) {
            state_ = State::kOpen;
        } else {
            lose("it has not shown the key");
        }
    } else {
        lose_by(result);
    }
    (void)flush(); // the other side may be told of an error
    return state_;
}

void TlsStream::lose(std::string why)
{
    if (state_ != State::kLost) {
        state_ = State::kLost;
        why_ = std::move(why);
    }
}

// Nothing if there is only nothing to read yet.
void TlsStream::lose_by(int result)
{
    const int kind = calls().SSL_get_error(ssl_, result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        return;
    }
    const unsigned long problem = calls().ERR_peek_last_error();
    const char *const reason = calls().ERR_reason_error_string(problem);
    constexpr int kAlert = 1000; // from here on reasons are what the other side has said (ssl.h)
    if (ended_) {
        lose("the other side has closed it");
    } else if (socket_error_ != 0) {
        lose(std::strerror(socket_error_));
    } else if (state_ == State::kHandshake && handshake_bytes_ >= kMostHandshakeBytes) {
        lose("it has sent too much before the key");
    } else if (state_ == State::kHandshake && ERR_GET_REASON(problem) >= kAlert) {
        lose(kWrongKey);
    } else {
        lose(std::string("what it has sent is not what TLS allows: ") +
             (reason != nullptr ? reason : "unknown error"));
    }
    calls().ERR_clear_error();
}

std::size_t TlsStream::read(std::span<std::byte> to)
{
    const AtWork here(this);
    calls().ERR_clear_error();
    std::size_t got = 0;
    const int result = calls().SSL_read_ex(ssl_, to.data(), to.size(), &got);
    if (result == 1) {
        return got;
    }
    lose_by(result);
    return 0;
}

bool TlsStream::has_unread() const noexcept { return calls().SSL_has_pending(ssl_) == 1; }

bool TlsStream::write(std::span<const std::byte> bytes)
{
    const AtWork here(this);
    calls().ERR_clear_error();
    if (++records_ > kMostRecords) {
        records_ = 0;
        if (calls().SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
            lose("OpenSSL cannot change the key of what is sent");
            return false;
        }
    }
    std::size_t written = 0;
    const int result = calls().SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written);
    if (result != 1 || written != bytes.size()) { // what is written goes to memory
        lose_by(result);
        lose("OpenSSL cannot seal what is sent");
        return false;
    }
    return true;
}

bool TlsStream::flush()
{
    std::size_t done = 0;
    while (done < out_.size()) {
        const ssize_t sent = send(socket_, out_.data() + done, out_.size() - done, MSG_NOSIGNAL);
        if (sent >= 0) {
            done += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            lose(std::strerror(errno));
            return false;
        }
    }
    // At once: to one that reads slowly, and always has some bytes left, all may never be sent.
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(done));
    sent_ += done;
    return true;
}

int TlsStream::on_read(BIO *bio, char *to, int bytes)
{
    TlsStream &self = *at_work;
    const OpensslCalls &calls = self.calls();
    calls.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    auto most = static_cast<std::size_t>(bytes);
    if (self.state_ == State::kHandshake) {
        most = std::min(most, kMostHandshakeBytes - self.handshake_bytes_);
        if (most == 0) {
            return -1;
        }
    }
    ssize_t got = -1;
    do {
        got = recv(self.socket_, to, most, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        self.handshake_bytes_ +=
            self.state_ == State::kHandshake ? static_cast<std::size_t>(got) : 0;
        return static_cast<int>(got);
    }
    if (got == 0) {
        self.ended_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        calls.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    } else {
        self.socket_error_ = errno;
    }
    return got == 0 ? 0 : -1;
}

int TlsStream::on_write(BIO *bio, const char *from, int bytes)
{
    TlsStream &self = *at_work;
    self.calls().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    const auto *const first = reinterpret_cast<const std::byte *>(from);
    // OpenSSL answers what is received, too: a new key, as often as the other side asks for one.
    if (self.out_.size() + static_cast<std::size_t>(bytes) > kMostSealedBytes) {
        self.lose(kDoesNotRead);
        return -1;
    }
    self.out_.insert(self.out_.end(), first, first + bytes);
    return bytes;
}

long TlsStream::on_control(BIO * /*bio*/, int what, long /*number*/, void * /*pointer*/)
{
    return what == BIO_CTRL_FLUSH ? 1 : 0;
}

} // namespace hetcoll

#endif
