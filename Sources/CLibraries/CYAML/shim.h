#ifndef WEIR_CYAML_SHIM_H
#define WEIR_CYAML_SHIM_H

#include <yaml.h>

#endif
