/* Fixed-key AES-128 as a hash of 16-byte blocks (Guo, Katz, Wang, Weng and Yu, 2020), by the processor's AES
 * instructions. Where there are none, Python asks `cryptography` instead. */
#ifndef SFUMATO_AES_H
#define SFUMATO_AES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define WITH_AES __attribute__((target("aes,sse2")))
#define AT_ONCE 8
#define EXPAND(i, constant) keys[i] = next_key(keys[i - 1], _mm_aeskeygenassist_si128(keys[i - 1], constant))

WITH_AES static inline __m128i next_key(__m128i key, __m128i helper) {
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
    return _mm_xor_si128(key, _mm_shuffle_epi32(helper, 0xff));
}

WITH_AES static inline void expand_key(const uint8_t *key, __m128i keys[11]) {
    keys[0] = _mm_loadu_si128((const __m128i *)key);
    EXPAND(1, 0x01); EXPAND(2, 0x02); EXPAND(3, 0x04); EXPAND(4, 0x08); EXPAND(5, 0x10);
    EXPAND(6, 0x20); EXPAND(7, 0x40); EXPAND(8, 0x80); EXPAND(9, 0x1b); EXPAND(10, 0x36);
}

/* Block i of a seed's output: AES(s) ^ s with s = sigma(seed ^ i) and sigma(low, high) = (high, high ^ low). */
WITH_AES static void hash_row(const uint8_t *key, const uint8_t *seeds, uint8_t *out, ptrdiff_t count,
                              ptrdiff_t blocks) {
    __m128i keys[11], before[AT_ONCE], x[AT_ONCE];
    const __m128i upper = _mm_set_epi64x(-1, 0);
    expand_key(key, keys);
    for (ptrdiff_t start = 0; start < count * blocks; start += AT_ONCE) {
        int many = (int)(count * blocks - start < AT_ONCE ? count * blocks - start : AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++) {
            ptrdiff_t block = start + (i < many ? i : 0);
            __m128i seed = _mm_loadu_si128((const __m128i *)(seeds + block / blocks * 16));
            seed = _mm_xor_si128(seed, _mm_set_epi64x(0, (int64_t)(block % blocks)));
            before[i] = _mm_xor_si128(_mm_shuffle_epi32(seed, 0x4e), _mm_and_si128(seed, upper));
            x[i] = _mm_xor_si128(before[i], keys[0]);
        }
        for (int round = 1; round < 10; round++)
            for (int i = 0; i < AT_ONCE; i++) x[i] = _mm_aesenc_si128(x[i], keys[round]);
        for (int i = 0; i < many; i++)
            _mm_storeu_si128((__m128i *)(out + (start + i) * 16),
                             _mm_xor_si128(_mm_aesenclast_si128(x[i], keys[10]), before[i]));
    }
}

static int has_aes(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("aes") != 0;
}
#else
static void hash_row(const uint8_t *key, const uint8_t *seeds, uint8_t *out, ptrdiff_t count, ptrdiff_t blocks) {
    (void)key; (void)seeds; (void)out; (void)count; (void)blocks;
}

static int has_aes(void) { return 0; }
#endif

#endif
