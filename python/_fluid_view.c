/* SPDX-License-Identifier: Apache-2.0 */
/* _fluid_view.c - Operator and Variable. */
#include "_fluid.h"

#include <string.h>

/* Operator and Variable begin with the same fields: head, state, program. */
static int view_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((py_variable *)self)->program);
    return 0;
}

static int view_clear(PyObject *self)
{
    Py_CLEAR(((py_variable *)self)->program);
    return 0;
}

static void view_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    view_clear(self);
    py_dealloc(self);
}

/* --- Operator --- */

static fl_op *op_of(PyObject *self)
{
    fl_op *op = ((py_operator *)self)->op;
    if (!op)
        PyErr_SetString(PyExc_RuntimeError,
                        "the operator is gone: its program was replaced");
    return op;
}

static const fl_desc *desc_of(PyObject *self)
{
    const fl_op *op = op_of(self);
    return op ? fl_op_look(op) : NULL;
}

static PyObject *op_block(PyObject *self, void *closure)
{
    const fl_op *op = op_of(self);
    return op ? py_block_wrap(((py_operator *)self)->program,
                              fl_block_look(fl_op_block(op)).idx)
              : NULL;
}

static PyObject *op_type(PyObject *self, void *closure)
{
    const fl_desc *d = desc_of(self);
    return d ? PyUnicode_FromString(d->type) : NULL;
}

static PyObject *op_idx(PyObject *self, void *closure)
{
    const fl_op *op = op_of(self);
    return op ? PyLong_FromLongLong(fl_op_index(op)) : NULL;
}

/* List the slots, or the names in all slots. */
static PyObject *list_names(const fl_args *args, int n, bool slots)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++)
        for (int j = 0; list && j < (slots ? 1 : args[i].n); j++) {
            PyObject *o =
                PyUnicode_FromString(slots ? args[i].slot : args[i].name[j]);
            if (!o || PyList_Append(list, o))
                Py_CLEAR(list);
            Py_XDECREF(o);
        }
    return list;
}

static PyObject *input_names(PyObject *self, void *closure)
{
    const fl_desc *d = desc_of(self);
    return d ? list_names(d->in, d->n_in, true) : NULL;
}

static PyObject *output_names(PyObject *self, void *closure)
{
    const fl_desc *d = desc_of(self);
    return d ? list_names(d->out, d->n_out, true) : NULL;
}

static PyObject *input_args(PyObject *self, void *closure)
{
    const fl_desc *d = desc_of(self);
    return d ? list_names(d->in, d->n_in, false) : NULL;
}

static PyObject *output_args(PyObject *self, void *closure)
{
    const fl_desc *d = desc_of(self);
    return d ? list_names(d->out, d->n_out, false) : NULL;
}

static PyObject *attr_names(PyObject *self, void *closure)
{
    const fl_desc *d = desc_of(self);
    PyObject *list = d ? PyList_New(d->n_attr) : NULL;
    for (int i = 0; list && i < d->n_attr; i++) {
        PyObject *o = PyUnicode_FromString(d->attr[i].name);
        if (!o || PyList_SetItem(list, i, o))
            Py_CLEAR(list);
    }
    return list;
}

static PyGetSetDef op_fields[] = {
    {"block", op_block, NULL, "Where it stands.", NULL},
    {"type", op_type, NULL, "Its type.", NULL},
    {"idx", op_idx, NULL, "Its place; -1: removed.", NULL},
    {"input_names", input_names, NULL, "Slots.", NULL},
    {"output_names", output_names, NULL, "Slots.", NULL},
    {"input_arg_names", input_args, NULL, "Variables.", NULL},
    {"output_arg_names", output_args, NULL, "Variables.", NULL},
    {"attr_names", attr_names, NULL, "Attributes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* The table of an operator type; NULL: there is none. */
static const fl_op_info *table_of(py_state *st, const char *type)
{
    const fl_op_info *rows;
    const int n = fl_op_table(st->engine, &rows);
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].type, type))
            return &rows[i];
    return NULL;
}

static bool has_slot(const fl_slot *slots, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(slots[i].name, name))
            return true;
    return false;
}

static PyObject *slot_names(PyObject *self, PyObject *slot, bool input)
{
    const fl_desc *d = desc_of(self);
    const char *name;
    if (!d || py_to_text(slot, "a slot", &name))
        return NULL;
    const fl_args *args = input ? d->in : d->out;
    for (int i = 0; i < (input ? d->n_in : d->n_out); i++)
        if (!strcmp(args[i].slot, name))
            return py_from_strings(args[i].n, args[i].name);
    const fl_op_info *t = table_of(((py_operator *)self)->st, d->type);
    if (t && has_slot(input ? t->in : t->out, input ? t->n_in : t->n_out, name))
        return PyList_New(0);
    return PyErr_Format(PyExc_ValueError, "%s: there is no %s %s", d->type,
                        input ? "input" : "output", name);
}

static PyObject *op_input(PyObject *self, PyObject *slot)
{
    return slot_names(self, slot, true);
}

static PyObject *op_output(PyObject *self, PyObject *slot)
{
    return slot_names(self, slot, false);
}

/* NULL without an exception: the operator has no attribute of that name. */
static const fl_attr *find_attr(PyObject *self, PyObject *name)
{
    const fl_desc *d = desc_of(self);
    const char *text;
    if (!d || py_to_text(name, "an attribute's name", &text))
        return NULL;
    for (int i = 0; i < d->n_attr; i++)
        if (!strcmp(d->attr[i].name, text))
            return &d->attr[i];
    return NULL;
}

static const fl_attr *get_attr(PyObject *self, PyObject *name)
{
    const fl_attr *a = find_attr(self, name);
    if (!a && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s: there is no attribute %U",
                     desc_of(self)->type, name);
    return a;
}

static PyObject *has_attr(PyObject *self, PyObject *name)
{
    const bool has = find_attr(self, name);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(has);
}

static PyObject *op_attr(PyObject *self, PyObject *name)
{
    const fl_attr *a = get_attr(self, name);
    return a ? py_from_attr(((py_operator *)self)->program, a, true) : NULL;
}

static PyObject *attr_type(PyObject *self, PyObject *name)
{
    const fl_attr *a = get_attr(self, name);
    return a ? PyLong_FromLong((long)a->type) : NULL;
}

/* Set dict[name] = o and release o. Returns the dict; NULL: an error occurred
 * here or before. */
static PyObject *put_item(PyObject *dict, const char *name, PyObject *o)
{
    if (dict && (!o || PyDict_SetItemString(dict, name, o)))
        Py_CLEAR(dict);
    Py_XDECREF(o);
    return dict;
}

static PyObject *dict_of_attrs(py_program *p, const fl_desc *d)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < d->n_attr; i++)
        dict = put_item(dict, d->attr[i].name,
                        py_from_attr(p, &d->attr[i], false));
    return dict;
}

static PyObject *dict_of_slots(const fl_args *args, int n)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < n; i++)
        dict = put_item(dict, args[i].slot, list_names(&args[i], 1, false));
    return dict;
}

static PyObject *all_attrs(PyObject *self, PyObject *none)
{
    const fl_desc *d = desc_of(self);
    return d ? dict_of_attrs(((py_operator *)self)->program, d) : NULL;
}

/* --- its gradient --- */

typedef struct gathered {
    py_program *program;
    PyObject *list; /* NULL: out of memory */
} gathered;

static void gather_grad(void *user, const fl_desc *d)
{
    gathered *g = user;
    PyObject *one = Py_BuildValue(
        "sNNN", d->type, dict_of_slots(d->in, d->n_in),
        dict_of_slots(d->out, d->n_out), dict_of_attrs(g->program, d));
    if (g->list && (!one || PyList_Append(g->list, one)))
        Py_CLEAR(g->list);
    Py_XDECREF(one);
}

static PyObject *op_grads(PyObject *self, PyObject *no_grad)
{
    fl_op *op = op_of(self);
    py_pool pool = {NULL};
    const char *const *names;
    gathered g = {((py_operator *)self)->program, NULL};
    int n;
    if (op && !py_to_names(&pool, no_grad, &n, &names) &&
        (g.list = PyList_New(0))) {
        const fl_err err = fl_op_grads(op, n, names, gather_grad, &g);
        if (err && g.list) {
            Py_CLEAR(g.list);
            py_raise(((py_operator *)self)->st, err);
        }
    }
    py_pool_fini(&pool);
    return g.list;
}

const fl_attr_type *py_attr_type(py_state *st, const char *op, const char *name)
{
    const fl_op_info *t = table_of(st, op);
    for (int i = 0; t && i < t->n_attr; i++)
        if (!strcmp(t->attr[i].name, name))
            return &t->attr[i].type;
    return NULL;
}

static PyObject *set_attr(PyObject *self, PyObject *args)
{
    py_state *st = ((py_operator *)self)->st;
    fl_op *op = op_of(self);
    PyObject *name, *value, *o = NULL;
    py_pool pool = {NULL};
    const char *text;
    fl_attr a;
    if (!op || !PyArg_ParseTuple(args, "UO:set_attr", &name, &value) ||
        py_to_text(name, "an attribute's name", &text))
        return NULL;
    const fl_attr *old = find_attr(self, name);
    const fl_attr_type *type = py_attr_type(st, fl_op_look(op)->type, text);
    if (!type && old)
        type = &old->type;
    if (!py_to_attr(&pool, st, text, type, value, &a))
        o = py_result(st, fl_op_set_attr(op, &a));
    py_pool_fini(&pool);
    return o;
}

static PyObject *remove_attr(PyObject *self, PyObject *name)
{
    const fl_attr *a = get_attr(self, name);
    if (!a)
        return NULL;
    fl_op_remove_attr(op_of(self), a->name);
    return Py_NewRef(Py_None);
}

static PyObject *rename_with(PyObject *self, PyObject *args,
                             void (*rename)(fl_op *, const char *,
                                            const char *))
{
    fl_op *op = op_of(self);
    const char *from, *to;
    if (!op || !PyArg_ParseTuple(args, "ss:rename", &from, &to))
        return NULL;
    rename(op, from, to);
    return Py_NewRef(Py_None);
}

static PyObject *rename_input(PyObject *self, PyObject *args)
{
    return rename_with(self, args, fl_op_rename_in);
}

static PyObject *rename_output(PyObject *self, PyObject *args)
{
    return rename_with(self, args, fl_op_rename_out);
}

static PyObject *infer_shape(PyObject *self, PyObject *none)
{
    fl_op *op = op_of(self);
    return op ? py_result(((py_operator *)self)->st, fl_op_infer(op)) : NULL;
}

static PyObject *op_string(PyObject *self, PyObject *none)
{
    const fl_op *op = op_of(self);
    return op ? py_text(fl_op_proto(op)) : NULL;
}

static PyMethodDef op_methods[] = {
    {"input", op_input, METH_O, "Names in a slot."},
    {"output", op_output, METH_O, "Names in a slot."},
    {"has_attr", has_attr, METH_O, "Is there such an attribute?"},
    {"attr", op_attr, METH_O, "Its value."},
    {"attr_type", attr_type, METH_O, "Paddle's AttrType."},
    {"all_attrs", all_attrs, METH_NOARGS, "Every attribute by name."},
    {"set_attr", set_attr, METH_VARARGS, "Converted to its type."},
    {"remove_attr", remove_attr, METH_O, "ValueError if absent."},
    {"rename_input", rename_input, METH_VARARGS, "Old name, new name."},
    {"rename_output", rename_output, METH_VARARGS, "Old name, new name."},
    {"infer_shape", infer_shape, METH_NOARGS, "Run the shape rule again."},
    {"grads", op_grads, METH_O,
     "Its gradient operators: (type, inputs, outputs, attrs) of each."},
    {"to_string", op_string, METH_NOARGS, "Protobuf's text format."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot op_slots[] = {
    {Py_tp_doc, "An operator of a block."},
    {Py_tp_dealloc, (void *)view_dealloc},
    {Py_tp_traverse, (void *)view_traverse},
    {Py_tp_clear, (void *)view_clear},
    {Py_tp_methods, op_methods},
    {Py_tp_getset, op_fields},
    {0, NULL},
};

PyType_Spec py_operator_spec = {
    .name = "_fluid.Operator",
    .basicsize = sizeof(py_operator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = op_slots,
};

/* --- Variable --- */

static int get_var_info(PyObject *self, fl_var_info *out)
{
    const fl_var *v = ((py_variable *)self)->v;
    if (!v) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the variable is gone: its program was replaced");
        return -1;
    }
    *out = fl_var_look(v);
    return 0;
}

/* The field that a getter or setter works on, as its closure. */
typedef enum field {
    NAME,
    TYPE,
    DTYPE,
    SHAPE,
    LOD_LEVEL,
    PERSISTABLE,
    STOP_GRADIENT,
    IS_DATA,
    ERROR_CLIP,
    IS_PARAMETER,
    TRAINABLE,
    LEARNING_RATE,
    REGULARIZER,
    GRADIENT_CLIP,
    DO_MODEL_AVERAGE,
} field;

static PyObject *get_of_param(const fl_param_info *p, field f)
{
    switch (f) {
    case TRAINABLE:
        return PyBool_FromLong(p->trainable);
    case LEARNING_RATE:
        return PyFloat_FromDouble((double)p->learning_rate);
    case REGULARIZER:
        return py_from_hook(p->regularizer ? p->regularizer->user : NULL);
    case GRADIENT_CLIP:
        return py_from_hook(p->clip ? p->clip->user : NULL);
    default:
        return PyBool_FromLong(p->do_model_average);
    }
}

static PyObject *get_field(PyObject *self, void *closure)
{
    const field f = (field)(intptr_t)closure;
    fl_var_info i;
    if (get_var_info(self, &i))
        return NULL;
    switch (f) {
    case NAME:
        return PyUnicode_FromString(i.name);
    case TYPE:
        return PyLong_FromLong((long)i.kind);
    case DTYPE:
        return PyLong_FromLong((long)i.dtype);
    case SHAPE:
        return py_from_shape(&i.shape);
    case LOD_LEVEL:
        return PyLong_FromLong(i.lod_level);
    case PERSISTABLE:
        return PyBool_FromLong(i.persistable);
    case STOP_GRADIENT:
        return PyBool_FromLong(i.stop_gradient);
    case IS_DATA:
        return PyBool_FromLong(i.is_data);
    case ERROR_CLIP:
        return py_from_hook(i.error_clip ? i.error_clip->user : NULL);
    case IS_PARAMETER:
        return PyBool_FromLong(i.param != NULL);
    default:
        break;
    }
    if (i.param)
        return get_of_param(i.param, f);
    return PyErr_Format(PyExc_AttributeError,
                        "variable \"%s\" is not a parameter", i.name);
}

static int to_flag(PyObject *o, bool *out)
{
    const int truth = PyObject_IsTrue(o);
    *out = truth > 0;
    return truth < 0 ? -1 : 0;
}

static int set_of_param(py_call *c, fl_param_info *p, field f, PyObject *o)
{
    const bool none = o == Py_None;
    switch (f) {
    case TRAINABLE:
        return to_flag(o, &p->trainable);
    case LEARNING_RATE:
        p->learning_rate = (float)PyFloat_AsDouble(o);
        return PyErr_Occurred() ? -1 : 0;
    case REGULARIZER:
        p->regularizer = NULL;
        return none ? 0 : py_to_regularizer(c, o, &p->regularizer);
    case GRADIENT_CLIP:
        p->clip = NULL;
        return none ? 0 : py_to_clip(c, o, &p->clip);
    default:
        return to_flag(o, &p->do_model_average);
    }
}

static int to_number(PyObject *o, long *out)
{
    PyObject *i = PyNumber_Index(o);
    *out = i ? PyLong_AsLong(i) : -1;
    Py_XDECREF(i);
    return PyErr_Occurred() ? -1 : 0;
}

static int change(py_call *c, fl_var_info *i, field f, PyObject *o)
{
    long number = 0;
    int failed;
    switch (f) {
    case TYPE:
        failed = to_number(o, &number);
        i->kind = (fl_kind)number;
        return failed;
    case DTYPE:
        return py_to_dtype(o, &i->dtype);
    case SHAPE:
        return py_to_shape(o, &i->shape);
    case LOD_LEVEL:
        failed = to_number(o, &number);
        i->lod_level = (int)number;
        return failed;
    case PERSISTABLE:
        return to_flag(o, &i->persistable);
    case STOP_GRADIENT:
        return to_flag(o, &i->stop_gradient);
    case IS_DATA:
        return to_flag(o, &i->is_data);
    default:
        i->error_clip = NULL;
        return o == Py_None ? 0 : py_to_clip(c, o, &i->error_clip);
    }
}

static int set_in_call(py_call *c, py_variable *v, field f, PyObject *o)
{
    fl_var_info i = fl_var_look(v->v);
    fl_param_info param = {0};
    if (f > IS_PARAMETER) {
        if (!i.param) {
            PyErr_Format(PyExc_AttributeError,
                         "variable \"%s\" is not a parameter", i.name);
            return -1;
        }
        param = *i.param;
        i.param = &param;
        if (set_of_param(c, &param, f, o))
            return -1;
    } else if (change(c, &i, f, o)) {
        return -1;
    }
    fl_var_set(v->v, &i);
    return 0;
}

static int set_field(PyObject *self, PyObject *value, void *closure)
{
    const field f = (field)(intptr_t)closure;
    py_variable *v = (py_variable *)self;
    fl_var_info i;
    py_call c;
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "it cannot be deleted");
        return -1;
    }
    if (get_var_info(self, &i))
        return -1;
    const int failed = py_call_begin(&c, v->st, v->program, NULL, NULL) ||
                       set_in_call(&c, v, f, value);
    py_call_end(&c);
    return failed ? -1 : 0;
}

static PyObject *var_block(PyObject *self, void *closure)
{
    fl_var_info i;
    return get_var_info(self, &i)
               ? NULL
               : py_block_wrap(((py_variable *)self)->program,
                               fl_block_look(i.block).idx);
}

static bool writes(const fl_desc *d, const char *name)
{
    for (int i = 0; i < d->n_out; i++)
        for (int j = 0; j < d->out[i].n; j++)
            if (!strcmp(d->out[i].name[j], name))
                return true;
    return false;
}

static PyObject *var_op(PyObject *self, void *closure)
{
    fl_var_info i;
    if (get_var_info(self, &i))
        return NULL;
    for (int64_t k = fl_block_look(i.block).n_ops - 1; k >= 0; k--) {
        fl_op *op = fl_block_op(i.block, k);
        if (writes(fl_op_look(op), i.name))
            return py_op_wrap(((py_variable *)self)->program, op);
    }
    return Py_NewRef(Py_None);
}

#define FIELD(name, which, doc)                                                \
    {                                                                          \
        name, get_field, set_field, doc, (void *)(intptr_t)which               \
    }

static PyGetSetDef var_fields[] = {
    {"block", var_block, NULL, "Where it is declared.", NULL},
    {"op", var_op, NULL, "The last op of its block that writes it.", NULL},
    {"name", get_field, NULL, "Its name.", (void *)(intptr_t)NAME},
    {"is_parameter", get_field, NULL, "Whether it is a parameter.",
     (void *)(intptr_t)IS_PARAMETER},
    FIELD("type", TYPE, "Its kind, a number of VarType."),
    FIELD("dtype", DTYPE, "A number of VarType."),
    FIELD("shape", SHAPE, "A tuple; -1: not known before the run."),
    FIELD("lod_level", LOD_LEVEL, "How many levels of detail."),
    FIELD("persistable", PERSISTABLE, "Whether it outlives a run."),
    FIELD("stop_gradient", STOP_GRADIENT, "No gradient flows through it."),
    FIELD("is_data", IS_DATA, "Whether it is fed."),
    FIELD("error_clip", ERROR_CLIP, "How its gradient is clipped."),
    FIELD("trainable", TRAINABLE, "Whether optimisers update it."),
    FIELD("learning_rate", LEARNING_RATE,
          "Factor of the optimiser's learning rate."),
    FIELD("regularizer", REGULARIZER, "What is added to its gradient."),
    FIELD("gradient_clip", GRADIENT_CLIP, "How its gradient is clipped."),
    FIELD("do_model_average", DO_MODEL_AVERAGE,
          "Whether fluid.optimizer.ModelAverage averages it."),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *var_string(PyObject *self, PyObject *none)
{
    fl_var_info i;
    return get_var_info(self, &i)
               ? NULL
               : py_text(fl_var_proto(((py_variable *)self)->v));
}

static PyMethodDef var_methods[] = {
    {"to_string", var_string, METH_NOARGS, "Protobuf's text format."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot var_slots[] = {
    {Py_tp_doc, "A variable of a block."},
    {Py_tp_dealloc, (void *)view_dealloc},
    {Py_tp_traverse, (void *)view_traverse},
    {Py_tp_clear, (void *)view_clear},
    {Py_tp_methods, var_methods},
    {Py_tp_getset, var_fields},
    {0, NULL},
};

PyType_Spec py_variable_spec = {
    .name = "_fluid.Variable",
    .basicsize = sizeof(py_variable),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = var_slots,
};
