/* Python's door to the fields, to TurboSHAKE128 and to AES: every size is checked here, once per call. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_aes.h"
#include "_ctr.h"
#include "_field.h"
#include "_field_255.h"
#include "_turboshake.h"

/* Whole, aligned elements of a buffer, or -1 with an error set. */
static Py_ssize_t elements(const Py_buffer *buffer, int limbs) {
    if ((limbs != 1 && limbs != 2 && limbs != 4) || buffer->len % (8 * limbs) || (uintptr_t)buffer->buf % 8) {
        PyErr_SetString(PyExc_ValueError, "vectors must hold whole, aligned elements of one, two or four limbs");
        return -1;
    }
    return buffer->len / (8 * limbs);
}

static PyObject *finish(Py_buffer *buffers, int count, int good, const char *rule) {
    for (int i = 0; i < count; i++) PyBuffer_Release(&buffers[i]);
    if (good) Py_RETURN_NONE;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, rule);
    return NULL;
}

static PyObject *py_combine(PyObject *self, PyObject *args) {
    (void)self;
    int limbs, kind;
    Py_buffer at[3];
    if (!PyArg_ParseTuple(args, "iiy*y*w*:combine", &limbs, &kind, &at[0], &at[1], &at[2])) return NULL;
    Py_ssize_t count = elements(&at[2], limbs);
    int good = count >= 0 && at[0].len == at[2].len && at[1].len == at[2].len && kind >= 0 && kind < 3 &&
               elements(&at[0], limbs) >= 0 && elements(&at[1], limbs) >= 0;
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        (limbs == 1 ? combine_64 : limbs == 2 ? combine_128 : combine_255)(kind, at[0].buf, at[1].buf, at[2].buf, count);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 3, good, "a, b and out must be as long");
}

static PyObject *py_dots(PyObject *self, PyObject *args) {
    (void)self;
    int limbs, alone;
    Py_ssize_t inner, period;
    Py_buffer at[3];
    if (!PyArg_ParseTuple(args, "ipnny*y*w*:dots", &limbs, &alone, &inner, &period, &at[0], &at[1], &at[2])) return NULL;
    Py_ssize_t groups = elements(&at[2], limbs), first = elements(&at[0], limbs), second = elements(&at[1], limbs);
    int good = groups >= 0 && first >= 0 && second >= 0 && inner > 0 && period > 0 && first / inner == groups &&
               first % inner == 0 && (alone || (groups % period == 0 && second % inner == 0 &&
                                                second / inner == groups / period));
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        (limbs == 1 ? dots_64 : limbs == 2 ? dots_128 : dots_255)(at[0].buf, alone ? NULL : at[1].buf, inner, period,
                                                                 at[2].buf, groups);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 3, good, "out must have one element for each group, and b one group for each period");
}

/* Sums of rows times weights, or where paired of the products of each two rows; weights are not read then. */
static PyObject *py_row_sums(PyObject *self, PyObject *args) {
    (void)self;
    int limbs, paired;
    Py_ssize_t inner, count;
    Py_buffer at[3];
    if (!PyArg_ParseTuple(args, "ipnny*y*w*:row_sums", &limbs, &paired, &inner, &count, &at[0], &at[1], &at[2]))
        return NULL;
    Py_ssize_t rows = elements(&at[0], limbs), weights = elements(&at[1], limbs), out = elements(&at[2], limbs);
    int good = limbs < 4 && rows >= 0 && weights >= 0 && out >= 0 && inner > 0 && count > 0 && out % inner == 0 &&
               rows % inner == 0 && rows / inner % count == 0 && rows / inner / count == out / inner &&
               (paired ? count % 2 == 0 : weights == rows / inner);
    if (good) {
        Py_ssize_t groups = out / inner;
        Py_BEGIN_ALLOW_THREADS
        if (paired) (limbs == 1 ? paired_products_64 : paired_products_128)(at[0].buf, inner, count / 2, at[2].buf, groups);
        else (limbs == 1 ? combined_rows_64 : combined_rows_128)(at[0].buf, at[1].buf, inner, count, at[2].buf, groups);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 3, good, "out must have inner elements for each group of count rows of a, an even count where paired");
}

static PyObject *py_doubled(PyObject *self, PyObject *args) {
    (void)self;
    int limbs;
    Py_ssize_t size;
    Py_buffer at[5];
    if (!PyArg_ParseTuple(args, "iny*y*y*y*w*:doubled", &limbs, &size, &at[0], &at[1], &at[2], &at[3], &at[4])) return NULL;
    Py_ssize_t counts[5];
    int good = limbs < 4 && size > 0 && !(size & (size - 1));
    for (int i = 0; i < 5; i++) good = (counts[i] = elements(&at[i], limbs)) >= 0 && good;
    good = good && counts[0] % size == 0 && counts[4] % 2 == 0 && counts[4] / 2 == counts[0] && counts[1] >= size / 2 &&
           counts[2] >= size && counts[3] >= size / 2;
    uint64_t *scratch = good ? malloc((size_t)size * 8 * (size_t)limbs) : NULL;
    if (scratch) {
        Py_BEGIN_ALLOW_THREADS
        (limbs == 1 ? doubled_64 : doubled_128)(at[0].buf, size, counts[0] / size, at[1].buf, at[2].buf, at[3].buf,
                                                scratch, at[4].buf);
        Py_END_ALLOW_THREADS
        free(scratch);
    } else if (good) {
        good = 0;
        PyErr_NoMemory();
    }
    return finish(at, 5, good, "rows must be of a power of two, out twice as long, and the tables long enough");
}

static PyObject *py_pairs(PyObject *self, PyObject *args) {
    (void)self;
    int limbs;
    Py_ssize_t inner;
    Py_buffer at[4];
    if (!PyArg_ParseTuple(args, "iny*y*y*w*:pairs", &limbs, &inner, &at[0], &at[1], &at[2], &at[3])) return NULL;
    Py_ssize_t groups = elements(&at[0], limbs), count = elements(&at[1], limbs), out = elements(&at[3], limbs);
    int good = limbs < 4 && groups >= 0 && count >= 0 && out >= 0 && elements(&at[2], limbs) == 1 && inner > 0 &&
               count / inner == groups && count % inner == 0 && out / 2 == count && out % 2 == 0;
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        (limbs == 1 ? pairs_64 : pairs_128)(at[0].buf, at[1].buf, at[2].buf, inner, at[3].buf, groups);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 4, good, "x must have inner elements of one or two limbs for each of r, and out twice as many");
}

static PyObject *py_transform(PyObject *self, PyObject *args) {
    (void)self;
    int limbs;
    Py_ssize_t size;
    Py_buffer at[2];
    if (!PyArg_ParseTuple(args, "inw*y*:transform", &limbs, &size, &at[0], &at[1])) return NULL;
    Py_ssize_t count = elements(&at[0], limbs), table = elements(&at[1], limbs);
    int good = limbs < 4 && count >= 0 && table >= 0 && size > 0 && !(size & (size - 1)) && count % size == 0 && table >= size / 2;
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        (limbs == 1 ? transform_64 : transform_128)(at[0].buf, size, count / size, at[1].buf);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 2, good, "rows must be of a power of two and of one or two limbs, and the table of half of it");
}

static PyObject *py_invert(PyObject *self, PyObject *args) {
    (void)self;
    int limbs, good = 0;
    Py_buffer at[1];
    if (!PyArg_ParseTuple(args, "iw*:invert", &limbs, &at[0])) return NULL;
    Py_ssize_t count = elements(&at[0], limbs);
    uint64_t *before = count < 0 || limbs > 2 ? NULL : malloc((size_t)at[0].len + 1);
    if (before) {
        Py_BEGIN_ALLOW_THREADS
        good = limbs == 1 ? invert_64(at[0].buf, count, before, P64 - 2) : invert_128(at[0].buf, count, before, P128 - 2);
        Py_END_ALLOW_THREADS
        free(before);
    } else if (count >= 0 && limbs <= 2) {
        PyErr_NoMemory();
    }
    return finish(at, 1, good, "values must not be zero, and of one or two limbs");
}

static void bytes_of(const uint8_t *messages, Py_ssize_t size, int domain, uint8_t *out, Py_ssize_t each,
                     Py_ssize_t rows) {
    for (Py_ssize_t row = 0; row < rows; row++) {
        Sponge sponge;
        absorb(&sponge, messages + row * size, size, (uint8_t)domain);
        for (Py_ssize_t i = 0; i < each; i += 8) {
            uint64_t lane = squeeze(&sponge);
            for (Py_ssize_t k = 0; k < 8 && i + k < each; k++) out[row * each + i + k] = (uint8_t)(lane >> 8 * k);
        }
    }
}

/* Elements by rejection: what is not below the modulus is passed over. */
static void elements_of(int limbs, const uint8_t *messages, Py_ssize_t size, int domain, uint64_t *out, Py_ssize_t each,
                        Py_ssize_t rows) {
    for (Py_ssize_t row = 0; row < rows; row++) {
        Sponge sponge;
        absorb(&sponge, messages + row * size, size, (uint8_t)domain);
        for (Py_ssize_t i = 0; limbs == 4 && i < each;) {
            quad x;
            for (int k = 0; k < 4; k++) x.limb[k] = squeeze(&sponge);
            x.limb[3] &= P255.limb[3];
            quad rest;
            if (less_255(x, P255, &rest)) store_255(out, row * each + i++, x);
        }
        for (Py_ssize_t i = 0; limbs < 4 && i < each;) {
            wide x = squeeze(&sponge);
            if (limbs == 2) x |= (wide)squeeze(&sponge) << 64;
            if (x >= (limbs == 1 ? P64 : P128)) continue;
            if (limbs == 1) store_64(out, row * each + i++, (uint64_t)x);
            else store_128(out, row * each + i++, x);
        }
    }
}

static PyObject *py_turboshake(PyObject *self, PyObject *args) {
    (void)self;
    int limbs, domain;
    Py_ssize_t rows;
    Py_buffer at[2];
    if (!PyArg_ParseTuple(args, "iiny*w*:turboshake", &limbs, &domain, &rows, &at[0], &at[1])) return NULL;
    Py_ssize_t count = limbs == 0 ? at[1].len : elements(&at[1], limbs);
    int good = count >= 0 && rows > 0 && domain > 0 && domain < 128 && at[0].len % rows == 0 && count % rows == 0;
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        if (limbs == 0) bytes_of(at[0].buf, at[0].len / rows, domain, at[1].buf, count / rows, rows);
        else elements_of(limbs, at[0].buf, at[0].len / rows, domain, at[1].buf, count / rows, rows);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 2, good, "messages and out must be whole rows, and the domain from 1 to 127");
}

static PyObject *py_fixed_key_aes(PyObject *self, PyObject *args) {
    (void)self;
    Py_ssize_t rows, blocks;
    Py_buffer at[3];
    if (!PyArg_ParseTuple(args, "nny*y*w*:fixed_key_aes", &rows, &blocks, &at[0], &at[1], &at[2])) return NULL;
    int good = rows > 0 && blocks > 0 && at[0].len % 16 == 0 && at[0].len / 16 == rows && at[1].len % at[0].len == 0 &&
               at[2].len % blocks == 0 && at[2].len / blocks == at[1].len && has_aes();
    if (good) {
        Py_ssize_t each = at[1].len / rows;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t row = 0; row < rows; row++)
            hash_row((const uint8_t *)at[0].buf + 16 * row, (const uint8_t *)at[1].buf + each * row,
                     (uint8_t *)at[2].buf + each * blocks * row, each / 16, blocks);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 3, good, "keys must have 16 bytes a row, seeds whole blocks, and out as many for each seed");
}

/* Found once: to ask a processor takes longer than to mask a short vector. */
static int vaes;

static PyObject *py_add_keystream(PyObject *self, PyObject *args) {
    (void)self;
    int width, less, narrow;
    Py_buffer at[2];
    if (!PyArg_ParseTuple(args, "ippy*w*:add_keystream", &width, &less, &narrow, &at[0], &at[1])) return NULL;
    int good = (width == 4 || width == 8) && at[0].len == 32 && at[1].len % width == 0 && has_aes();
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        add_keystream(at[0].buf, at[1].buf, at[1].len, width, less, vaes && !narrow);
        Py_END_ALLOW_THREADS
    }
    return finish(at, 2, good, "the key must have 32 bytes, and the total whole words of 4 or 8 bytes");
}

static PyObject *py_has_aes(PyObject *self, PyObject *args) {
    (void)self;
    (void)args;
    return PyBool_FromLong(has_aes());
}

static PyMethodDef methods[] = {
    {"combine", py_combine, METH_VARARGS, "combine(limbs, kind, a, b, out): a + b, a - b or a * b, kind 0, 1 or 2."},
    {"dots", py_dots, METH_VARARGS,
     "dots(limbs, alone, inner, period, a, b, out): sums of a * b, or of a alone, over groups of inner elements; group g "
     "of a meets group g // period of b."},
    {"row_sums", py_row_sums, METH_VARARGS,
     "row_sums(limbs, paired, inner, count, a, weights, out): for each group of count rows of inner elements, the sum of "
     "rows times weights, or where paired the sum of the products of each two rows."},
    {"doubled", py_doubled, METH_VARARGS,
     "doubled(limbs, size, rows, back, between, ahead, out): values at a root's powers, and between them at those of a "
     "root of it; tables of the root's inverse, of the finer root over size by reversed bits, and of the root."},
    {"pairs", py_pairs, METH_VARARGS,
     "pairs(limbs, inner, r, x, less, out): for each r and its inner elements x, r^(i + 1) x_i and x_i - less in turn."},
    {"transform", py_transform, METH_VARARGS,
     "transform(limbs, size, rows, table): number-theoretic transforms in place, table the powers of the root."},
    {"invert", py_invert, METH_VARARGS, "invert(limbs, values): inverses in place."},
    {"turboshake", py_turboshake, METH_VARARGS,
     "turboshake(limbs, domain, rows, messages, out): TurboSHAKE128 of each row, as bytes where limbs is 0, else as "
     "field elements by rejection."},
    {"fixed_key_aes", py_fixed_key_aes, METH_VARARGS,
     "fixed_key_aes(rows, blocks, keys, seeds, out): each row's seeds hashed to blocks of 16 bytes under the row's key."},
    {"add_keystream", py_add_keystream, METH_VARARGS,
     "add_keystream(width, less, narrow, key, total): the key's stream of AES-256 in counter mode added to the total, or "
     "subtracted where less; narrow leaves out instructions for wide vectors."},
    {"has_aes", py_has_aes, METH_NOARGS, "has_aes(): whether this processor has instructions for AES."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "sfumato.crypto.fields._kernel", .m_doc = "Prime fields, TurboSHAKE128 and AES.",
    .m_size = 0,           .m_methods = methods,                      .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kernel(void) {
    vaes = find_vaes();
    return PyModuleDef_Init(&definition);
}
