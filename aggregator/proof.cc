#include "aggregator/proof.h"

#include "hetcoll_config.h"

#if HETCOLL_WITH_UCX

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>
#include <dlfcn.h>

// clang-format off
#define HETCOLL_CRYPTO_CALLS(X) X(HMAC) X(EVP_sha256) X(RAND_bytes) X(CRYPTO_memcmp)
// clang-format on

namespace hetcoll {
namespace {

struct Crypto {
#define HETCOLL_CRYPTO_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_CRYPTO_CALLS(HETCOLL_CRYPTO_FIELD)
#undef HETCOLL_CRYPTO_FIELD
};

// Never closed: it has exit handlers of its own.
Result<Crypto> load_crypto()
{
    // The release whose headers hetcoll was built with: the prototypes are that release's.
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    constexpr const char *kLibrary = "libcrypto.so.3";
#else
    constexpr const char *kLibrary = "libcrypto.so.1.1";
#endif
    void *const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(Errc::kUnsupported,
                     "OpenSSL's library cannot be loaded: %s; aggregators need it for their key",
                     dlerror());
    }
    Crypto crypto;
    const char *missing = nullptr;
#define HETCOLL_LOOK_UP(name)                                                     \
    crypto.name = reinterpret_cast<decltype(crypto.name)>(dlsym(library, #name)); \
    missing = crypto.name == nullptr ? #name : missing;
    HETCOLL_CRYPTO_CALLS(HETCOLL_LOOK_UP)
#undef HETCOLL_LOOK_UP
    if (missing != nullptr) {
        return error(Errc::kUnsupported, "%s lacks %s, which aggregators need for their key",
                     kLibrary, missing);
    }
    return crypto;
}

class HmacProver final : public Prover {
public:
    HmacProver(const Crypto &crypto, std::string key) : crypto_(crypto), key_(std::move(key)) {}

    Result<Nonce> random() const override
    {
        Nonce nonce;
        if (crypto_.RAND_bytes(reinterpret_cast<unsigned char *>(nonce.data()), sizeof nonce) !=
            1) {
            return error(Errc::kUnsupported,
                         "RAND_bytes failed: without random numbers nobody can join an aggregator");
        }
        return nonce;
    }
    Proof join(const Nonce &server, const Nonce &client, const Member &member) const override
    {
        return hmac("hetcoll join", server, client, encode_member(member).view());
    }
    Proof welcome(const Nonce &server, const Nonce &client) const override
    {
        return hmac("hetcoll welcome", server, client, {});
    }
    std::uint64_t token(const Nonce &server, const Nonce &client) const override
    {
        const Proof proof = hmac("hetcoll token", server, client, {});
        std::uint64_t token;
        std::memcpy(&token, proof.data(), sizeof token);
        return token;
    }
    bool equal(const Proof &a, const Proof &b) const noexcept override
    {
        return crypto_.CRYPTO_memcmp(a.data(), b.data(), sizeof a) == 0;
    }

private:
    // Each part but the last has an end of its own, so no two lists give the same bytes. If OpenSSL
    // fails, nobody can have the same proof.
    Proof hmac(const char *what, const Nonce &server, const Nonce &client,
               std::span<const std::byte> rest) const
    {
        HeaderBytes text;
        text.append(what, std::strlen(what) + 1);
        text.append(server.data(), server.size());
        text.append(client.data(), client.size());
        text.append(rest.data(), rest.size());
        Proof proof{};
        unsigned length = sizeof proof;
        auto *const to = reinterpret_cast<unsigned char *>(proof.data());
        if (crypto_.HMAC(crypto_.EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                         reinterpret_cast<const unsigned char *>(text.view().data()),
                         text.view().size(), to, &length) == nullptr) {
            crypto_.RAND_bytes(to, sizeof proof);
        }
        return proof;
    }
    Crypto crypto_;
    std::string key_;
};

} // namespace

Result<std::shared_ptr<const Prover>> Prover::create(std::string key)
{
    Result<Crypto> crypto = load_crypto();
    if (!crypto.ok()) {
        return crypto.take_status();
    }
    return std::shared_ptr<const Prover>(std::make_shared<HmacProver>(*crypto, std::move(key)));
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<std::shared_ptr<const Prover>> Prover::create(std::string /*key*/)
{
    return error(Errc::kUnsupported, "this hetcoll was built without UCX and OpenSSL, so it has no "
                                     "aggregators: configure it --with-ucx");
}

} // namespace hetcoll

#endif
