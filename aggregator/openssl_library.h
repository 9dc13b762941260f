// OpenSSL's libssl and libcrypto, found at run time by dlopen like the CUDA driver: the component
// needs no OpenSSL unless aggregators are named.
#pragma once

#include "base/status.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

// clang-format off
#define HETCOLL_OPENSSL_CALLS(X)                                                                   \
    X(TLS_method) X(SSL_CTX_new) X(SSL_CTX_free) X(SSL_CTX_ctrl) X(SSL_CTX_set_ciphersuites)       \
    X(SSL_CTX_set_options) X(SSL_CTX_set_num_tickets) X(SSL_set_verify)                            \
    X(SSL_CTX_set_default_read_buffer_len) X(SSL_CTX_set_psk_find_session_callback)                \
    X(SSL_CTX_set_psk_use_session_callback) X(SSL_new) X(SSL_free) X(SSL_set_bio)                  \
    X(SSL_set_accept_state) X(SSL_set_connect_state) X(SSL_do_handshake) X(SSL_read_ex)            \
    X(SSL_write_ex) X(SSL_get_error) X(SSL_has_pending) X(SSL_session_reused) X(SSL_key_update)    \
    X(SSL_CIPHER_find) X(SSL_SESSION_new) X(SSL_SESSION_free) X(SSL_SESSION_set1_master_key)       \
    X(SSL_SESSION_set_cipher) X(SSL_SESSION_set_protocol_version) X(BIO_meth_new) X(BIO_meth_free) \
    X(BIO_meth_set_read) X(BIO_meth_set_write) X(BIO_meth_set_ctrl) X(BIO_new) X(BIO_free)         \
    X(BIO_set_init) X(BIO_set_flags) X(BIO_clear_flags) X(ERR_clear_error) X(ERR_peek_last_error)  \
    X(ERR_reason_error_string) X(HMAC) X(EVP_sha256)
// clang-format on

namespace hetcoll {

struct OpensslCalls {
#define HETCOLL_OPENSSL_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_OPENSSL_CALLS(HETCOLL_OPENSSL_FIELD)
#undef HETCOLL_OPENSSL_FIELD
};

// Never closed: it has exit handlers of its own.
[[nodiscard]] Result<OpensslCalls> load_openssl();

} // namespace hetcoll
