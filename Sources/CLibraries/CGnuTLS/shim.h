#ifndef CGNUTLS_SHIM_H
#define CGNUTLS_SHIM_H

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <time.h>

/// From when the first certificate of the credentials is valid and when it expires; -1 if it cannot be read.
static inline time_t CGnuTLS_validity(gnutls_certificate_credentials_t credentials, time_t *activation) {
    gnutls_datum_t raw;
    gnutls_x509_crt_t certificate;
    if (gnutls_certificate_get_crt_raw(credentials, 0, 0, &raw) < 0 || gnutls_x509_crt_init(&certificate) < 0)
        return -1;
    time_t time = -1;
    *activation = -1;
    if (gnutls_x509_crt_import(certificate, &raw, GNUTLS_X509_FMT_DER) >= 0) {
        *activation = gnutls_x509_crt_get_activation_time(certificate);
        time = gnutls_x509_crt_get_expiration_time(certificate);
    }
    gnutls_x509_crt_deinit(certificate);
    return time;
}

#endif
