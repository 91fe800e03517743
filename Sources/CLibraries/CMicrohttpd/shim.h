#ifndef CMICROHTTPD_SHIM_H
#define CMICROHTTPD_SHIM_H

#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>

/// What a server hears of: every callback gets `context` as its first argument.
struct CMicrohttpdCallbacks {
    void *context;
    MHD_AccessHandlerCallback answer;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection;
    void *(*requestLine)(void *context, const char *target, struct MHD_Connection *connection);
    size_t (*unescape)(void *context, struct MHD_Connection *connection, char *text);
    MHD_LogCallback log;
};

/// The settings of a server; texts may be freed once it has started.
struct CMicrohttpdSettings {
    unsigned int threads;
    unsigned int connectionLimit;
    unsigned int idleSeconds;
    size_t connectionMemory;
    /// PEM; NULL for plain HTTP.
    const char *certificate;
    const char *key;
    const char *priorities;
};

static inline struct MHD_OptionItem CMicrohttpd_number(enum MHD_OPTION option, size_t value) {
    struct MHD_OptionItem item = {option, (intptr_t) value, NULL};
    return item;
}

static inline struct MHD_OptionItem CMicrohttpd_text(enum MHD_OPTION option, const char *text) {
    struct MHD_OptionItem item = {option, 0, (void *) (uintptr_t) text};
    return item;
}

static inline struct MHD_OptionItem CMicrohttpd_callback(enum MHD_OPTION option, intptr_t function, void *context) {
    struct MHD_OptionItem item = {option, function, context};
    return item;
}

/// Starts epoll threads that serve the sockets given to `MHD_add_connection`; it listens to none itself.
static inline struct MHD_Daemon *CMicrohttpd_start(const struct CMicrohttpdSettings *settings,
                                                   const struct CMicrohttpdCallbacks *callbacks) {
    void *context = callbacks->context;
    struct MHD_OptionItem items[14];
    size_t count = 0;
    unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME
        | MHD_USE_ERROR_LOG;

    /* The logger comes first, so that complaints about the other options reach it. */
    items[count++] = CMicrohttpd_callback(MHD_OPTION_EXTERNAL_LOGGER, (intptr_t) callbacks->log, context);
    items[count++] = CMicrohttpd_callback(MHD_OPTION_NOTIFY_COMPLETED, (intptr_t) callbacks->completed, context);
    items[count++] = CMicrohttpd_callback(MHD_OPTION_NOTIFY_CONNECTION, (intptr_t) callbacks->connection, context);
    items[count++] = CMicrohttpd_callback(MHD_OPTION_URI_LOG_CALLBACK, (intptr_t) callbacks->requestLine, context);
    items[count++] = CMicrohttpd_callback(MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t) callbacks->unescape, context);
    items[count++] = CMicrohttpd_number(MHD_OPTION_CONNECTION_LIMIT, settings->connectionLimit);
    items[count++] = CMicrohttpd_number(MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->connectionMemory);
    items[count++] = CMicrohttpd_number(MHD_OPTION_CONNECTION_TIMEOUT, settings->idleSeconds);
    /* The library has no pool of one. */
    if (settings->threads > 1)
        items[count++] = CMicrohttpd_number(MHD_OPTION_THREAD_POOL_SIZE, settings->threads);
    if (settings->certificate != NULL) {
        flags |= MHD_USE_TLS;
        items[count++] = CMicrohttpd_text(MHD_OPTION_HTTPS_MEM_CERT, settings->certificate);
        items[count++] = CMicrohttpd_text(MHD_OPTION_HTTPS_MEM_KEY, settings->key);
        items[count++] = CMicrohttpd_text(MHD_OPTION_HTTPS_PRIORITIES, settings->priorities);
    }
    items[count++] = CMicrohttpd_number(MHD_OPTION_END, 0);
    return MHD_start_daemon(flags, 0, NULL, NULL, callbacks->answer, context, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
}

/// Where the application keeps its pointer for a connection; NULL when the library does not know it.
static inline void *CMicrohttpd_socket_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/// The GnuTLS session of a connection with TLS; NULL for others.
static inline void *CMicrohttpd_tls_session(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info == NULL ? NULL : info->tls_session;
}

/// The socket of a connection; -1 when the library does not know it.
static inline int CMicrohttpd_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

/// The size of the request line and all headers of the request under way, 0 when they have not all come.
static inline size_t CMicrohttpd_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info
        = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

/// Macros that Swift cannot import.
static inline uint64_t CMicrohttpd_unknown_size(void) { return MHD_SIZE_UNKNOWN; }
static inline ssize_t CMicrohttpd_end_of_stream(void) { return MHD_CONTENT_READER_END_OF_STREAM; }
static inline ssize_t CMicrohttpd_end_with_error(void) { return MHD_CONTENT_READER_END_WITH_ERROR; }

#endif
