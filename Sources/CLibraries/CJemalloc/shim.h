#ifndef WEIR_CJEMALLOC_SHIM_H
#define WEIR_CJEMALLOC_SHIM_H

#include <jemalloc/jemalloc.h>

#endif
