/* One instruction set's ChaCha20 and normal numbers: included by _keyed.h, once for each. */

#if LANES == 1
typedef uint32_t JOIN(Lanes, VARIANT);
#else
typedef uint32_t JOIN(Lanes, VARIANT) __attribute__((vector_size(4 * LANES)));
#endif

#define TURN(x, n) x = x << n | x >> (32 - n)
#define QUARTER(a, b, c, d)                                                                                        \
    a += b, d ^= a, TURN(d, 16), c += d, b ^= c, TURN(b, 12), a += b, d ^= a, TURN(d, 8), c += d, b ^= c, TURN(b, 7)

/* The words of the blocks counter, counter + 1, ... counter + 15; the counter is a multiple of 16. */
TARGET static void JOIN(group, VARIANT)(const Keyed *keyed, uint64_t counter, uint32_t *restrict words) {
    typedef JOIN(Lanes, VARIANT) Lanes;
    const Lanes zero = {0};
    const uint32_t *k = keyed->key;
    for (int first = 0; first < ROW; first += LANES) {
        uint32_t low[LANES];
        for (int l = 0; l < LANES; l++) low[l] = (uint32_t)counter + (uint32_t)(first + l);
        Lanes count;
        memcpy(&count, low, sizeof count);
        const Lanes start[16] = {
            zero + 0x61707865u, zero + 0x3320646eu, zero + 0x79622d32u, zero + 0x6b206574u,
            zero + k[0], zero + k[1], zero + k[2], zero + k[3],
            zero + k[4], zero + k[5], zero + k[6], zero + k[7],
            count, zero + (uint32_t)(counter >> 32), zero + (uint32_t)keyed->stream,
            zero + (uint32_t)(keyed->stream >> 32)};
        Lanes x0 = start[0], x1 = start[1], x2 = start[2], x3 = start[3], x4 = start[4], x5 = start[5], x6 = start[6],
              x7 = start[7], x8 = start[8], x9 = start[9], x10 = start[10], x11 = start[11], x12 = start[12],
              x13 = start[13], x14 = start[14], x15 = start[15];
        for (int round = 0; round < 10; round++) {
            QUARTER(x0, x4, x8, x12);
            QUARTER(x1, x5, x9, x13);
            QUARTER(x2, x6, x10, x14);
            QUARTER(x3, x7, x11, x15);
            QUARTER(x0, x5, x10, x15);
            QUARTER(x1, x6, x11, x12);
            QUARTER(x2, x7, x8, x13);
            QUARTER(x3, x4, x9, x14);
        }
        Lanes end[16] = {x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15};
        for (int j = 0; j < 16; j++) {
            end[j] += start[j];
            memcpy(words + ROW * j + first, &end[j], sizeof end[j]);
        }
    }
}

/* The normal numbers of a group's words. */
TARGET static void JOIN(transform, VARIANT)(const uint64_t *restrict q, double *restrict z) {
    for (int i = 0; i < PAIRS; i++) {
        Pair pair = normal_pair(q[i], q[i + PAIRS]);
        z[i] = pair.x;
        z[i + PAIRS] = pair.y;
    }
}

/* out[0 .. n) += scale times the stream's normal numbers from position `start` on. */
TARGET static void JOIN(add_normals, VARIANT)(const Keyed *keyed, uint64_t start, void *out, int wide, ptrdiff_t n,
                                              double scale) {
    uint32_t words[GROUP_WORDS];
    uint64_t q[GROUP];
    double z[GROUP];
    for (ptrdiff_t at = 0; at < n;) {
        uint64_t position = start + (uint64_t)at;
        ptrdiff_t from = (ptrdiff_t)(position % GROUP), m = GROUP - from < n - at ? GROUP - from : n - at;
        JOIN(group, VARIANT)(keyed, position / GROUP * ROW, words);
        paired(words, q);
        JOIN(transform, VARIANT)(q, z);
        if (m == GROUP)
            accumulate(out, wide, at, z, GROUP, scale);
        else
            accumulate(out, wide, at, z + from, m, scale);
        at += m;
    }
}

/* A group's rounded numbers; nonzero where any is open. */
TARGET static uint64_t JOIN(round, VARIANT)(const uint64_t *restrict q, double scale, int64_t *restrict whole,
                                            uint64_t *restrict open) {
    uint64_t any = 0;
    for (int i = 0; i < PAIRS; i++) {
        Pair pair = normal_pair(q[i], q[i + PAIRS]);
        whole[i] = rounded(pair.x, scale, pair, &open[i]);
        whole[i + PAIRS] = rounded(pair.y, scale, pair, &open[i + PAIRS]);
        any |= open[i] | open[i + PAIRS];
    }
    return any;
}

#undef QUARTER
#undef TURN
#undef VARIANT
#undef TARGET
#undef LANES
