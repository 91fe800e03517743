#ifndef CGNUTLS_SHIM_H
#define CGNUTLS_SHIM_H

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>

/// When the first certificate of the credentials expires; -1 if it cannot be read.
static inline time_t CGnuTLS_expiration(gnutls_certificate_credentials_t credentials) {
    gnutls_datum_t raw;
    gnutls_x509_crt_t certificate;
    if (gnutls_certificate_get_crt_raw(credentials, 0, 0, &raw) < 0 || gnutls_x509_crt_init(&certificate) < 0)
        return -1;
    time_t time = gnutls_x509_crt_import(certificate, &raw, GNUTLS_X509_FMT_DER) < 0
        ? -1
        : gnutls_x509_crt_get_expiration_time(certificate);
    gnutls_x509_crt_deinit(certificate);
    return time;
}

#endif
