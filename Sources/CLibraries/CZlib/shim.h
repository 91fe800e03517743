#ifndef CZLIB_SHIM_H
#define CZLIB_SHIM_H

#include <zlib.h>

/* deflateInit2 and inflateInit2 are macros. The window is the largest, 16 more asks for the gzip format alone. */

/// Makes ready a stream that writes gzip.
static inline int CZlib_start_gzip(z_streamp stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
}

/// Makes ready a stream that reads gzip.
static inline int CZlib_start_gunzip(z_streamp stream) {
    return inflateInit2(stream, MAX_WBITS + 16);
}

#endif
