// Who knows the key: HMAC-SHA256 by OpenSSL's libcrypto, which is opened at run time.
#pragma once

#include "aggregator/protocol.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hetcoll {

// Never the key itself, and nothing from which it could be found, goes over the network. Both sides
// show that they know it, for two random numbers, one of each, that are used once.
class Prover {
public:
    // Opens libcrypto, the first time.
    static Result<std::shared_ptr<const Prover>> create(std::string key);
    virtual ~Prover() = default;

    [[nodiscard]] virtual Result<Nonce> random() const = 0;
    [[nodiscard]] virtual Proof join(const Nonce &server, const Nonce &client,
                                     const Member &member) const = 0;
    [[nodiscard]] virtual Proof welcome(const Nonce &server, const Nonce &client) const = 0;
    [[nodiscard]] virtual std::uint64_t token(const Nonce &server, const Nonce &client) const = 0;
    // In a time that does not depend on where they differ.
    [[nodiscard]] virtual bool equal(const Proof &a, const Proof &b) const noexcept = 0;

protected:
    Prover() = default;
};

} // namespace hetcoll
