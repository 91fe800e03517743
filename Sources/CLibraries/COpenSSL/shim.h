#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

// Digests alone: what is needed of libcrypto (OpenSSL 3.0 or newer).
#include <openssl/err.h>
#include <openssl/evp.h>

#endif
