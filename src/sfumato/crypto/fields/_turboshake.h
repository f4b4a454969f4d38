/* TurboSHAKE128 (RFC 9861): the sponge over Keccak-p[1600] of 12 rounds, with a rate of 168 bytes. */
#ifndef SFUMATO_TURBOSHAKE_H
#define SFUMATO_TURBOSHAKE_H

#include <stdint.h>
#include <string.h>

#define RATE 168
#define LANES 21

static inline uint64_t turned(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline uint64_t lane_of(const uint8_t *at) {
    uint64_t x = 0;
    for (int i = 0; i < 8; i++) x |= (uint64_t)at[i] << 8 * i;
    return x;
}

/* The last 12 of the 24 round constants of FIPS 202. */
static const uint64_t ROUNDS[12] = {
    0x000000008000808bu, 0x800000000000008bu, 0x8000000000008089u, 0x8000000000008003u,
    0x8000000000008002u, 0x8000000000000080u, 0x000000000000800au, 0x800000008000000au,
    0x8000000080008081u, 0x8000000000008080u, 0x0000000080000001u, 0x8000000080008008u,
};

#define TO(from, by, lane) b[lane] = turned(s[from] ^ d[from % 5], by)

static void permute(uint64_t *restrict s) {
    uint64_t b[25], c[5], d[5];
    for (int round = 0; round < 12; round++) {
        for (int x = 0; x < 5; x++) c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
        for (int x = 0; x < 5; x++) d[x] = c[(x + 4) % 5] ^ turned(c[(x + 1) % 5], 1);
        b[0] = s[0] ^ d[0];
        TO(1, 1, 10); TO(2, 62, 20); TO(3, 28, 5); TO(4, 27, 15);
        TO(5, 36, 16); TO(6, 44, 1); TO(7, 6, 11); TO(8, 55, 21); TO(9, 20, 6);
        TO(10, 3, 7); TO(11, 10, 17); TO(12, 43, 2); TO(13, 25, 12); TO(14, 39, 22);
        TO(15, 41, 23); TO(16, 45, 8); TO(17, 15, 18); TO(18, 21, 3); TO(19, 8, 13);
        TO(20, 18, 14); TO(21, 2, 24); TO(22, 61, 9); TO(23, 56, 19); TO(24, 14, 4);
        for (int y = 0; y < 25; y += 5)
            for (int x = 0; x < 5; x++) s[y + x] = b[y + x] ^ (~b[y + (x + 1) % 5] & b[y + (x + 2) % 5]);
        s[0] ^= ROUNDS[round];
    }
}

/* A sponge that has absorbed a message and is about to give its first lane. */
typedef struct {
    uint64_t state[25];
    int lane;
} Sponge;

static void absorb(Sponge *sponge, const uint8_t *message, ptrdiff_t size, uint8_t domain) {
    uint8_t last[RATE] = {0};
    memset(sponge, 0, sizeof *sponge);
    for (; size >= RATE; size -= RATE, message += RATE) {
        for (int i = 0; i < LANES; i++) sponge->state[i] ^= lane_of(message + 8 * i);
        permute(sponge->state);
    }
    if (size) memcpy(last, message, (size_t)size);
    last[size] = domain;
    last[RATE - 1] ^= 0x80;
    for (int i = 0; i < LANES; i++) sponge->state[i] ^= lane_of(last + 8 * i);
    permute(sponge->state);
}

static inline uint64_t squeeze(Sponge *sponge) {
    if (sponge->lane == LANES) {
        permute(sponge->state);
        sponge->lane = 0;
    }
    return sponge->state[sponge->lane++];
}

#endif
