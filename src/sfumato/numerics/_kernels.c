/* Python's door to the kernels: every size, pointer and parameter is checked here, once per call. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_kernels.h"

#define TABLE_NAME "sfumato.numerics._kernels.Table"
/* Shorter requests are done before another thread could use the lock. */
#define RELEASE_FROM 2048

typedef struct {
    const char *name;
    Progress (*direct)(const Table *, const uint64_t *, int64_t *, ptrdiff_t);
    Progress (*cells)(const Table *, Cell, const uint64_t *, int64_t *, ptrdiff_t);
} Variant;

static const Variant VARIANTS[] = {
    {"portable", direct_portable, cells_portable},
#if WIDE
    {"avx2", direct_avx2, cells_avx2},
    {"avx512", direct_avx512, cells_avx512},
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
    double place = (double)(((uint64_t)1 << cell->low_bits) - 1);
    return place * (cell->alpha * table->count + cell->beta * place + cell->delta) <= 0.125;
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
