/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "fluid.pb-c.h"
#include "wire/codec.h"
#include "wire/test_packet.h"

#include <stdio.h>

static const char *const peer = "10.0.0.7:4711";

static const fl_member members[] = {{0, {1, 2}, 3}, {1, {4, UINT64_MAX}, 5}};
static const uint64_t seen[] = {19, 0, UINT64_MAX};
static const fl_leave left[] = {{2, {6, 7}, 8, FL_LEFT_DONE, 9}};

/* A message whose fields all have different values. */
static fl_msg full(fl_msg_kind kind)
{
    return (fl_msg){
        .kind = kind,
        .job = {0x0102030405060708, 0x1112131415161718},
        .session = {0x2122232425262728, 0xf1f2f3f4f5f6f7f8},
        .tag = UINT64_MAX,
        .g = 1 << 20,
        .view = INT64_MAX,
        .round = -1,
        .seq = 11,
        .count = 12,
        .echo = 13,
        .secret = 14,
        .state = {20, 21},
        .expected = 22,
        .seen = seen,
        .n_seen = 3,
        .explicit_id = true,
        .server = 15,
        .rank = -1,
        .code = -18,
        .over = true,
        .member = members,
        .n_member = 2,
        .left = left,
        .n_left = 1,
        .text = "rank 2 gone: it completed \xe2\x80\xa6",
        .about = "trainers 2\nw [2]\n",
        .step = 23,
        .part = 24,
        .position = "pass 1",
        .snapshot = 25,
        .generation = 26,
    };
}

static void same_fields(const fl_msg_field *fields, const char *a,
                        const char *b)
{
    static const size_t size[] = {[FL_FIELD_INT] = sizeof(int),
                                  [FL_FIELD_WORD] = sizeof(int64_t),
                                  [FL_FIELD_BOOL] = sizeof(bool),
                                  [FL_FIELD_LIST] = 0};
    for (const fl_msg_field *f = fields; f->name; f++) {
        const char *p, *q;
        int n = 0, m = 0;
        CHECK(!memcmp(a + f->at, b + f->at, size[f->type]));
        if (f->type < FL_FIELD_TEXT)
            continue;
        memcpy(&p, a + f->at, sizeof p);
        memcpy(&q, b + f->at, sizeof q);
        if (f->type != FL_FIELD_LIST) {
            CHECK_STR(p ? p : "", q ? q : "");
            continue;
        }
        memcpy(&n, a + f->count_at, sizeof n);
        memcpy(&m, b + f->count_at, sizeof m);
        CHECK_INT(n, m);
        if (!f->list)
            CHECK(!memcmp(p, q, (size_t)n * f->size));
        for (int i = 0; f->list && i < n; i++)
            same_fields(f->list, p + (size_t)i * f->size,
                        q + (size_t)i * f->size);
    }
}

static void same_control(const fl_msg *a, const fl_msg *b)
{
    same_fields(fl_msg_fields, (const char *)a, (const char *)b);
}

/* All numbers have their longest encoding. */
static void the_largest_view_comes_back(void)
{
    static fl_member all[FL_TRAINERS_MOST];
    static fl_leave gone[FL_TRAINERS_MOST];
    for (int i = 0; i < FL_TRAINERS_MOST; i++) {
        all[i] = (fl_member){i, {1, 2}, INT64_MAX};
        gone[i] = (fl_leave){i, {3, 4}, INT64_MAX, FL_LEFT_DONE, INT64_MAX};
    }
    fl_msg m = full(FL_MSG_VIEW), back;
    m.member = all;
    m.left = gone;
    m.n_member = m.n_left = FL_TRAINERS_MOST;
    fl_arena *a = fl_arena_new();
    fl_packet *p = fl_msg_encode(&m);
    CHECK_OK(fl_msg_decode(peer, p, a, &back));
    same_control(&back, &m);
    fl_packet_unref(p);
    fl_arena_free(a);
}

/* A parcel with every kind of item: tensors, selected rows, and wanted names,
 * rows and elements. */
static float weight[6] = {1, -2, 3, 0.5f, 5, 6};
static double bias[2] = {0.25, -1e300};
static int64_t index_of[2] = {7, INT64_MAX};
static const int64_t wanted[3] = {-1, 5, 1 << 30};

static fl_parcel *make_parcel(void)
{
    const int64_t d23[] = {2, 3}, d2[] = {2}, d13[] = {2, 3};
    fl_shape s23 = fl_shape_of(2, d23), s2 = fl_shape_of(1, d2);
    fl_shape s13 = fl_shape_of(2, d13);
    fl_tensor w = fl_tensor_view(FL_F32, &s23, weight);
    fl_tensor b = fl_tensor_view(FL_F64, &s2, bias);
    fl_rows rows = {.height = 100,
                    .n = 2,
                    .index = fl_tensor_view(FL_I64, &s2, index_of),
                    .value = fl_tensor_view(FL_F32, &s13, weight)};
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "fc_0.w_0@GRAD", &w);
    fl_parcel_add_slice(p, "fc_0.b_0@GRAD", &b, 1, 1);
    fl_parcel_add_rows(p, "emb@GRAD", &rows);
    fl_parcel_want(p, "fc_0.w_0", -1, NULL);
    fl_parcel_want(p, "emb", 3, wanted);
    fl_parcel_want(p, "none", 0, NULL);
    fl_parcel_want_ids(p, "emb", 1000, wanted);
    fl_parcel_want_range(p, "fc_0.w_0", 1 << 20, 9);
    return p;
}

static void same_bytes(fl_bytes a, fl_bytes b)
{
    char x[256], y[256];
    CHECK_INT(a.size, b.size);
    CHECK(a.size <= sizeof x);
    fl_bytes_copy(a, 0, x, a.size);
    fl_bytes_copy(b, 0, y, b.size);
    CHECK(!memcmp(x, y, a.size));
}

static void same_items(const fl_parcel *a, const fl_parcel *b)
{
    CHECK_INT(a->n, b->n);
    CHECK_INT(a->size, b->size);
    for (int i = 0; i < b->n; i++) {
        const fl_item *x = &a->item[i], *y = &b->item[i];
        CHECK_STR(x->name, y->name);
        CHECK_INT(x->kind, y->kind);
        CHECK_INT(x->dtype, y->dtype);
        CHECK(fl_shape_equal(&x->shape, &y->shape));
        CHECK_INT(x->height, y->height);
        CHECK_INT(x->first, y->first);
        same_bytes(x->rows, y->rows);
        same_bytes(x->data, y->data);
    }
}

static fl_str encode(const fl_msg *m)
{
    return test_bytes(fl_msg_encode(m));
}

/* The bytes of a push with all fields and that parcel. */
static fl_str push_bytes(void)
{
    fl_msg m = full(FL_MSG_PUSH);
    fl_parcel *p = make_parcel();
    m.blob = fl_parcel_blob(p);
    fl_str s = encode(&m);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
    return s;
}

static void check_push(const fl_packet *bytes)
{
    fl_arena *a = fl_arena_new();
    fl_msg got, want = full(FL_MSG_PUSH);
    fl_parcel *p = make_parcel();
    CHECK_OK(fl_msg_decode(peer, bytes, a, &got));
    same_control(&got, &want);
    same_items(fl_parcel_of(got.blob), p);
    CHECK_INT(got.blob.size, p->size);
    fl_keeper_parcels.drop(NULL, got.blob);
    fl_parcel_unref(p);
    fl_arena_free(a);
}

/* --- encode, then decode --- */

static void every_kind_comes_back(void)
{
    fl_arena *a = fl_arena_new();
    for (int kind = FL_MSG_JOIN; kind < FL_MSG_KINDS; kind++) {
        fl_msg want = full((fl_msg_kind)kind), got;
        fl_packet *p = fl_msg_encode(&want);
        CHECK_OK(fl_msg_decode(peer, p, a, &got));
        same_control(&got, &want);
        CHECK(!got.blob.owner && !got.blob.size);
        fl_packet_unref(p);
    }
    fl_arena_free(a);
}

static void kinds_have_the_names_of_the_schema(void)
{
    const ProtobufCEnumDescriptor *d = &fluid__control__kind__descriptor;
    CHECK_INT(d->n_values, FL_MSG_KINDS);
    for (int kind = 0; kind < FL_MSG_KINDS; kind++)
        CHECK_STR(protobuf_c_enum_descriptor_get_value(d, kind)->name,
                  fl_msg_name((fl_msg_kind)kind));
}

static void check_schema(const fl_msg_field *fields,
                         const ProtobufCMessageDescriptor *type)
{
    unsigned n = 0;
    for (const fl_msg_field *f = fields; f->name; f++, n++) {
        const ProtobufCFieldDescriptor *d =
            protobuf_c_message_descriptor_get_field(type, (unsigned)f->number);
        CHECK(d == &type->fields[n]); /* the codec relies on the order */
        CHECK_STR(d->name, f->name);
        CHECK_INT(d->label == PROTOBUF_C_LABEL_REPEATED,
                  f->type == FL_FIELD_LIST);
        CHECK_INT(d->type == PROTOBUF_C_TYPE_STRING,
                  f->type == FL_FIELD_TEXT || f->type == FL_FIELD_LINES);
        CHECK_INT(d->type == PROTOBUF_C_TYPE_BOOL, f->type == FL_FIELD_BOOL);
        CHECK_INT(d->type == PROTOBUF_C_TYPE_ENUM ||
                      d->type == PROTOBUF_C_TYPE_INT32 ||
                      d->type == PROTOBUF_C_TYPE_SINT32,
                  f->type == FL_FIELD_INT);
        if (f->list)
            check_schema(f->list, d->descriptor);
    }
    CHECK_INT(n, type->n_fields); /* no field of the schema is missing */
}

static void fields_are_those_of_the_schema(void)
{
    check_schema(fl_msg_fields, &fluid__control__descriptor);
}

static void dtypes_have_the_numbers_of_the_schema(void)
{
    const ProtobufCEnumDescriptor *d = &fluid__tensor__dtype__descriptor;
    for (int i = 0; i < 64; i++)
        CHECK_INT(!!protobuf_c_enum_descriptor_get_value(d, i),
                  fl_dtype_valid(i));
}

static void methods_are_those_of_the_schema(void)
{
    static const ProtobufCServiceDescriptor *const services[] = {
        &fluid__coordinator__descriptor, &fluid__server__descriptor,
        &fluid__watch__descriptor};
    fl_str all = {0};
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        for (unsigned j = 0; j < services[i]->n_methods; j++)
            fl_str_printf(&all, "/%s/%s ", services[i]->name,
                          services[i]->methods[j].name);
    fl_rpc_method method[FL_MSG_KINDS];
    const int n = fl_msg_methods(method, (fl_rpc_method){0},
                                 (fl_rpc_method){.open = true},
                                 (fl_rpc_method){.open = true});
    size_t length = strlen(FL_METHOD_WHY " ");
    CHECK(strstr(all.at, FL_METHOD_WHY " ") != NULL);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s ", method[i].name);
        CHECK(strstr(all.at, name) != NULL);
        CHECK_INT(method[i].open,
                  !strcmp(name, "/fluid.Coordinator/Session ") ||
                      !strcmp(name, FL_METHOD_STREAM " "));
        length += strlen(name);
    }
    CHECK_INT((int64_t)length,
              (int64_t)all.n); /* every field once, and no other */
    CHECK_STR(fl_msg_method(FL_MSG_PUSH), "/fluid.Server/Push");
    CHECK(!fl_msg_method(FL_MSG_ACK) && !fl_msg_method(FL_MSG_KINDS));
    fl_str_fini(&all);
}

static void tensors_come_back_however_they_are_cut(void)
{
    fl_str s = push_bytes();
    for (size_t piece = 1; piece <= 16; piece++) {
        fl_packet *p = test_cut(s.at, s.n, piece);
        check_push(p);
        fl_packet_unref(p);
    }
    for (size_t at = 0; at <= s.n; at++) {
        fl_packet *p = fl_packet_new();
        fl_packet_copy(p, s.at, at);
        fl_packet_lend(p, s.at + at, s.n - at, NULL, NULL);
        check_push(p);
        fl_packet_unref(p);
    }
    fl_str_fini(&s);
}

static void a_parcel_outlives_its_message(void)
{
    fl_str s = push_bytes();
    fl_packet *p = test_cut(s.at, s.n, 7);
    fl_arena *a = fl_arena_new();
    fl_msg m;
    CHECK_OK(fl_msg_decode(peer, p, a, &m));
    fl_packet_unref(p);
    fl_arena_free(a);
    fl_parcel *want = make_parcel();
    same_items(fl_parcel_of(m.blob), want);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(want);
    fl_str_fini(&s);
}

static void large_memory_is_lent(void)
{
    const int64_t n = 4096;
    fl_shape shape = fl_shape_of(1, &n);
    fl_tensor t = {0};
    CHECK_OK(fl_tensor_resize(&t, FL_F32, &shape));
    memset(t.data, 0, fl_tensor_bytes(&t));
    const void *data = t.data;
    fl_parcel *parcel = fl_parcel_new();
    fl_parcel_add(parcel, "w", &t);
    fl_msg m = {.kind = FL_MSG_PUSH, .blob = fl_parcel_blob(parcel)};
    fl_packet *p = fl_msg_encode(&m);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(parcel);
    fl_tensor_fini(&t); /* only the packet holds the memory now */
    const fl_span *spans;
    CHECK_INT(fl_packet_spans(p, &spans), 2);
    CHECK(spans[1].at == data);
    CHECK_INT(spans[1].size, 16384);
    CHECK_INT(((const char *)data)[16383], 0);
    fl_packet_unref(p);
}

static void a_broken_character_does_not_spoil_a_message(void)
{
    fl_arena *a = fl_arena_new();
    fl_msg m = {.kind = FL_MSG_ERROR, .text = "cut off \xe2\x80"}, got;
    fl_packet *p = fl_msg_encode(&m);
    CHECK_OK(fl_msg_decode(peer, p, a, &got));
    CHECK_STR(got.text, "cut off \\xe2\\x80");
    fl_packet_unref(p);
    fl_arena_free(a);
}

/* Another implementation may send any UTF-8 text. */
static void a_peers_text_is_read_as_plain_characters(void)
{
    static const char bytes[] = "\x0a\x0c\x08\x01\xaa\x01\x07h:1\n\x1b[m";
    static const char lines[] = "\x0a\x05"
                                "a\nb\x1b"
                                "c";
    fl_arena *a = fl_arena_new();
    const char *text;
    fl_msg m;
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, bytes, sizeof bytes - 1);
    CHECK_OK(fl_msg_decode(peer, p, a, &m));
    CHECK_STR(m.text, "h:1\\n\\x1b[m");
    fl_packet_unref(p);
    p = fl_packet_new();
    fl_packet_copy(p, lines, sizeof lines - 1);
    CHECK_OK(fl_why_decode(peer, p, a, &text));
    CHECK_STR(text, "a\nb\\x1bc");
    fl_packet_unref(p);
    fl_arena_free(a);
}

static void an_answer_to_why_comes_back(void)
{
    fl_arena *a = fl_arena_new();
    const char *text;
    fl_packet *p = fl_why_encode("rank 0 waits for rank 1\n");
    CHECK_OK(fl_why_decode(peer, p, a, &text));
    CHECK_STR(text, "rank 0 waits for rank 1\n");
    fl_packet_unref(p);
    fl_arena_free(a);
}

/* --- agreement with protobuf --- */

static void check_golden(const fl_msg *m, const char *want)
{
    fl_str s = encode(m), hex = {0};
    for (size_t i = 0; i < s.n; i++)
        fl_str_printf(&hex, "%02x", (unsigned char)s.at[i]);
    CHECK_STR(hex.at, want);
    fl_str_fini(&hex);
    fl_str_fini(&s);
}

static void bytes_are_those_of_the_page(void)
{
    check_golden(&(fl_msg){.kind = FL_MSG_JOIN,
                           .job = {1, 2},
                           .session = {3, 4},
                           .tag = 5,
                           .rank = 1,
                           .text = "h:1"},
                 "0a300801"
                 "110100000000000000" /* job */
                 "190200000000000000"
                 "210300000000000000" /* session */
                 "290400000000000000"
                 "3005" /* tag */
                 "7802" /* rank 1, zigzag */
                 "aa0103683a31" /* text */);
    const float x[2] = {1, -2};
    const int64_t n = 2;
    fl_shape s = fl_shape_of(1, &n);
    fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "w", &t);
    fl_msg m = {.kind = FL_MSG_PUSH, .seq = 1, .blob = fl_parcel_blob(p)};
    check_golden(&m, "0a0408065001"
                     "1214"
                     "0a0177"   /* name */
                     "10071805" /* LOD_TENSOR of FP32 */
                     "220102"   /* dim */
                     "7a080000803f000000c0" /* data */);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
}

/* protobuf-c decodes our bytes with the schema, and encodes the same bytes. */
static void another_encoder_writes_the_same_bytes(void)
{
    fl_str s = push_bytes();
    Fluid__Message *m =
        fluid__message__unpack(NULL, s.n, (const uint8_t *)s.at);
    CHECK(m != NULL);
    CHECK_INT(m->n_tensor, 8);
    CHECK_STR(m->tensor[0]->name, "fc_0.w_0@GRAD");
    CHECK_INT(m->tensor[1]->first, 1);
    CHECK_INT(m->tensor[2]->rows.len, 16);
    uint8_t *again = fl_mem_alloc(s.n);
    CHECK_INT(fluid__message__get_packed_size(m), s.n);
    CHECK_INT(fluid__message__pack(m, again), s.n);
    CHECK(!memcmp(again, s.at, s.n));
    fl_mem_free(again);
    fluid__message__free_unpacked(m, NULL);
    fl_str_fini(&s);
}

const fl_test fl_tests[] = {
    {"every kind of message comes back", every_kind_comes_back},
    {"the largest view comes back", the_largest_view_comes_back},
    {"fields are those of the schema", fields_are_those_of_the_schema},
    {"kinds have the names of the schema", kinds_have_the_names_of_the_schema},
    {"dtypes have the numbers of the schema",
     dtypes_have_the_numbers_of_the_schema},
    {"methods are those of the schema", methods_are_those_of_the_schema},
    {"tensors come back however they are cut",
     tensors_come_back_however_they_are_cut},
    {"a parcel outlives its message", a_parcel_outlives_its_message},
    {"large memory is lent, and kept", large_memory_is_lent},
    {"a broken character does not spoil a message",
     a_broken_character_does_not_spoil_a_message},
    {"a peer's text is read as plain characters",
     a_peers_text_is_read_as_plain_characters},
    {"an answer to Why comes back", an_answer_to_why_comes_back},
    {"bytes are those of the page", bytes_are_those_of_the_page},
    {"another encoder writes the same bytes",
     another_encoder_writes_the_same_bytes},
    {0},
};
