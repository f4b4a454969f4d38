/* Python's door to the kernels: every size, pointer and parameter is checked here, once per call. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_kernels.h"

#include "_counting.h"
#include "_keyed.h"
#include "_sums.h"

#define TABLE_NAME "sfumato.numerics._kernels.Table"
/* Shorter requests are done before another thread could use the lock. */
#define RELEASE_FROM 2048

typedef struct {
    const char *name;
    Progress (*direct)(const Table *, const uint64_t *, int64_t *, ptrdiff_t);
    Progress (*cells)(const Table *, Cell, const uint64_t *, int64_t *, ptrdiff_t);
    void (*group)(const Keyed *, uint64_t, uint32_t *);
    void (*transform)(const uint64_t *, double *);
    uint64_t (*round)(const uint64_t *, double, int64_t *, uint64_t *);
    void (*add_normals)(const Keyed *, uint64_t, void *, int, ptrdiff_t, double);
    void (*coins)(const uint64_t *, uint64_t, int, uint64_t *, ptrdiff_t);
    void (*bits)(const uint8_t *, ptrdiff_t, ptrdiff_t, int64_t *);
    void (*hashes)(const uint32_t *, const uint32_t *, const uint32_t *, ptrdiff_t, const uint32_t *, ptrdiff_t,
                   int64_t *);
} Variant;

#define VARIANT_OF(name)                                                                                            \
    {#name,          direct_##name,      cells_##name, group_##name, transform_##name,                              \
     round_##name,   add_normals_##name, coins_##name, bits_##name,  hashes_##name}

static const Variant VARIANTS[] = {
    VARIANT_OF(portable),
#if WIDE
    VARIANT_OF(avx2),
    VARIANT_OF(avx512),
#endif
};
#define VARIANT_COUNT ((int)(sizeof VARIANTS / sizeof *VARIANTS))

/* Set at import and by use(); all variants give the same bits. */
static int chosen = 0;

static int supported(int variant) {
#if WIDE
    __builtin_cpu_init();
    if (variant == 1)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (variant == 2)
        return supported(1) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw");
#endif
    return variant == 0;
}

static void capsule_free(PyObject *capsule) { table_free(PyCapsule_GetPointer(capsule, TABLE_NAME)); }

/* The 64-bit entries of a buffer, or -1 with an error set. */
static Py_ssize_t entries(const Py_buffer *buffer, const char *name) {
    if (buffer->len % 8 || (uintptr_t)buffer->buf % 8) {
        PyErr_Format(PyExc_ValueError, "%s must hold whole, aligned 64-bit integers", name);
        return -1;
    }
    return buffer->len / 8;
}

static PyObject *py_table(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer given;
    if (!PyArg_ParseTuple(args, "y*:table", &given)) return NULL;
    PyObject *capsule = NULL;
    const uint64_t *T = given.buf;
    Py_ssize_t count = entries(&given, "thresholds");
    if (count > MAX_THRESHOLDS) {
        PyErr_Format(PyExc_ValueError, "thresholds must number at most %d", MAX_THRESHOLDS);
        count = -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!T[i] || T[i] >> 63 || (i && T[i] > T[i - 1])) {
            PyErr_SetString(PyExc_ValueError, "thresholds must be positive, below 2**63 and not increase");
            count = -1;
        }
    }
    if (count >= 0) {
        Table *table = table_new(T, (uint32_t)count);
        if (!table) {
            PyErr_NoMemory();
        } else if (!(capsule = PyCapsule_New(table, TABLE_NAME, capsule_free))) {
            table_free(table);
        }
    }
    PyBuffer_Release(&given);
    return capsule;
}

/* Draws that `words` and `out` have room for, or -1 with an error set. */
static Py_ssize_t draws(const Py_buffer *words, const Py_buffer *out, int words_per_draw) {
    Py_ssize_t have = entries(words, "words"), room = entries(out, "out");
    if (have < 0 || room < 0) return -1;
    if (have % words_per_draw || have / words_per_draw > room) {
        PyErr_Format(PyExc_ValueError, "out must have room for one value per %d words", words_per_draw);
        return -1;
    }
    return have / words_per_draw;
}

static PyObject *py_direct(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *result = NULL;
    Py_buffer words, out;
    if (!PyArg_ParseTuple(args, "Oy*w*:direct", &capsule, &words, &out)) return NULL;
    const Table *table = PyCapsule_GetPointer(capsule, TABLE_NAME);
    Py_ssize_t n = table ? draws(&words, &out, 1) : -1;
    if (n >= 0) {
        PyThreadState *state = n >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        Progress p = VARIANTS[chosen].direct(table, words.buf, out.buf, n);
        if (state) PyEval_RestoreThread(state);
        result = Py_BuildValue("nn", (Py_ssize_t)p.consumed, (Py_ssize_t)p.produced);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&out);
    return result;
}

/* The proof of exp_minus needs g <= 1/8 in every cell of the table. A NaN fails the comparison. */
static int cell_fits(const Table *table, const Cell *cell) {
    if (cell->low_bits < 0 || cell->low_bits > 40) return 0;
    if (!(cell->alpha >= 0 && cell->beta >= 0 && cell->delta >= 0)) return 0;
    double position = (double)(((uint64_t)1 << cell->low_bits) - 1);
    return position * (cell->alpha * table->count + cell->beta * position + cell->delta) <= 0.125;
}

static PyObject *py_cells(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *result = NULL;
    Py_buffer words, out;
    Cell cell;
    if (!PyArg_ParseTuple(args, "Oy*w*iddd:cells", &capsule, &words, &out, &cell.low_bits, &cell.alpha, &cell.beta,
                          &cell.delta))
        return NULL;
    const Table *table = PyCapsule_GetPointer(capsule, TABLE_NAME);
    Py_ssize_t n = table ? draws(&words, &out, 2) : -1;
    if (n >= 0 && !cell_fits(table, &cell)) {
        PyErr_SetString(PyExc_ValueError, "the exponent of a cell must stay within [0, 1/8]");
        n = -1;
    }
    if (n >= 0) {
        PyThreadState *state = n >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        Progress p = VARIANTS[chosen].cells(table, cell, words.buf, out.buf, n);
        if (state) PyEval_RestoreThread(state);
        result = Py_BuildValue("nn", (Py_ssize_t)p.consumed, (Py_ssize_t)p.produced);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&out);
    return result;
}

/* A key of 32 bytes, little-endian; 0, or -1 with an error set. */
static int keyed_from(const Py_buffer *key, unsigned long long stream, Keyed *keyed) {
    if (key->len != 32) {
        PyErr_SetString(PyExc_ValueError, "a key must have 32 bytes");
        return -1;
    }
    const uint8_t *byte = key->buf;
    for (int i = 0; i < 8; i++, byte += 4)
        keyed->key[i] = byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
    keyed->stream = stream;
    return 0;
}

static PyObject *py_keystream(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer key, out;
    unsigned long long stream, counter;
    Keyed keyed;
    if (!PyArg_ParseTuple(args, "y*KKw*:keystream", &key, &stream, &counter, &out)) return NULL;
    int bad = keyed_from(&key, stream, &keyed);
    uint32_t words[GROUP_WORDS];
    uint8_t *byte = out.buf;
    for (Py_ssize_t at = 0; !bad && at < out.len; at++, byte++) {
        uint64_t block = counter + (uint64_t)at / 64;
        if (at == 0 || (at % 64 == 0 && block % ROW == 0))
            VARIANTS[chosen].group(&keyed, block - block % ROW, words);
        *byte = (uint8_t)(words[at % 64 / 4 * ROW + (ptrdiff_t)(block % ROW)] >> (at % 4 * 8));
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&out);
    return bad ? NULL : Py_NewRef(Py_None);
}

static PyObject *py_add_normals(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer key, out;
    unsigned long long stream, start;
    double scale;
    int wide;
    Keyed keyed;
    if (!PyArg_ParseTuple(args, "y*KKw*pd:add_normals", &key, &stream, &start, &out, &wide, &scale)) return NULL;
    int size = wide ? 8 : 4, bad = keyed_from(&key, stream, &keyed);
    if (!bad && (out.len % size || (uintptr_t)out.buf % (uintptr_t)size)) {
        PyErr_SetString(PyExc_ValueError, "out must hold whole, aligned floats");
        bad = -1;
    }
    if (!bad) {
        Py_ssize_t n = out.len / size;
        PyThreadState *state = n >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        VARIANTS[chosen].add_normals(&keyed, start, out.buf, wide, n, scale);
        if (state) PyEval_RestoreThread(state);
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&out);
    return bad ? NULL : Py_NewRef(Py_None);
}

static PyObject *py_normals_of(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer words, out;
    if (!PyArg_ParseTuple(args, "y*w*:normals_of", &words, &out)) return NULL;
    Py_ssize_t have = entries(&words, "words"), room = have < 0 ? -1 : entries(&out, "out");
    int bad = room < 0;
    if (!bad && (have != GROUP || room != GROUP)) {
        PyErr_Format(PyExc_ValueError, "words and out must have %d entries", GROUP);
        bad = 1;
    }
    if (!bad) VARIANTS[chosen].transform(words.buf, out.buf);
    PyBuffer_Release(&words);
    PyBuffer_Release(&out);
    return bad ? NULL : Py_NewRef(Py_None);
}

/* Rounded numbers from a position on; the open positions, as many as there is room for. Returns how many are. */
static ptrdiff_t rounded_normals(const Keyed *keyed, uint64_t start, double scale, int64_t *out, ptrdiff_t n,
                                 int64_t *positions, ptrdiff_t room) {
    uint32_t words[GROUP_WORDS];
    uint64_t q[GROUP], open[GROUP];
    int64_t whole[GROUP];
    ptrdiff_t found = 0;
    for (ptrdiff_t at = 0, m; at < n; at += m) {
        uint64_t position = start + (uint64_t)at;
        ptrdiff_t from = (ptrdiff_t)(position % GROUP);
        m = GROUP - from < n - at ? GROUP - from : n - at;
        VARIANTS[chosen].group(keyed, position / GROUP * ROW, words);
        paired(words, q);
        uint64_t any = VARIANTS[chosen].round(q, scale, whole, open);
        memcpy(out + at, whole + from, sizeof *out * (size_t)m);
        for (ptrdiff_t i = 0; any && i < m; i++) {
            if (!open[from + i]) continue;
            if (found < room) positions[found] = at + i;
            found++;
        }
    }
    return found;
}

static PyObject *py_rounded_normals(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer key, out, positions;
    unsigned long long stream, start;
    double scale;
    Keyed keyed;
    if (!PyArg_ParseTuple(args, "y*KKw*dw*:rounded_normals", &key, &stream, &start, &out, &scale, &positions))
        return NULL;
    int bad = keyed_from(&key, stream, &keyed);
    Py_ssize_t n = bad ? -1 : entries(&out, "out"), room = n < 0 ? -1 : entries(&positions, "positions");
    if (room >= 0 && !(scale >= 0 && scale <= 0x1p46)) {
        PyErr_SetString(PyExc_ValueError, "scale must be at least 0 and at most 2**46");
        room = -1;
    }
    ptrdiff_t found = 0;
    if (room >= 0) {
        PyThreadState *state = n >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        found = rounded_normals(&keyed, start, scale, out.buf, n, positions.buf, room);
        if (state) PyEval_RestoreThread(state);
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&out);
    PyBuffer_Release(&positions);
    return room < 0 ? NULL : PyLong_FromSsize_t(found);
}

static PyObject *py_coins(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer words, out;
    unsigned long long threshold;
    int bits;
    if (!PyArg_ParseTuple(args, "y*Kiw*:coins", &words, &threshold, &bits, &out)) return NULL;
    Py_ssize_t have = entries(&words, "words"), n = have < 0 ? -1 : entries(&out, "out");
    if (n >= 0 && (bits < 1 || bits > 64 || n > PY_SSIZE_T_MAX / 64 || have != n * bits)) {
        PyErr_SetString(PyExc_ValueError, "words must hold `bits` times as many as out, for 1 to 64 bits");
        n = -1;
    }
    if (n >= 0) {
        PyThreadState *state = have >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        VARIANTS[chosen].coins(words.buf, threshold, bits, out.buf, n);
        if (state) PyEval_RestoreThread(state);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&out);
    return n < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *py_count_bits(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer rows, counts;
    Py_ssize_t width;
    if (!PyArg_ParseTuple(args, "y*nw*:count_bits", &rows, &width, &counts)) return NULL;
    Py_ssize_t room = entries(&counts, "counts");
    if (room >= 0 && (width < 1 || rows.len % width || room % 8 || room / 8 != width)) {
        PyErr_SetString(PyExc_ValueError, "rows must be of `width` bytes, and counts of 8 per byte");
        room = -1;
    }
    if (room >= 0) {
        PyThreadState *state = rows.len >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        VARIANTS[chosen].bits(rows.buf, rows.len / width, width, counts.buf);
        if (state) PyEval_RestoreThread(state);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&counts);
    return room < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *py_count_hashes(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer at[4], counts;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*:count_hashes", &at[0], &at[1], &at[2], &at[3], &counts)) return NULL;
    Py_ssize_t room = entries(&counts, "counts");
    int bad = room < 0;
    for (int i = 0; i < 4 && !bad; i++) bad = at[i].len % 4 || (uintptr_t)at[i].buf % 4;
    bad = bad || at[1].len != at[0].len || at[2].len != at[0].len || at[3].len / 4 != room;
    if (room >= 0 && bad)
        PyErr_SetString(PyExc_ValueError, "seeds, lows and spans must be as many whole, aligned 32-bit integers, "
                                          "and counts as many as keys");
    if (!bad) {
        PyThreadState *state = at[0].len >= RELEASE_FROM ? PyEval_SaveThread() : NULL;
        VARIANTS[chosen].hashes(at[0].buf, at[1].buf, at[2].buf, at[0].len / 4, at[3].buf, room, counts.buf);
        if (state) PyEval_RestoreThread(state);
    }
    for (int i = 0; i < 4; i++) PyBuffer_Release(&at[i]);
    PyBuffer_Release(&counts);
    return bad ? NULL : Py_NewRef(Py_None);
}

static PyObject *py_pair_sums(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer at[5], sums;
    double deviation, *block = NULL;
    int product, same;
    Cells c = {.ends = NULL, .guide = NULL};
    if (!PyArg_ParseTuple(args, "y*dy*y*y*y*ppw*:pair_sums", &at[4], &deviation, &at[0], &at[1], &at[2], &at[3],
                          &product, &same, &sums))
        return NULL;
    int bad = sums.len < 16 || sums.len % 16 || (uintptr_t)sums.buf % 8;
    for (int i = 0; i < 5 && !bad; i++) bad = at[i].len % 8 || (uintptr_t)at[i].buf % 8;
    bad = bad || at[0].len != at[1].len || at[2].len != at[3].len || (same && at[0].len != at[2].len);
    bad = bad || at[4].len / 8 != sums.len / 16 + 1 || sums.len / 16 > INT32_MAX || !(deviation >= 1e-200);
    const double *edges = at[4].buf;
    for (Py_ssize_t k = 0; !bad && k < at[4].len / 8; k++)
        bad = !(edges[k] > 0 && edges[k] < INFINITY) || (k && edges[k] < edges[k - 1]);
    if (bad) {
        PyErr_SetString(PyExc_ValueError, "values and masses must be as many aligned floats, sums a pair for each cell, "
                                          "and edges positive, finite and rising");
    } else if (!cells_guide(&c, deviation, edges, sums.len / 16) || !(block = calloc((size_t)c.cells, 2 * sizeof *block))) {
        PyErr_NoMemory();
    } else {
        PyThreadState *state = PyEval_SaveThread();
        pair_sums(&c, at[0].buf, at[1].buf, at[0].len / 8, at[2].buf, at[3].buf, at[2].len / 8, product, same, block,
                  sums.buf);
        PyEval_RestoreThread(state);
    }
    for (int i = 0; i < 5; i++) PyBuffer_Release(&at[i]);
    PyBuffer_Release(&sums);
    int done = block != NULL;
    free(c.ends);
    free(c.guide);
    free(block);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_variants(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i < VARIANT_COUNT; i++) {
        PyObject *name = supported(i) ? PyUnicode_FromString(VARIANTS[i].name) : NULL;
        if (!name) continue;
        if (PyList_Append(names, name)) Py_CLEAR(names);
        Py_DECREF(name);
    }
    return names;
}

static PyObject *py_use(PyObject *self, PyObject *args) {
    (void)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s:use", &name)) return NULL;
    for (int i = 0; i < VARIANT_COUNT; i++) {
        if (!strcmp(name, VARIANTS[i].name) && supported(i)) {
            chosen = i;
            Py_RETURN_NONE;
        }
    }
    PyErr_SetString(PyExc_ValueError, "this processor has no such variant");
    return NULL;
}

static int module_exec(PyObject *module) {
    (void)module;
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (supported(i)) chosen = i;
    return 0;
}

static PyMethodDef methods[] = {
    {"table", py_table, METH_VARARGS, "table(thresholds) -> capsule: an immutable lookup table."},
    {"direct", py_direct, METH_VARARGS,
     "direct(table, words, out) -> (consumed, produced): signed draws, one word each, up to the first open one."},
    {"cells", py_cells, METH_VARARGS,
     "cells(table, words, out, low_bits, alpha, beta, delta) -> (consumed, produced): signed draws by cell and "
     "rejection, two words each, up to the first open one."},
    {"keystream", py_keystream, METH_VARARGS,
     "keystream(key, stream, counter, out): ChaCha20's bytes from a block on, the stream being the nonce."},
    {"normals_of", py_normals_of, METH_VARARGS,
     "normals_of(words, out): the 128 normal numbers of a group's words."},
    {"add_normals", py_add_normals, METH_VARARGS,
     "add_normals(key, stream, start, out, wide, scale): add normal numbers to floats, from a position on."},
    {"rounded_normals", py_rounded_normals, METH_VARARGS,
     "rounded_normals(key, stream, start, out, scale, positions) -> int: normal numbers rounded to integers; how many, "
     "of which the positions are in `positions`, are not decided."},
    {"coins", py_coins, METH_VARARGS,
     "coins(words, threshold, bits, out): 64 coins a word, of chance threshold / 2**bits, from `bits` words each."},
    {"count_bits", py_count_bits, METH_VARARGS,
     "count_bits(rows, width, counts): add to each count how many rows of `width` bytes have that bit."},
    {"count_hashes", py_count_hashes, METH_VARARGS,
     "count_hashes(seeds, lows, spans, keys, counts): add for each key how many seeds hash it to within their span."},
    {"pair_sums", py_pair_sums, METH_VARARGS,
     "pair_sums(edges, deviation, a, p, b, q, product, same, sums): add masses p q of sums or products of a and b, and "
     "masses times values, to the cells of their values."},
    {"variants", py_variants, METH_NOARGS, "variants() -> list: instruction sets that this processor can run."},
    {"use", py_use, METH_VARARGS, "use(variant): run this one from now on; the bits stay the same."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "sfumato.numerics._kernels", .m_doc = "Exact sampling kernels.",
    .m_size = 0,           .m_methods = methods,                  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
