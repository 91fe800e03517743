#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

// libcurl 7.85 or newer: headers of a response by name, and protocols by name.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// Swift cannot call functions with variable arguments.

static inline CURLcode CCurl_set_number(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

/// libcurl copies the text.
static inline CURLcode CCurl_set_text(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

/// The contexts must outlive the transfer.
static inline CURLcode CCurl_set_callbacks(
    CURL *handle, curl_write_callback write, curl_xferinfo_callback progress, void *context
) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, write);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, progress);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    return code;
}

/// The buffer has CURL_ERROR_SIZE bytes and outlives the transfer.
static inline CURLcode CCurl_set_error_buffer(CURL *handle, char *buffer) {
    return curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, buffer);
}

static inline CURLcode CCurl_get_number(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

#endif
