#ifndef WEIR_CPOSTGRES_SHIM_H
#define WEIR_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

// What Swift cannot import from libpq: character macros (postgres_ext.h).
enum {
    cpostgres_diag_severity = PG_DIAG_SEVERITY_NONLOCALIZED,
    cpostgres_diag_sqlstate = PG_DIAG_SQLSTATE,
    cpostgres_diag_message_primary = PG_DIAG_MESSAGE_PRIMARY,
    cpostgres_diag_table_name = PG_DIAG_TABLE_NAME,
    cpostgres_diag_column_name = PG_DIAG_COLUMN_NAME,
    cpostgres_diag_constraint_name = PG_DIAG_CONSTRAINT_NAME
};

#endif
