#ifndef WEIR_CZEROMQ_SHIM_H
#define WEIR_CZEROMQ_SHIM_H

#include <zmq.h>

#endif
