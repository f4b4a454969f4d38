/* The keystream of AES-256 in counter mode, added to words or taken from them without being written anywhere, by the
 * processor's AES instructions: 8 blocks at a time, or 32 where it has them for vectors of 512 bits (VAES). Neither looks
 * anything up by a secret. Where there are none, Python asks `cryptography` instead. */
#ifndef SFUMATO_CTR_H
#define SFUMATO_CTR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_aes.h"

#if defined(__x86_64__) && defined(__GNUC__)
/* On Windows the stack is aligned to 16 bytes only, and GCC spills vectors as if it were aligned to 64. */
#if !defined(_WIN32) && (defined(__clang__) ? __clang_major__ >= 14 : __GNUC__ >= 10)
#include <cpuid.h>

#define SFUMATO_VAES 1
#define WITH_VAES __attribute__((target("aes,vaes,avx512f,avx512bw")))
#else
#define SFUMATO_VAES 0
#endif

#define AES_ROUNDS 14
#define AES_CHUNK 128
#define AES_WIDE_CHUNK 512
#define EXPAND_EVEN(i, constant) keys[i] = next_key(keys[i - 2], _mm_aeskeygenassist_si128(keys[i - 1], constant))
#define EXPAND_ODD(i) keys[i] = odd_key(keys[i - 2], _mm_aeskeygenassist_si128(keys[i - 1], 0))

WITH_AES static inline __m128i odd_key(__m128i key, __m128i helper) {
    return next_key(key, _mm_shuffle_epi32(helper, 0xaa));
}

/* FIPS 197, section 5.2, for keys of 256 bits. */
WITH_AES static void expand_key_256(const uint8_t *key, __m128i keys[AES_ROUNDS + 1]) {
    keys[0] = _mm_loadu_si128((const __m128i *)key);
    keys[1] = _mm_loadu_si128((const __m128i *)(key + 16));
    EXPAND_EVEN(2, 0x01); EXPAND_ODD(3); EXPAND_EVEN(4, 0x02); EXPAND_ODD(5); EXPAND_EVEN(6, 0x04); EXPAND_ODD(7);
    EXPAND_EVEN(8, 0x08); EXPAND_ODD(9); EXPAND_EVEN(10, 0x10); EXPAND_ODD(11); EXPAND_EVEN(12, 0x20); EXPAND_ODD(13);
    EXPAND_EVEN(14, 0x40);
}

WITH_AES static inline __m128i moved(__m128i total, __m128i mask, int width, int less) {
    if (width == 4) return less ? _mm_sub_epi32(total, mask) : _mm_add_epi32(total, mask);
    return less ? _mm_sub_epi64(total, mask) : _mm_add_epi64(total, mask);
}

/* Blocks are numbers of 128 bits, the highest byte first; no total has 2^64 of them. */
WITH_AES static void add_chunks(const __m128i keys[AES_ROUNDS + 1], uint64_t block, uint8_t *total, ptrdiff_t chunks, int width,
                                int less) {
    for (; chunks > 0; chunks--, total += AES_CHUNK, block += AT_ONCE) {
        __m128i x[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            x[i] = _mm_xor_si128(_mm_set_epi64x((int64_t)__builtin_bswap64(block + (uint64_t)i), 0), keys[0]);
        for (int round = 1; round < AES_ROUNDS; round++)
            for (int i = 0; i < AT_ONCE; i++) x[i] = _mm_aesenc_si128(x[i], keys[round]);
        for (int i = 0; i < AT_ONCE; i++) {
            __m128i *at = (__m128i *)(total + 16 * i);
            _mm_storeu_si128(at, moved(_mm_loadu_si128(at), _mm_aesenclast_si128(x[i], keys[AES_ROUNDS]), width, less));
        }
    }
}

#if SFUMATO_VAES
WITH_VAES static inline __m512i moved_wide(__m512i total, __m512i mask, int width, int less) {
    if (width == 4) return less ? _mm512_sub_epi32(total, mask) : _mm512_add_epi32(total, mask);
    return less ? _mm512_sub_epi64(total, mask) : _mm512_add_epi64(total, mask);
}

WITH_VAES static void add_wide_chunks(const __m128i keys[AES_ROUNDS + 1], uint64_t block, uint8_t *total, ptrdiff_t chunks,
                                      int width, int less) {
    __m512i wide[AES_ROUNDS + 1];
    const __m512i turned = _mm512_broadcast_i32x4(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i four = _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0);
    __m512i counter = _mm512_add_epi64(_mm512_set_epi64((int64_t)block, 0, (int64_t)block, 0, (int64_t)block, 0, (int64_t)block, 0),
                                       _mm512_set_epi64(3, 0, 2, 0, 1, 0, 0, 0));
    for (int i = 0; i <= AES_ROUNDS; i++) wide[i] = _mm512_broadcast_i32x4(keys[i]);
    for (; chunks > 0; chunks--, total += AES_WIDE_CHUNK) {
        __m512i x[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            x[i] = _mm512_xor_si512(_mm512_shuffle_epi8(counter, turned), wide[0]);
            counter = _mm512_add_epi64(counter, four);
        }
        for (int round = 1; round < AES_ROUNDS; round++)
            for (int i = 0; i < AT_ONCE; i++) x[i] = _mm512_aesenc_epi128(x[i], wide[round]);
        for (int i = 0; i < AT_ONCE; i++) {
            void *at = total + 64 * i;
            __m512i mask = _mm512_aesenclast_epi128(x[i], wide[AES_ROUNDS]);
            _mm512_storeu_si512(at, moved_wide(_mm512_loadu_si512(at), mask, width, less));
        }
    }
}

/* Only GCC 11 and Clang 18 know "vaes" by name: older ones are asked by its bit, and whether the system keeps the vectors
 * by the names that all know. */
static int find_vaes(void) {
    unsigned int eax, ebx, ecx, edx;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx >> 9 & 1);
}
#else
static int find_vaes(void) { return 0; }
#endif

/* Adds the keystream from its first block to a total of words of 4 or 8 bytes, or takes it away; wide is for processors
 * of which find_vaes says so. */
WITH_AES static void add_keystream(const uint8_t *key, uint8_t *total, ptrdiff_t size, int width, int less, int wide) {
    __m128i keys[AES_ROUNDS + 1];
    uint8_t last[AES_CHUNK] = {0};
    ptrdiff_t done = 0;
    expand_key_256(key, keys);
#if SFUMATO_VAES
    if (wide) {
        add_wide_chunks(keys, 0, total, size / AES_WIDE_CHUNK, width, less);
        done = size - size % AES_WIDE_CHUNK;
    }
#endif
    (void)wide;
    add_chunks(keys, (uint64_t)done / 16, total + done, (size - done) / AES_CHUNK, width, less);
    done = size - size % AES_CHUNK;
    if (done < size) {
        memcpy(last, total + done, (size_t)(size - done));
        add_chunks(keys, (uint64_t)done / 16, last, 1, width, less);
        memcpy(total + done, last, (size_t)(size - done));
    }
}
#else
static int find_vaes(void) { return 0; }

static void add_keystream(const uint8_t *key, uint8_t *total, ptrdiff_t size, int width, int less, int wide) {
    (void)key; (void)total; (void)size; (void)width; (void)less; (void)wide;
}
#endif

#endif
