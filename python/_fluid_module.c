/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_module.c - the module: its state, its classes, tables and errors. */
#include "_fluid.h"

#include <signal.h>
#include <string.h>

/* --- used by all files --- */

py_state *py_state_of(PyTypeObject *type)
{
    /* A subclass made in Python has no module, but its base has. */
    for (; type; type = PyType_GetSlot(type, Py_tp_base)) {
        void *st = PyType_GetModuleState(type);
        if (st)
            return st;
        PyErr_Clear();
    }
    PyErr_SetString(PyExc_SystemError, "_fluid: a type without its module");
    return NULL;
}

/* The last error message, which may quote bytes that are not UTF-8. */
static PyObject *last_message(void)
{
    const char *text = fl_errmsg();
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text),
                                "backslashreplace");
}

/* Raise JobEnded. A process that does not catch it ends with the code. */
static PyObject *raise_ended(py_state *st, int exit_code)
{
    PyObject *code = PyLong_FromLong(exit_code), *said = last_message();
    PyObject *error =
        said ? PyObject_CallFunctionObjArgs(st->job_ended, said, NULL) : NULL;
    if (code && error && !PyObject_SetAttrString(error, "code", code))
        PyErr_SetObject(st->job_ended, error);
    Py_XDECREF(error);
    Py_XDECREF(said);
    Py_XDECREF(code);
    return NULL;
}

static PyObject *raise_as(py_state *st, PyObject *type, fl_err err)
{
    if (PyErr_Occurred())
        return NULL;
    if (err == FL_EENDED || err == FL_EDONE)
        return raise_ended(st, fl_exit_code(err));
    if (err == FL_ENOMEM)
        type = PyExc_MemoryError;
    if (err == FL_EINTR)
        type = PyExc_KeyboardInterrupt;
    if (err == FL_ETYPE)
        type = PyExc_TypeError;
    PyObject *said = last_message();
    if (said)
        PyErr_SetObject(type, said);
    Py_XDECREF(said);
    return NULL;
}

PyObject *py_raise(py_state *st, fl_err err)
{
    const bool wrong = err == FL_EINVAL || err == FL_ENOENT;
    return raise_as(st, wrong ? PyExc_ValueError : st->enforce_not_met, err);
}

PyObject *py_raise_run(py_state *st, fl_err err)
{
    return raise_as(st, st->enforce_not_met, err);
}

PyObject *py_raise_sigterm(py_state *st)
{
    return raise_ended(st, 128 + SIGTERM);
}

PyObject *py_result(py_state *st, fl_err err)
{
    return err ? py_raise(st, err) : Py_NewRef(Py_None);
}

PyObject *py_text(char *text)
{
    PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text),
                                       "backslashreplace");
    fl_free(text);
    return s;
}

PyObject *py_alloc(PyTypeObject *t)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(t, Py_tp_alloc);
    return alloc(t, 0);
}

void py_dealloc(PyObject *self)
{
    PyTypeObject *t = Py_TYPE(self);
    freefunc end = (freefunc)PyType_GetSlot(t, Py_tp_free);
    end(self);
    Py_DECREF(t);
}

/* --- records --- */

#define FIELDS(...)                                                            \
    (PyStructSequence_Field[])                                                 \
    {                                                                          \
        __VA_ARGS__,                                                           \
        {                                                                      \
            NULL, NULL                                                         \
        }                                                                      \
    }

static int make_records(py_state *st)
{
    PyStructSequence_Desc desc[PY_RECORDS] = {
        [PY_ARGUMENT] = {"_fluid.Argument", "One argument of a signature.",
                         FIELDS({"name"}, {"type"}, {"default"}, {"doc"}), 4},
        [PY_SIGNATURE] = {"_fluid.Signature", "A layer or an optimiser.",
                          FIELDS({"name"}, {"doc"}, {"returns"}, {"arguments"}),
                          4},
        [PY_SLOT] = {"_fluid.Slot", "A slot of an operator.",
                     FIELDS({"name"}, {"duplicable"}, {"dispensable"},
                            {"intermediate"}, {"no_grad"}),
                     5},
        [PY_ATTRIBUTE] = {"_fluid.Attribute", "An attribute of an operator.",
                          FIELDS({"name"}, {"type"}, {"required"}, {"default"}),
                          4},
        [PY_OP_PROTO] = {"_fluid.OpProto", "An operator's table.",
                         FIELDS({"type"}, {"inputs"}, {"outputs"}, {"attrs"},
                                {"differentiable"}),
                         5},
        [PY_PROFILE_ROW] = {"_fluid.ProfileRow", "Times of an operator.",
                            FIELDS({"type"}, {"calls"}, {"total_ns"},
                                   {"max_ns"}, {"min_ns"}),
                            5},
    };
    for (int i = 0; i < PY_RECORDS; i++) {
        st->record[i] = PyStructSequence_NewType(&desc[i]);
        if (!st->record[i])
            return -1;
    }
    return 0;
}

/* A new record of n values; it takes their references. Fails if a value is
 * NULL. */
static PyObject *record(py_state *st, int which, int n, PyObject **values)
{
    PyObject *r = PyStructSequence_New(st->record[which]);
    bool ok = r;
    for (int i = 0; i < n; i++) {
        ok = ok && values[i];
        if (ok)
            PyStructSequence_SetItem(r, i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    if (!ok)
        Py_CLEAR(r);
    return r;
}

PyObject *py_profile_row(py_state *st, const fl_profile_row *row)
{
    return record(st, PY_PROFILE_ROW, 5,
                  (PyObject *[]){PyUnicode_FromString(row->type),
                                 PyLong_FromLongLong(row->calls),
                                 PyLong_FromLongLong(row->total),
                                 PyLong_FromLongLong(row->max),
                                 PyLong_FromLongLong(row->min)});
}

static PyObject *text_or_none(const char *s)
{
    return s ? PyUnicode_FromString(s) : Py_NewRef(Py_None);
}

/* A tuple of n objects made by `make`. */
static PyObject *tuple_of(py_state *st, int n, const void *rows,
                          PyObject *(*make)(py_state *, const void *, int))
{
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) {
        PyObject *o = make(st, rows, i);
        if (!o || PyTuple_SetItem(t, i, o))
            Py_CLEAR(t);
    }
    return t;
}

static PyObject *argument(py_state *st, const void *rows, int i)
{
    const fl_arg_def *a = (const fl_arg_def *)rows + i;
    return record(
        st, PY_ARGUMENT, 4,
        (PyObject *[]){PyUnicode_FromString(a->name),
                       PyUnicode_FromString(fl_arg_type_name(a->type)),
                       text_or_none(a->value), PyUnicode_FromString(a->doc)});
}

static PyObject *signature(py_state *st, const void *rows, int i)
{
    const fl_signature *s = (const fl_signature *)rows + i;
    return record(st, PY_SIGNATURE, 4,
                  (PyObject *[]){PyUnicode_FromString(s->name),
                                 PyUnicode_FromString(s->doc),
                                 text_or_none(s->returns),
                                 tuple_of(st, s->n_args, s->args, argument)});
}

static PyObject *slot(py_state *st, const void *rows, int i)
{
    const fl_slot *s = (const fl_slot *)rows + i;
    return record(st, PY_SLOT, 5,
                  (PyObject *[]){PyUnicode_FromString(s->name),
                                 PyBool_FromLong(s->flags & FL_MANY),
                                 PyBool_FromLong(s->flags & FL_OPTIONAL),
                                 PyBool_FromLong(s->flags & FL_INTERMEDIATE),
                                 PyBool_FromLong(s->flags & FL_NOGRAD)});
}

static PyObject *attribute(py_state *st, const void *rows, int i)
{
    const fl_attr *a = (const fl_attr *)rows + i;
    return record(st, PY_ATTRIBUTE, 4,
                  (PyObject *[]){PyUnicode_FromString(a->name),
                                 PyLong_FromLong((long)a->type),
                                 PyBool_FromLong(a->required),
                                 a->required ? Py_NewRef(Py_None)
                                             : py_from_attr(NULL, a, false)});
}

static PyObject *op_proto(py_state *st, const void *rows, int i)
{
    const fl_op_info *op = (const fl_op_info *)rows + i;
    return record(st, PY_OP_PROTO, 5,
                  (PyObject *[]){PyUnicode_FromString(op->type),
                                 tuple_of(st, op->n_in, op->in, slot),
                                 tuple_of(st, op->n_out, op->out, slot),
                                 tuple_of(st, op->n_attr, op->attr, attribute),
                                 PyBool_FromLong(op->differentiable)});
}

/* --- functions of the module --- */

static PyObject *layer_table(PyObject *module, PyObject *none)
{
    py_state *st = PyModule_GetState(module);
    const fl_signature *rows;
    const int n = fl_layer_table(st->engine, &rows);
    return tuple_of(st, n, rows, signature);
}

static PyObject *optimizer_table(PyObject *module, PyObject *none)
{
    py_state *st = PyModule_GetState(module);
    const fl_signature *rows;
    const int n = fl_optimizer_table(st->engine, &rows);
    return tuple_of(st, n, rows, signature);
}

static PyObject *op_table(PyObject *module, PyObject *none)
{
    py_state *st = PyModule_GetState(module);
    const fl_op_info *rows;
    const int n = fl_op_table(st->engine, &rows);
    return tuple_of(st, n, rows, op_proto);
}

static PyObject *version(PyObject *module, PyObject *none)
{
    return PyUnicode_FromString(fl_version());
}

static const struct {
    const char *name;
    int base;
} classes[] = {
    [PY_CLS_PROGRAM] = {"program", PY_PROGRAM},
    [PY_CLS_BLOCK] = {"block", PY_BLOCK},
    [PY_CLS_OPERATOR] = {"operator", PY_OPERATOR},
    [PY_CLS_VARIABLE] = {"variable", PY_VARIABLE},
    [PY_CLS_PARAMETER] = {"parameter", PY_VARIABLE},
};

static PyObject *set_classes(PyObject *module, PyObject *args, PyObject *kw)
{
    py_state *st = PyModule_GetState(module);
    if (!PyArg_ParseTuple(args, ":set_classes"))
        return NULL;
    for (int i = 0; kw && i < (int)(sizeof classes / sizeof *classes); i++) {
        PyObject *cls = PyDict_GetItemString(kw, classes[i].name);
        if (!cls)
            continue;
        if (!PyType_Check(cls) ||
            !PyType_IsSubtype((PyTypeObject *)cls, st->type[classes[i].base]))
            return PyErr_Format(PyExc_TypeError,
                                "set_classes: %s is no subclass of %R",
                                classes[i].name, st->type[classes[i].base]);
        Py_INCREF(cls);
        py_replace((PyObject **)&st->cls[i], cls);
    }
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"version", version, METH_NOARGS, "Of the library."},
    {"layer_table", layer_table, METH_NOARGS, "Every layer."},
    {"optimizer_table", optimizer_table, METH_NOARGS, "Every optimiser."},
    {"op_table", op_table, METH_NOARGS, "Every operator."},
    {"set_classes", PY_KEYWORDS(set_classes),
     "The subclasses that C makes views of."},
    {NULL, NULL, 0, NULL},
};

/* --- making it --- */

static PyType_Spec *const specs[PY_TYPES] = {
    [PY_PROGRAM] = &py_program_spec,     [PY_BLOCK] = &py_block_spec,
    [PY_OPERATOR] = &py_operator_spec,   [PY_VARIABLE] = &py_variable_spec,
    [PY_NAMES] = &py_names_spec,         [PY_SWITCH] = &py_switch_spec,
    [PY_OPTIMIZER] = &py_optimizer_spec, [PY_HOOK] = &py_hook_spec,
    [PY_TENSOR] = &py_tensor_spec,       [PY_ROWS] = &py_rows_spec,
    [PY_VALUE] = &py_value_spec,         [PY_SCOPE] = &py_scope_spec,
    [PY_EXECUTOR] = &py_executor_spec,   [PY_CUT] = &py_cut_spec,
    [PY_DATASET] = &py_dataset_spec,     [PY_READER] = &py_reader_spec,
};

static int make_types(PyObject *module, py_state *st)
{
    for (int i = 0; i < PY_TYPES; i++) {
        st->type[i] =
            (PyTypeObject *)PyType_FromModuleAndSpec(module, specs[i], NULL);
        if (!st->type[i] || PyModule_AddType(module, st->type[i]))
            return -1;
    }
    for (int i = 0; i < (int)(sizeof classes / sizeof *classes); i++)
        st->cls[i] =
            (PyTypeObject *)Py_NewRef((PyObject *)st->type[classes[i].base]);
    return make_records(st);
}

/* The folder of the package. Frames of files in it are not those of the user.
 */
static PyObject *package_folder(PyObject *module)
{
    PyObject *file = PyModule_GetFilenameObject(module);
    PyObject *path = PyImport_ImportModule("os.path");
    PyObject *up = file;
    for (int i = 0; path && up && i < 2; i++) {
        PyObject *next = PyObject_CallMethod(path, "dirname", "O", up);
        py_replace(&up, next);
    }
    Py_XDECREF(path);
    return up;
}

/* Its attribute is the exit code of a process that does not catch it. */
static PyObject *make_job_ended(PyObject *base)
{
    PyObject *dict =
        base ? Py_BuildValue("{si}", "code", fl_exit_code(FL_EENDED)) : NULL;
    PyObject *type = dict ? PyErr_NewExceptionWithDoc(
                                "paddle.fluid.core.JobEnded",
                                "The job of this process has ended, and not "
                                "because of it: another process was ended or "
                                "has failed, SIGTERM has ended this server, or "
                                "an earlier process of this trainer has "
                                "completed.",
                                base, dict)
                          : NULL;
    Py_XDECREF(dict);
    return type;
}

static int make_defaults(PyObject *module, py_state *st)
{
    PyObject *lines = PyImport_ImportModule("linecache");
    st->getline = lines ? PyObject_GetAttrString(lines, "getline") : NULL;
    Py_XDECREF(lines);
    st->package = package_folder(module);
    st->enforce_not_met = PyErr_NewExceptionWithDoc(
        "paddle.fluid.core.EnforceNotMet",
        "What running operators, shapes and files raise.", PyExc_RuntimeError,
        NULL);
    st->job_ended = make_job_ended(st->enforce_not_met);
    st->name_scope = PyUnicode_FromString("/");
    st->main = PyObject_CallNoArgs((PyObject *)st->type[PY_PROGRAM]);
    st->startup = PyObject_CallNoArgs((PyObject *)st->type[PY_PROGRAM]);
    st->names = PyObject_CallNoArgs((PyObject *)st->type[PY_NAMES]);
    if (!st->getline || !st->package || !st->enforce_not_met ||
        !st->job_ended || !st->name_scope || !st->main || !st->startup ||
        !st->names)
        return -1;
    return PyModule_AddObjectRef(module, "EnforceNotMet",
                                 st->enforce_not_met) ||
           PyModule_AddObjectRef(module, "JobEnded", st->job_ended);
}

static int make_module(PyObject *module)
{
    py_state *st = PyModule_GetState(module);
    st->engine = fl_engine_new();
    if (make_types(module, st) || make_defaults(module, st))
        return -1;
    return PyModule_AddFunctions(module, py_build_functions) ||
                   PyModule_AddFunctions(module, py_optimizer_functions) ||
                   PyModule_AddFunctions(module, py_exec_functions) ||
                   PyModule_AddFunctions(module, py_dist_functions) ||
                   PyModule_AddFunctions(module, py_launch_functions) ||
                   PyModule_AddFunctions(module, py_train_functions)
               ? -1
               : 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    py_state *st = PyModule_GetState(module);
    for (int i = 0; i < PY_TYPES; i++)
        Py_VISIT(st->type[i]);
    for (int i = 0; i < PY_RECORDS; i++)
        Py_VISIT(st->record[i]);
    for (size_t i = 0; i < sizeof st->cls / sizeof *st->cls; i++)
        Py_VISIT(st->cls[i]);
    Py_VISIT(st->enforce_not_met);
    Py_VISIT(st->job_ended);
    Py_VISIT(st->main);
    Py_VISIT(st->startup);
    Py_VISIT(st->names);
    Py_VISIT(st->getline);
    return 0;
}

static int clear(PyObject *module)
{
    py_state *st = PyModule_GetState(module);
    for (int i = 0; i < PY_TYPES; i++)
        Py_CLEAR(st->type[i]);
    for (int i = 0; i < PY_RECORDS; i++)
        Py_CLEAR(st->record[i]);
    for (size_t i = 0; i < sizeof st->cls / sizeof *st->cls; i++)
        Py_CLEAR(st->cls[i]);
    Py_CLEAR(st->enforce_not_met);
    Py_CLEAR(st->job_ended);
    Py_CLEAR(st->main);
    Py_CLEAR(st->startup);
    Py_CLEAR(st->names);
    Py_CLEAR(st->getline);
    Py_CLEAR(st->package);
    Py_CLEAR(st->name_scope);
    return 0;
}

static void free_module(void *module)
{
    py_state *st = PyModule_GetState(module);
    clear(module);
    fl_engine_free(st->engine);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)make_module},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_fluid",
    .m_doc = "Programs, networks, values and runs of the C library.",
    .m_size = sizeof(py_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__fluid(void); /* Python calls it by this name */
PyMODINIT_FUNC PyInit__fluid(void)
{
    return PyModuleDef_Init(&definition);
}
