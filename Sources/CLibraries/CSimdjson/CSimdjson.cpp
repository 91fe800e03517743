#include "CSimdjson.h"

#if !__has_include(<simdjson.h>)
#error "simdjson is missing: apt install libsimdjson-dev"
#endif

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

namespace {

/// What a token adds to the place on the tape (low 32 bits) and to the nesting (high 32 bits), by its first byte:
/// numbers take two words, `,` and `:` none, everything else one.
constexpr std::array<uint64_t, 256> make_steps() {
    std::array<uint64_t, 256> steps{};
    for (size_t byte = 0; byte < 256; byte++) steps[byte] = 1;
    for (size_t digit = '0'; digit <= '9'; digit++) steps[digit] = 2;
    steps['-'] = 2;
    steps[','] = steps[':'] = 0;
    steps['['] = steps['{'] = 1 + (uint64_t(1) << 32);
    steps[']'] = steps['}'] = 1 - (uint64_t(1) << 32);
    return steps;
}

constexpr std::array<uint64_t, 256> steps = make_steps();

/// Memory for documents of `count` bytes in powers of two, so that a parser seldom grows.
size_t rounded_capacity(size_t count) {
    size_t capacity = 4096;
    while (capacity < count) capacity *= 2;
    return capacity;
}

}  // namespace

struct csimdjson_parser {
    simdjson::dom::parser simd;
    std::unique_ptr<uint8_t[]> input;
    size_t input_capacity = 0;
    std::unique_ptr<uint32_t[]> token_of_word;
    size_t maximum_depth;
    simdjson::error_code error = simdjson::SUCCESS;
    csimdjson_document document{};

    explicit csimdjson_parser(size_t depth) : maximum_depth(depth) {}

    /// Makes room in simdjson's buffers and in ours.
    simdjson::error_code reserve(size_t count) {
        if (token_of_word && simd.capacity() >= count) return simdjson::SUCCESS;
        const size_t capacity = rounded_capacity(count);
        // One level more than allowed: simdjson counts an empty array or object as no level, `map_tokens` counts all.
        simdjson::error_code error = simd.allocate(capacity, maximum_depth + 1);
        if (!error) error = simd.doc.allocate(capacity);
        if (error) return error;
        // The tape holds at most a word for each byte and three more.
        token_of_word.reset(new (std::nothrow) uint32_t[capacity + 3]);
        return token_of_word ? simdjson::SUCCESS : simdjson::MEMALLOC;
    }

    /// Walks tokens and tape side by side: a token's first byte says how many words it took.
    simdjson::error_code map_tokens(const uint8_t *bytes) {
        const uint32_t *const tokens = simd.implementation->structural_indexes.get();
        const uint32_t count = simd.implementation->n_structural_indexes;
        uint32_t *const map = token_of_word.get();
        uint64_t place = 1;
        uint64_t deepest = 0;
        for (uint32_t token = 0; token < count; token++) {
            map[uint32_t(place)] = token;
            place += steps[bytes[tokens[token]]];
            deepest = std::max(deepest, place >> 32);
        }
        if (deepest > maximum_depth) return simdjson::DEPTH_ERROR;
        document.tokens = tokens;
        document.token_count = count;
        document.token_of_word = map;
        document.tape = simd.doc.tape.get();
        document.strings = simd.doc.string_buf.get();
        document.tape_count = uint32_t(place);
        // The closing root word must stand where the walk ended, or the two do not fit together.
        return (document.tape[uint32_t(place)] >> 56) == 'r' ? simdjson::SUCCESS : simdjson::UNEXPECTED_ERROR;
    }
};

size_t csimdjson_padding(void) { return simdjson::SIMDJSON_PADDING; }

csimdjson_parser *csimdjson_parser_create(size_t maximum_depth) {
    return new (std::nothrow) csimdjson_parser(maximum_depth);
}

void csimdjson_parser_destroy(csimdjson_parser *parser) { delete parser; }

uint8_t *csimdjson_parser_input(csimdjson_parser *parser, size_t count) {
    if (parser->input_capacity < count) {
        const size_t capacity = rounded_capacity(count);
        parser->input.reset(new (std::nothrow) uint8_t[capacity + simdjson::SIMDJSON_PADDING]);
        parser->input_capacity = parser->input ? capacity : 0;
    }
    // An empty parser has a capacity of zero and no buffer yet.
    if (!parser->input && count == 0) return csimdjson_parser_input(parser, 1);
    return parser->input.get();
}

csimdjson_outcome csimdjson_parser_parse(
    csimdjson_parser *parser, const uint8_t *padded, const uint8_t *source, size_t count, uint32_t numbers_masked) {
    parser->error = parser->reserve(count);
    if (!parser->error) {
        parser->document.source = source;
        parser->document.source_count = uint32_t(count);
        parser->document.numbers_masked = numbers_masked;
        parser->error = parser->simd.parse(padded, count, false).error();
    }
    if (!parser->error) parser->error = parser->map_tokens(padded);
    switch (parser->error) {
        case simdjson::SUCCESS:
            return CSIMDJSON_PARSED;
        case simdjson::MEMALLOC:
            return CSIMDJSON_OUT_OF_MEMORY;
        default:
            return CSIMDJSON_REFUSED;
    }
}

const csimdjson_document *csimdjson_parser_document(const csimdjson_parser *parser) { return &parser->document; }

const char *csimdjson_parser_message(const csimdjson_parser *parser) {
    return simdjson::error_message(parser->error);
}
