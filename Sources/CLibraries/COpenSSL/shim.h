#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

// What is needed of libcrypto (OpenSSL 3.0 or newer): digests, signatures, and keys in the forms of PEM, DER and X.509.
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

/// A macro of OpenSSL.
static inline long COpenSSL_memory(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

#endif
