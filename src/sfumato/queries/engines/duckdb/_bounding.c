/* Python's door to the bounding kernel: every size, pointer and parameter is checked here, once per call. */
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>

#include "_measures.h"

#define NAME "sfumato.queries.engines.duckdb._bounding.Kernel"
#define MOST_MEASURES 4096

typedef struct {
    Rows rows;
    Layout layout;
    Job job;
    Parts *blocks; /* what was kept of each partition */
    int64_t partitions;
    Totals totals;
    Cells *cells; /* for each count of rows */
    MeasureSpec *measures;
    int64_t most_cells;
    int sealed, words;
} Kernel;

static void kernel_drop_blocks(Kernel *k) {
    for (int64_t i = 0; k->blocks && i < k->partitions; i++) free(k->blocks[i].words);
    free(k->blocks);
    k->blocks = NULL;
}

static Cells *cells_for(const Kernel *k) {
    Cells *cells = calloc((size_t)k->job.many_counts + 1, sizeof *cells);
    for (int i = 0; cells && i < k->job.many_counts; i++) cells[i].most = k->most_cells;
    return cells;
}

static void cells_drop(Cells *cells, int many) {
    for (int i = 0; cells && i < many; i++) cells_free(&cells[i]);
    free(cells);
}

static void kernel_drop_counts(Kernel *k) {
    cells_drop(k->cells, k->job.many_counts);
    for (int i = 0; i < k->job.many_counts; i++) key_words_free(&k->job.counts[i].keys);
    free(k->job.counts);
    k->cells = NULL;
    k->job.counts = NULL;
    k->job.many_counts = 0;
}

static void kernel_free(PyObject *capsule) {
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return;
    kernel_drop_blocks(k);
    kernel_drop_counts(k);
    rows_free(&k->rows);
    totals_free(&k->totals);
    key_words_free(&k->job.group_keys);
    key_words_free(&k->job.row_keys);
    free(k->measures);
    free(k);
}

static PyObject *raise_status(Status status) {
    if (status == NO_MEMORY) return PyErr_NoMemory();
    if (status == TOO_MUCH) {
        PyErr_SetString(PyExc_OverflowError, "a sum of a part, or a number of rows, must fit in 64 bits");
    } else {
        PyErr_SetString(PyExc_OSError, "the file of rows must be readable and writable, with room");
    }
    return NULL;
}

static int is_true(PyObject *item) { return item && PyObject_IsTrue(item) == 1; }

/* The integers of a tuple; how many, or -1 with an error set. */
static Py_ssize_t integers(PyObject *tuple, int64_t *out, Py_ssize_t most) {
    Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count < 0 || count > most) {
        PyErr_SetString(PyExc_ValueError, "a tuple of integers must be given, and not of too many");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (out[i] == -1 && PyErr_Occurred()) return -1;
    }
    return count;
}

static PyObject *py_kernel(PyObject *self, PyObject *args) {
    (void)self;
    const char *secret;
    Py_ssize_t secret_size;
    PyObject *kinds;
    int values, bits, file;
    long long budget;
    if (!PyArg_ParseTuple(args, "y#OiiLi:kernel", &secret, &secret_size, &kinds, &values, &bits, &budget, &file))
        return NULL;
    Py_ssize_t keys = (PyTuple_Check(kinds) ? PyTuple_Size(kinds) : 0) - 1 - values;
    if (secret_size != 48 || keys < 0 || keys > MOST_KEYS || values < 0 || values > MOST_VALUES || bits < 0 || bits > 16) {
        PyErr_SetString(PyExc_ValueError, "secret must have 48 bytes; kinds, values and bits must be in range");
        return NULL;
    }
    Kernel *k = calloc(1, sizeof *k);
    if (!k) return PyErr_NoMemory();
    Rows *r = &k->rows;
    const unsigned char *bytes = (const unsigned char *)secret;
    SipKey *into[] = {&r->groups, &r->ranks, &r->tables};
    for (int i = 0; i < 3; i++) *into[i] = (SipKey){little(bytes + 16 * i, 8), little(bytes + 16 * i + 8, 8)};
    r->unit_is_text = is_true(PyTuple_GetItem(kinds, 0));
    r->keys = (int)keys;
    r->values = values;
    for (int i = 0; i < r->keys; i++) r->key_is_text[i] = is_true(PyTuple_GetItem(kinds, i + 1));
    for (int i = 0; i < r->values; i++) r->value_is_text[i] = is_true(PyTuple_GetItem(kinds, i + 1 + keys));
    r->bits = bits;
    r->budget = budget;
    r->file = file;
    k->partitions = (int64_t)1 << bits;
    PyObject *capsule = PyCapsule_New(k, NAME, kernel_free);
    if (!capsule) {
        free(k);
        return NULL;
    }
    if (!rows_init(r)) {
        Py_DECREF(capsule);
        return PyErr_NoMemory();
    }
    return capsule;
}

/* A column's buffers, taken and checked. */
typedef struct {
    Py_buffer validity, offsets, data;
    Column column;
} Taken;

static void give_back(Taken *taken, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        PyBuffer_Release(&taken[i].validity);
        PyBuffer_Release(&taken[i].offsets);
        PyBuffer_Release(&taken[i].data);
    }
    PyMem_Free(taken);
}

static int take_buffer(PyObject *item, Py_buffer *view) {
    if (item == Py_None) return 1;
    return PyObject_GetBuffer(item, view, PyBUF_SIMPLE) == 0;
}

/* Whether rows [start, start + count) lie in the buffers, and the offsets in order. */
static int fits(const Taken *t, int64_t count) {
    int64_t end = t->column.start + count;
    if (t->column.start < 0 || end < t->column.start || end >= INT64_MAX / 16) return 0;
    if (t->validity.buf && (end + 7) / 8 > t->validity.len) return 0;
    if (!count) return 1;
    if (!t->offsets.buf) return t->data.buf && end * 8 <= t->data.len && !((uintptr_t)t->data.buf % 8);
    int size = t->column.wide ? 8 : 4;
    if ((end + 1) * size > t->offsets.len || (uintptr_t)t->offsets.buf % (uintptr_t)size) return 0;
    int64_t before = 0;
    for (int64_t at = t->column.start; at <= end; at++) {
        int64_t offset = t->column.wide ? ((const int64_t *)t->offsets.buf)[at] : ((const int32_t *)t->offsets.buf)[at];
        if (offset < before) return 0;
        before = offset;
    }
    return before <= t->data.len;
}

/* The columns of a tuple of (validity, offsets, data, start, wide); NULL with an error set. */
static Taken *take(PyObject *columns, int64_t count, Py_ssize_t *many) {
    *many = PyTuple_Check(columns) ? PyTuple_Size(columns) : -1;
    Taken *taken = *many < 0 ? NULL : PyMem_Calloc((size_t)*many + 1, sizeof *taken);
    if (!taken) {
        PyErr_SetString(PyExc_ValueError, "columns must be a tuple");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < *many; i++) {
        PyObject *validity, *offsets, *data;
        long long start;
        Taken *t = &taken[i];
        int fine = PyArg_ParseTuple(PyTuple_GetItem(columns, i), "OOOLi", &validity, &offsets, &data, &start,
                                    &t->column.wide) &&
                   take_buffer(validity, &t->validity) && take_buffer(offsets, &t->offsets) &&
                   take_buffer(data, &t->data);
        if (fine) {
            t->column.start = start;
            t->column.validity = t->validity.buf;
            t->column.offsets = t->offsets.buf;
            t->column.data = t->data.buf;
            if (!fits(t, count)) {
                PyErr_SetString(PyExc_ValueError, "columns must hold their rows");
                fine = 0;
            }
        }
        if (!fine) {
            give_back(taken, *many);
            return NULL;
        }
    }
    return taken;
}

static PyObject *py_add(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *columns;
    Py_ssize_t count, many;
    if (!PyArg_ParseTuple(args, "OnO:add", &capsule, &count, &columns)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    Taken *taken = count < 0 ? NULL : take(columns, count, &many);
    if (!taken) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "count must not be negative");
        return NULL;
    }
    int fine = !k->sealed && many == 1 + k->rows.keys + k->rows.values;
    for (Py_ssize_t i = 0; fine && count && i < many; i++) {
        const Rows *r = &k->rows;
        int text = !i ? r->unit_is_text : i <= r->keys ? r->key_is_text[i - 1] : r->value_is_text[i - 1 - r->keys];
        fine = text == (taken[i].column.offsets != NULL);
    }
    Status status = FINE;
    if (fine) {
        Column all[1 + MOST_KEYS + MOST_VALUES];
        for (Py_ssize_t i = 0; i < many; i++) all[i] = taken[i].column;
        PyThreadState *state = PyEval_SaveThread();
        status = add_rows(&k->rows, all, all + 1, all + 1 + k->rows.keys, count);
        PyEval_RestoreThread(state);
    }
    give_back(taken, many);
    if (!fine) {
        PyErr_SetString(PyExc_ValueError, "columns must be as the kernel was made for, before it is sealed");
        return NULL;
    }
    return status == FINE ? Py_NewRef(Py_None) : raise_status(status);
}

/* Read which columns are counted, summed and multiplied. */
static int read_layout(PyObject *counts, PyObject *sums, PyObject *products, const Rows *r, Layout *l) {
    int values = r->values;
    int64_t numbers[4 * MOST_VALUES];
    Py_ssize_t n = integers(counts, numbers, MOST_VALUES);
    if (n < 0) return 0;
    l->counts = (int)n;
    for (int i = 0; i < n; i++) l->count_of[i] = (int)numbers[i];
    n = integers(sums, numbers, MOST_VALUES);
    if (n < 0) return 0;
    l->sums = (int)n;
    for (int i = 0; i < n; i++) l->sum_of[i] = (int)numbers[i];
    n = integers(products, numbers, 4 * MOST_VALUES);
    if (n < 0) return 0;
    l->products = (int)(n / 4);
    for (int i = 0; i < l->products; i++) {
        l->one[i] = (int)numbers[4 * i];
        l->one_center[i] = numbers[4 * i + 1];
        l->other[i] = (int)numbers[4 * i + 2];
        l->other_center[i] = numbers[4 * i + 3];
    }
    int fine = n % 4 == 0, texts = 0;
    for (int i = 0; i < l->counts; i++) fine &= l->count_of[i] >= 0 && l->count_of[i] < values;
    for (int i = 0; i < l->sums; i++) fine &= l->sum_of[i] >= 0 && l->sum_of[i] < values;
    for (int i = 0; i < l->products; i++)
        fine &= l->one[i] >= 0 && l->one[i] < values && l->other[i] >= 0 && l->other[i] < values;
    for (int i = 0; fine && i < l->sums; i++) texts |= r->value_is_text[l->sum_of[i]];
    for (int i = 0; fine && i < l->products; i++) texts |= r->value_is_text[l->one[i]] | r->value_is_text[l->other[i]];
    fine &= !texts;
    if (!fine) PyErr_SetString(PyExc_ValueError, "columns of values must be among those there are");
    return fine;
}

static PyObject *py_seal(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *counts, *sums, *products;
    Limits limits;
    long long groups, rows, all_rows;
    if (!PyArg_ParseTuple(args, "O(LLLp)OOO:seal", &capsule, &groups, &rows, &all_rows, &limits.chooses_rows, &counts,
                          &sums, &products))
        return NULL;
    limits.groups = groups;
    limits.rows = rows;
    limits.all_rows = all_rows;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k || !read_layout(counts, sums, products, &k->rows, &k->layout)) return NULL;
    int limited = limits.rows >= 1 || limits.all_rows >= 1;
    if (k->sealed || groups < NO_LIMIT || rows < NO_LIMIT || all_rows < NO_LIMIT || groups == 0 || rows == 0 ||
        all_rows == 0 || (all_rows > 0 && (rows > 0 || groups > 0)) || (limits.chooses_rows && !limited) ||
        (all_rows > 0 && !limits.chooses_rows) || rows > MOST_CODES) {
        PyErr_SetString(PyExc_ValueError, "limits must be positive, or -1 for none, and be given once");
        return NULL;
    }
    k->job = (Job){.rows = &k->rows, .layout = &k->layout, .limits = limits};
    k->words = part_words(&k->layout);
    k->blocks = calloc((size_t)k->partitions, sizeof *k->blocks);
    if (!k->blocks || !key_words(&k->rows, k->rows.groups, &k->job.group_keys) ||
        !key_words(&k->rows, k->rows.ranks, &k->job.row_keys))
        return PyErr_NoMemory();
    k->sealed = 1;
    Py_RETURN_NONE;
}

/* What is counted row by row: (column, most, key) each. */
static PyObject *py_count_rows(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *specs;
    long long room;
    if (!PyArg_ParseTuple(args, "OOL:count_rows", &capsule, &specs, &room)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    Py_ssize_t count = PyTuple_Check(specs) ? PyTuple_Size(specs) : -1;
    if (!k->sealed || k->cells || count < 0 || count > MOST_MEASURES || room < 0) {
        PyErr_SetString(PyExc_ValueError, "counts must be a tuple, given once after the kernel is sealed");
        return NULL;
    }
    k->most_cells = room / (int64_t)sizeof(Cell);
    k->job.counts = calloc((size_t)count + 1, sizeof *k->job.counts);
    if (!k->job.counts) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        RowCount *c = &k->job.counts[i];
        const char *key;
        Py_ssize_t size;
        long long most;
        if (!PyArg_ParseTuple(PyTuple_GetItem(specs, i), "iLy#", &c->column, &most, &key, &size)) return NULL;
        if (c->column < 0 || c->column >= k->rows.values || most < 0 || size != 16) {
            PyErr_SetString(PyExc_ValueError, "a count must be of a column that there is, with a key of 16 bytes");
            return NULL;
        }
        c->most = most;
        const unsigned char *bytes = (const unsigned char *)key;
        c->ranks = (SipKey){little(bytes, 8), little(bytes + 8, 8)};
        k->job.many_counts = (int)i + 1;
        if (most && !key_words(&k->rows, c->ranks, &c->keys)) return PyErr_NoMemory();
    }
    k->cells = cells_for(k);
    return k->cells ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *py_measure(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *specs;
    if (!PyArg_ParseTuple(args, "OO:measure", &capsule, &specs)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    Py_ssize_t count = PyTuple_Check(specs) ? PyTuple_Size(specs) : -1;
    if (!k->sealed || count < 0 || count > MOST_MEASURES) {
        PyErr_SetString(PyExc_ValueError, "measures must be a tuple, given after the kernel is sealed");
        return NULL;
    }
    MeasureSpec *measures = calloc((size_t)count + 1, sizeof *measures);
    if (!measures) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t n[9];
        MeasureSpec *m = &measures[i];
        Py_ssize_t have = integers(PyTuple_GetItem(specs, i), n, 9);
        *m = (MeasureSpec){(Kind)n[0], (int)n[1], (int)n[2], n[3] != 0, n[4], n[5], n[6], n[7], n[8]};
        int sums = m->kind == SUM || m->kind == MEAN, fine = have == 9 && n[0] >= 0 && n[0] < KINDS;
        fine = fine && (!sums || (n[1] > 0 && n[1] < k->words));
        fine = fine && (!(sums || m->kind == VALUES) || (n[2] > 0 && n[2] < k->words)) && m->lower <= m->upper;
        if (!fine) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a measure must be of nine numbers in range");
            free(measures);
            return NULL;
        }
    }
    free(k->measures);
    k->measures = measures;
    totals_free(&k->totals);
    if (!totals_init(&k->totals, group_count(&k->rows), (int)count)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Bound partitions [from, to) by `step`, and add what their parts are to the sums. */
static PyObject *py_bound(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    Py_ssize_t from, step;
    int keep;
    if (!PyArg_ParseTuple(args, "Onnp:bound", &capsule, &from, &step, &keep)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    if (!k->measures || !k->rows.partitions || from < 0 || step < 1) {
        PyErr_SetString(PyExc_ValueError, "the kernel must have its rows and measures, and from and step be in range");
        return NULL;
    }
    Status status = FINE;
    Totals mine;
    Parts spare = {0};
    Cells *cells = cells_for(k);
    PyThreadState *state = PyEval_SaveThread();
    if (!totals_init(&mine, k->totals.groups, k->totals.measures) || !cells) status = NO_MEMORY;
    for (int64_t p = from; p < k->partitions && status == FINE; p += step) {
        Parts *parts = keep ? &k->blocks[p] : &spare;
        parts->count = 0;
        status = bound_partition(&k->job, p, parts, cells);
        if (status == FINE) add_parts(parts, k->words, k->measures, &mine);
    }
    free(spare.words);
    PyEval_RestoreThread(state);
    if (status == FINE) totals_add(&k->totals, &mine);
    totals_free(&mine);
    for (int i = 0; status == FINE && i < k->job.many_counts; i++)
        if (!cells_merge(&k->cells[i], k->rows.tables, &cells[i])) status = NO_MEMORY;
    cells_drop(cells, k->job.many_counts);
    return status == FINE ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *py_forget_rows(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    if (!PyArg_ParseTuple(args, "O:forget_rows", &capsule)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    rows_drop(&k->rows);
    Py_RETURN_NONE;
}

/* Add up the parts that were kept. */
static PyObject *py_again(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    if (!PyArg_ParseTuple(args, "O:again", &capsule)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    if (!k->measures || !k->blocks) {
        PyErr_SetString(PyExc_ValueError, "the kernel must have measures and parts");
        return NULL;
    }
    PyThreadState *state = PyEval_SaveThread();
    for (int64_t p = 0; p < k->partitions; p++) add_parts(&k->blocks[p], k->words, k->measures, &k->totals);
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

/* The groups that have parts, and measure by measure their sums, clamped to [-reach, reach]. */
static PyObject *py_totals(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    long long reach;
    if (!PyArg_ParseTuple(args, "OL:totals", &capsule, &reach)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    const Totals *t = &k->totals;
    int64_t present = 0, at = 0;
    for (int64_t g = 0; g < t->groups; g++) present += t->present[g];
    PyObject *groups = PyBytes_FromStringAndSize(NULL, present * 8);
    PyObject *sums = PyBytes_FromStringAndSize(NULL, present * t->measures * 8);
    if (groups && sums) {
        int64_t *group = (int64_t *)PyBytes_AsString(groups), *sum = (int64_t *)PyBytes_AsString(sums);
        for (int64_t g = 0; g < t->groups; g++) {
            if (!t->present[g]) continue;
            group[at] = g;
            for (int m = 0; m < t->measures; m++) {
                __int128 value = t->sums[g * t->measures + m];
                sum[m * present + at] = (int64_t)(value > reach ? reach : value < -reach ? -reach : value);
            }
            at++;
        }
        return Py_BuildValue("NN", groups, sums);
    }
    Py_XDECREF(groups);
    Py_XDECREF(sums);
    return NULL;
}

static PyObject *bytes_of(const void *data, size_t size) {
    return PyBytes_FromStringAndSize(size ? data : "", (Py_ssize_t)size);
}

/* The values of a key by group: (words, nulls), or of a text (number of text by group, nulls, ends, bytes). */
static PyObject *py_key(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    int index;
    if (!PyArg_ParseTuple(args, "Oi:key", &capsule, &index)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    Rows *r = &k->rows;
    if (index < 0 || index >= r->keys) {
        PyErr_SetString(PyExc_ValueError, "index must be that of a key");
        return NULL;
    }
    int64_t groups = group_count(r);
    PyObject *words = PyBytes_FromStringAndSize(NULL, groups * 8), *nulls = PyBytes_FromStringAndSize(NULL, groups);
    if (!words || !nulls) {
        Py_XDECREF(words);
        Py_XDECREF(nulls);
        return NULL;
    }
    uint64_t *word = (uint64_t *)PyBytes_AsString(words);
    char *null = PyBytes_AsString(nulls);
    for (int64_t g = 0; g < groups; g++) {
        word[g] = r->group_rows.rows[g * (r->keys + 1) + index];
        null[g] = (char)(r->group_rows.rows[g * (r->keys + 1) + r->keys] >> index & 1);
    }
    if (!r->key_is_text[index]) return Py_BuildValue("NN", words, nulls);
    const Interner *in = &r->key_texts[index];
    return Py_BuildValue("NNNN", words, nulls, bytes_of(in->rows, (size_t)in->count * 8),
                         bytes_of(in->bytes, text_start(in, in->count)));
}

/* What was counted row by row: groups, values and counts; then it is forgotten. */
static PyObject *py_counted(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    int index;
    if (!PyArg_ParseTuple(args, "Oi:counted", &capsule, &index)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    if (!k->cells || index < 0 || index >= k->job.many_counts) {
        PyErr_SetString(PyExc_ValueError, "index must be that of a count");
        return NULL;
    }
    Cells *cells = &k->cells[index];
    PyObject *made[3];
    for (int i = 0; i < 3; i++) made[i] = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)cells->count * 8);
    if (!made[0] || !made[1] || !made[2]) {
        for (int i = 0; i < 3; i++) Py_XDECREF(made[i]);
        return NULL;
    }
    uint64_t *out[3];
    for (int i = 0; i < 3; i++) out[i] = (uint64_t *)PyBytes_AsString(made[i]);
    int64_t at = 0;
    for (uint64_t i = 0; cells->cells && i <= cells->mask; i++) {
        const Cell *cell = &cells->cells[i];
        if (!cell->owner) continue;
        out[0][at] = cell->owner - 1;
        out[1][at] = cell->word;
        out[2][at++] = cell->count;
    }
    cells_free(cells);
    return Py_BuildValue("NNN", made[0], made[1], made[2]);
}

static PyObject *py_held(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule;
    if (!PyArg_ParseTuple(args, "O:held", &capsule)) return NULL;
    Kernel *k = PyCapsule_GetPointer(capsule, NAME);
    if (!k) return NULL;
    int64_t parts = 0;
    for (int64_t i = 0; k->blocks && i < k->partitions; i++) parts += k->blocks[i].room;
    return Py_BuildValue("LLL", (long long)k->rows.held, (long long)k->rows.file_end, (long long)(parts * k->words * 8));
}

/* Ranks of rows, for SQL: the same as the kernel's. */
static PyObject *py_ranks(PyObject *self, PyObject *args) {
    (void)self;
    const char *key;
    Py_ssize_t key_size, count, many;
    PyObject *columns;
    Py_buffer out;
    if (!PyArg_ParseTuple(args, "y#nOw*:ranks", &key, &key_size, &count, &columns, &out)) return NULL;
    Taken *taken = NULL;
    if (key_size != 16 || count < 0 || out.len != count * 8 || (uintptr_t)out.buf % 8) {
        PyErr_SetString(PyExc_ValueError, "key must have 16 bytes, and out room for the ranks");
    } else {
        taken = take(columns, count, &many);
    }
    if (taken && many > MOST_KEYS + MOST_VALUES + 2) {
        give_back(taken, many);
        taken = NULL;
        PyErr_SetString(PyExc_ValueError, "columns must be fewer");
    }
    if (taken) {
        const unsigned char *bytes = (const unsigned char *)key;
        SipKey sip = {little(bytes, 8), little(bytes + 8, 8)}, texts = sip_text_key(sip);
        uint64_t words[MOST_KEYS + MOST_VALUES + 2], nulls[MOST_KEYS + MOST_VALUES + 2];
        for (int64_t row = 0; row < count; row++) {
            for (int i = 0; i < many; i++) {
                nulls[i] = !has_value(&taken[i].column, row);
                words[i] = nulls[i] ? 0 : word_at(&taken[i].column, row, texts);
            }
            ((int64_t *)out.buf)[row] = rank_of(sip, words, nulls, (int)many);
        }
        give_back(taken, many);
    }
    PyBuffer_Release(&out);
    return taken ? Py_NewRef(Py_None) : NULL;
}

static PyObject *py_siphash(PyObject *self, PyObject *args) {
    (void)self;
    const char *key, *data;
    Py_ssize_t key_size, size;
    if (!PyArg_ParseTuple(args, "y#y#:siphash", &key, &key_size, &data, &size)) return NULL;
    if (key_size != 16) {
        PyErr_SetString(PyExc_ValueError, "key must have 16 bytes");
        return NULL;
    }
    const unsigned char *bytes = (const unsigned char *)key;
    SipKey sip = {little(bytes, 8), little(bytes + 8, 8)};
    return PyLong_FromUnsignedLongLong(sip_bytes(sip, (const unsigned char *)data, (size_t)size));
}

static PyMethodDef methods[] = {
    {"kernel", py_kernel, METH_VARARGS,
     "kernel(secret, texts, values, bits, budget, file) -> capsule: rows to come, of a unit, keys and so many values, of "
     "which `texts` says whether they are texts, divided into 2**bits partitions; beyond `budget` bytes they go to the "
     "file."},
    {"add", py_add, METH_VARARGS, "add(kernel, count, columns): rows, as (validity, offsets, data, start, wide)."},
    {"seal", py_seal, METH_VARARGS,
     "seal(kernel, (groups, rows, all_rows, chooses_rows), counts, sums, products): no more rows; the limits (-1: "
     "none), and the numbers of a part: by column of values its count, its sum, and (one, center, other, center) ..."},
    {"count_rows", py_count_rows, METH_VARARGS,
     "count_rows(kernel, counts, room): count the rows that stay by a column's value, or its distinct values, so many of "
     "a unit in a group: (column, most or 0, key) each; `room` bytes at most for a table."},
    {"measure", py_measure, METH_VARARGS,
     "measure(kernel, measures): what to add up, from nothing: (kind, sum, count, asks, offset, minimum, lower, upper, "
     "center) each."},
    {"bound", py_bound, METH_VARARGS,
     "bound(kernel, first, step, keep): bound every step-th partition and add up its parts; threads may share a "
     "kernel, each with partitions of its own."},
    {"forget_rows", py_forget_rows, METH_VARARGS, "forget_rows(kernel): free the rows; parts that were kept stay."},
    {"again", py_again, METH_VARARGS, "again(kernel): add up the parts that were kept."},
    {"totals", py_totals, METH_VARARGS, "totals(kernel, reach) -> (groups, sums): of the groups that have parts."},
    {"key", py_key, METH_VARARGS, "key(kernel, index) -> (words, nulls), or (texts, nulls, ends, bytes): by group."},
    {"counted", py_counted, METH_VARARGS, "counted(kernel, index) -> (groups, values, counts), and forget them."},
    {"held", py_held, METH_VARARGS, "held(kernel) -> (rows, spilled, parts): bytes."},
    {"ranks", py_ranks, METH_VARARGS, "ranks(key, count, columns, out): the rank of each row."},
    {"siphash", py_siphash, METH_VARARGS, "siphash(key, data) -> int: SipHash-2-4."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "sfumato.queries.engines.duckdb._bounding", .m_doc = "The bounding kernel.",
    .m_size = 0,           .m_methods = methods,                                 .m_slots = slots,
};

PyMODINIT_FUNC PyInit__bounding(void) { return PyModuleDef_Init(&definition); }
