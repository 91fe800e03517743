#ifndef CSIMDJSON_H
#define CSIMDJSON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A reusable parser: simdjson's own buffers, a padded input buffer and the map from the tape to the source.
/// Not to be used by two threads at once.
typedef struct csimdjson_parser csimdjson_parser;

/// A parsed document as simdjson left it. Every pointer belongs to the parser and holds until its next parse,
/// except `source`, which belongs to the caller.
typedef struct csimdjson_document {
    /// The tape: type in the top 8 bits, payload below. Word 0 is the root, the document's value starts at word 1.
    const uint64_t *tape;
    /// Unescaped strings: 4 bytes of length, the bytes, a NUL.
    const uint8_t *strings;
    /// Source offsets of all tokens, `,` and `:` included, in order.
    const uint32_t *tokens;
    /// For every tape word that starts an element: its place in `tokens`. The second word of a number has no meaning.
    const uint32_t *token_of_word;
    /// The caller's bytes.
    const uint8_t *source;
    /// Bytes of `source`.
    uint32_t source_count;
    /// Entries of `tokens`.
    uint32_t token_count;
    /// Words of the tape that stand for elements, the root word included.
    uint32_t tape_count;
    /// Set when the parsed bytes differ from `source` in numbers: the tape's numbers then mean nothing.
    uint32_t numbers_masked;
} csimdjson_document;

/// What became of a parse, as far as callers treat it differently.
typedef enum __attribute__((enum_extensibility(closed))) csimdjson_outcome {
    CSIMDJSON_PARSED = 0,
    /// Not JSON, too deeply nested, or a number that simdjson cannot represent.
    CSIMDJSON_REFUSED = 1,
    CSIMDJSON_OUT_OF_MEMORY = 2,
} csimdjson_outcome;

/// Bytes that must be readable behind the input; what they hold does not matter.
size_t csimdjson_padding(void);

/// Makes a parser that refuses more than `maximum_depth` nested arrays and objects; NULL when there is no memory.
csimdjson_parser *csimdjson_parser_create(size_t maximum_depth);

/// Frees a parser and the documents it handed out.
void csimdjson_parser_destroy(csimdjson_parser *parser);

/// The parser's own input buffer with room for `count` bytes and the padding; NULL when there is no memory.
uint8_t *csimdjson_parser_input(csimdjson_parser *parser, size_t count);

/// Parses `count` bytes at `padded`, which has the padding behind it, as the text of `source`, which has `count`
/// bytes too and the same tokens at the same offsets. `numbers_masked` is kept in the document.
csimdjson_outcome csimdjson_parser_parse(
    csimdjson_parser *parser, const uint8_t *padded, const uint8_t *source, size_t count, uint32_t numbers_masked);

/// The document of the last parse that succeeded; its address stays the same for the parser's life.
const csimdjson_document *csimdjson_parser_document(const csimdjson_parser *parser);

/// simdjson's words for why the last parse failed, for logs.
const char *csimdjson_parser_message(const csimdjson_parser *parser);

#ifdef __cplusplus
}
#endif

#endif
