// Proves who knows the key: HMAC-SHA256 by OpenSSL's libcrypto, which is opened at run time.
#pragma once

#include "aggregator/protocol.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hetcoll {

// Neither the key nor anything from which it could be found goes over the network. Each side shows
// that it knows the key by a proof over two random numbers, one from each side, which are used
// once.
class Prover {
public:
    // The first call opens libcrypto.
    static Result<std::shared_ptr<const Prover>> create(std::string key);
    virtual ~Prover() = default;

    [[nodiscard]] virtual Result<Nonce> random() const = 0;
    [[nodiscard]] virtual Proof join(const Nonce &server, const Nonce &client,
                                     const Member &member) const = 0;
    [[nodiscard]] virtual Proof welcome(const Nonce &server, const Nonce &client) const = 0;
    [[nodiscard]] virtual std::uint64_t token(const Nonce &server, const Nonce &client) const = 0;
    // Takes a time that does not depend on where they differ.
    [[nodiscard]] virtual bool equal(const Proof &a, const Proof &b) const noexcept = 0;

protected:
    Prover() = default;
};

} // namespace hetcoll
