#ifndef WEIR_CSQLITE_SHIM_H
#define WEIR_CSQLITE_SHIM_H

#include <sqlite3.h>

// What Swift cannot import from sqlite3.h: macros with casts, and variadic functions.

// Binds bytes that SQLite copies at once (SQLITE_TRANSIENT).
static inline int csqlite_bind_blob_copied(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}

static inline int csqlite_bind_text_copied(sqlite3_stmt *statement, int index, const void *utf8, sqlite3_uint64 count) {
    return sqlite3_bind_text64(statement, index, (const char *)utf8, count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

// Binds bytes that the caller keeps in place until the parameter is bound again (SQLITE_STATIC).
static inline int csqlite_bind_blob_borrowed(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_STATIC);
}

// sqlite3_config and sqlite3_db_config for options that take one int.
static inline int csqlite_config(int option, int value) {
    return sqlite3_config(option, value);
}

static inline int csqlite_db_config(sqlite3 *database, int option, int value) {
    return sqlite3_db_config(database, option, value, (int *)0);
}

#endif
