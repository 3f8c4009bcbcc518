#include "methods.h"

#include "capture.h"
#include "ractors.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static VALUE cache_guard; /* registered; marks the caches */
static ID id_refined_class, id_defined_at, id_thread_name;

/* ---- Content -> number. */

typedef struct content {
    uint64_t hash;
    uint32_t kind, line, name_bytes, path_bytes;
    char bytes[]; /* name, path */
} content;

/* Anonymous classes come without end. When so many of their methods are known, those are forgotten (some 20 MB at most); what
 * is met again gets another number, and readers go by the name. */
#define NAMELESS_MAX 65536u

static void table_free(methods_table *table)
{
    for (uint32_t i = 0; i < table->slot_count; i++)
        free(table->slots[i]);
    free(table->slots);
    free(table->numbers);
    *table = (methods_table){0};
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) /* FNV-1a: short names, once a method */
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint32_t table_slot(const methods_table *table, uint64_t hash)
{
    return (uint32_t)((hash * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (table->slot_count - 1);
}

static bool is_nameless(const content *c) { return c->name_bytes > 0 && c->bytes[0] == '#'; }

/* Lay the table out anew in slot_count slots, with or without the nameless. False: no memory, nothing is changed. */
static bool table_rebuild(methods_table *table, uint32_t slot_count, bool keeps_nameless)
{
    methods_table made = {.slot_count = slot_count, .numbered = table->numbered};
    made.slots = calloc(slot_count, sizeof(content *));
    made.numbers = calloc(slot_count, sizeof(uint32_t));
    if (!made.slots || !made.numbers) {
        free(made.slots);
        free(made.numbers);
        return false;
    }
    for (uint32_t i = 0; i < table->slot_count; i++) {
        content *c = table->slots[i];
        if (!c)
            continue;
        if (is_nameless(c) && !keeps_nameless) {
            free(c);
            continue;
        }
        uint32_t at = table_slot(&made, c->hash);
        while (made.slots[at])
            at = (at + 1) & (slot_count - 1);
        made.slots[at] = c;
        made.numbers[at] = table->numbers[i];
        made.used++;
        made.nameless += is_nameless(c);
    }
    free(table->slots);
    free(table->numbers);
    *table = made;
    return true;
}

static bool same_content(const content *a, const content *b, const char *name, const char *path)
{
    return a->hash == b->hash && a->kind == b->kind && a->line == b->line && a->name_bytes == b->name_bytes &&
           a->path_bytes == b->path_bytes && memcmp(a->bytes, name, a->name_bytes) == 0 &&
           memcmp(a->bytes + a->name_bytes, path, a->path_bytes) == 0;
}

/* The content's number, or 0: no memory. *new_slot: where it lies when it got its number now, for table_forget; else
 * UINT32_MAX. Sets key->hash. */
static uint32_t table_find(methods_table *table, content *key, const char *name, const char *path, uint32_t *new_slot)
{
    *new_slot = UINT32_MAX;
    if (table->nameless >= NAMELESS_MAX && !table_rebuild(table, table->slot_count, false))
        return 0;
    if ((table->used + 1) * 4u > table->slot_count * 3u &&
        !table_rebuild(table, table->slot_count ? table->slot_count * 2 : 1024, true))
        return 0;
    key->hash = hash_bytes(UINT64_C(0xcbf29ce484222325) + key->kind, name, key->name_bytes);
    key->hash = hash_bytes(key->hash ^ key->line, path, key->path_bytes);
    uint32_t at = table_slot(table, key->hash);
    for (; table->slots[at]; at = (at + 1) & (table->slot_count - 1))
        if (same_content(table->slots[at], key, name, path))
            return table->numbers[at];
    content *made = table->numbered < EV_NUMBER_MAX ? malloc(sizeof *made + key->name_bytes + key->path_bytes) : NULL;
    if (!made)
        return 0;
    *made = *key;
    memcpy(made->bytes, name, key->name_bytes);
    memcpy(made->bytes + key->name_bytes, path, key->path_bytes);
    table->slots[at] = made;
    table->used++;
    table->nameless += is_nameless(made);
    table->numbers[at] = ++table->numbered;
    *new_slot = at;
    return table->numbered;
}

/* Only right after the table_find that made it: no other content can have probed past it. */
static void table_forget(methods_table *table, uint32_t slot)
{
    table->nameless -= is_nameless(table->slots[slot]);
    free(table->slots[slot]);
    table->slots[slot] = NULL;
    table->used--;
    table->numbered--;
}

/* ---- Names. No function here runs user code or allocates a Ruby object: the strings are borrowed from the VM. */

typedef struct text {
    char *bytes; /* one more than capacity */
    size_t count, capacity;
    size_t separator; /* where the method's name begins, less one; SIZE_MAX: there is no class before it */
    bool cut;
} text;

static void put_bytes(text *t, const char *bytes, size_t count)
{
    if (count > t->capacity - t->count) {
        count = t->capacity - t->count;
        t->cut = true;
    }
    memcpy(t->bytes + t->count, bytes, count);
    t->count += count;
}

static void put_text(text *t, const char *words) { put_bytes(t, words, strlen(words)); }

static void put_string(text *t, VALUE string) { put_bytes(t, RSTRING_PTR(string), (size_t)RSTRING_LEN(string)); }

static void put_address(text *t, VALUE object)
{
    char words[32];
    snprintf(words, sizeof words, ":0x%016llx>", (unsigned long long)object);
    put_text(t, words);
}

/* A name that had to be cut ends in the mark, at the border of a UTF-8 character. */
static void finish_cut(text *t)
{
    if (!t->cut)
        return;
    size_t room = t->capacity - strlen(EV_NAME_CUT_MARK);
    if (t->count > room)
        t->count = room;
    for (int i = 0; i < 3 && t->count > 0 && ((unsigned char)t->bytes[t->count] & 0xC0) == 0x80; i++)
        t->count--;
    memcpy(t->bytes + t->count, EV_NAME_CUT_MARK, strlen(EV_NAME_CUT_MARK));
    t->count += strlen(EV_NAME_CUT_MARK);
}

static bool is_module(VALUE object)
{
    return !RB_SPECIAL_CONST_P(object) && (RB_BUILTIN_TYPE(object) == T_CLASS || RB_BUILTIN_TYPE(object) == T_MODULE);
}

static bool is_singleton(VALUE klass) { return RB_BUILTIN_TYPE(klass) == T_CLASS && rb_class_real(klass) != klass; }

static bool is_refinement(VALUE klass)
{
    return RB_BUILTIN_TYPE(klass) == T_MODULE && rb_class_real(RBASIC_CLASS(klass)) == rb_cRefinement;
}

static VALUE real_class_of(VALUE object) { return rb_class_real(CLASS_OF(object)); }

static void put_class(text *t, VALUE klass, int level)
{
    VALUE name = rb_mod_name(klass);
    if (RB_TYPE_P(name, T_STRING)) {
        put_string(t, name);
    } else if (level > 8) { /* singletons of singletons of …: enough is told */
        put_text(t, "#<Class>");
    } else if (is_singleton(klass)) {
        VALUE attached = rb_class_attached_object(klass);
        put_text(t, "#<Class:");
        if (is_module(attached)) {
            put_class(t, attached, level + 1);
            put_text(t, ">");
        } else {
            put_text(t, "#<");
            put_class(t, real_class_of(attached), level + 1);
            put_address(t, attached);
            put_text(t, ">");
        }
    } else if (is_refinement(klass)) {
        VALUE refined = rb_attr_get(klass, id_refined_class), where = rb_attr_get(klass, id_defined_at);
        put_text(t, "#<refinement:");
        if (is_module(refined))
            put_class(t, refined, level + 1);
        put_text(t, "@");
        if (is_module(where))
            put_class(t, where, level + 1);
        put_text(t, ">");
    } else {
        put_text(t, "#<");
        put_class(t, rb_class_real(RBASIC_CLASS(klass)), level + 1);
        put_address(t, klass);
    }
}

/* The module whose name the qualified name shows. */
static VALUE named_module(VALUE klass)
{
    if (!is_singleton(klass))
        return klass;
    VALUE attached = rb_class_attached_object(klass);
    return is_module(attached) ? attached : real_class_of(attached);
}

static void put_qualified(text *t, VALUE klass, ID id)
{
    if (klass && is_singleton(klass)) {
        VALUE attached = rb_class_attached_object(klass);
        if (is_module(attached)) {
            put_class(t, attached, 0);
        } else {
            put_text(t, "#<");
            put_class(t, real_class_of(attached), 0);
            put_text(t, ">");
        }
        t->separator = t->count;
        put_text(t, ".");
    } else if (klass) {
        put_class(t, klass, 0);
        t->separator = t->count;
        put_text(t, "#");
    }
    VALUE name = id ? rb_id2str(id) : Qfalse;
    if (RB_TYPE_P(name, T_STRING))
        put_string(t, name);
    else
        put_text(t, klass ? "?" : "<main>");
}

/* An ICLASS stands for a module in an ancestor chain. */
static VALUE as_module(VALUE klass)
{
    if (klass && !RB_SPECIAL_CONST_P(klass) && RB_BUILTIN_TYPE(klass) == T_ICLASS)
        klass = RBASIC_CLASS(klass);
    return klass && is_module(klass) ? klass : 0;
}

/* Nameless so far, below something nameless, or named by set_temporary_name: `Const = klass` may name it tomorrow. Only a
 * path of constants is for good; a temporary name is none, as Ruby demands. */
static bool may_be_renamed(VALUE class_name)
{
    if (!RB_TYPE_P(class_name, T_STRING))
        return true;
    const char *bytes = RSTRING_PTR(class_name);
    bool is_begin = true;
    for (long i = 0; i < RSTRING_LEN(class_name); i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool is_upper = (c >= 'A' && c <= 'Z') || c >= 0x80;
        if (c == ':') {
            if (is_begin || i + 1 >= RSTRING_LEN(class_name) || bytes[++i] != ':')
                return true;
            is_begin = true;
        } else if (is_begin ? !is_upper : !(is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return true;
        } else {
            is_begin = false;
        }
    }
    return is_begin;
}

/* ---- Lookup. */

#define BLOCK_PREFIX "block in "

/* Is the method (a block: that around it) wanted? name is whole; prefix_bytes of it stand before the method's own. */
static methods_verdict verdict_on(const text *name, size_t prefix_bytes, bool is_c, VALUE iseq, const char *path)
{
    const char *own = name->bytes + prefix_bytes;
    size_t own_bytes = name->count - prefix_bytes;
    name->bytes[name->count] = '\0';
    if (select_wants(own, own_bytes, is_c, iseq, path))
        return METHODS_WANTED;
    if (name->separator >= name->count)
        return METHODS_LEFT_OUT;
    char *separator = &name->bytes[name->separator], was = *separator;
    *separator = was == '#' ? '.' : '#';
    bool would_be = select_wants(own, own_bytes, is_c, iseq, path);
    *separator = was;
    return would_be ? METHODS_LEFT_OUT_SO_FAR : METHODS_LEFT_OUT;
}

/* A number; or 0, and *verdict says whether that is because the method is left out. */
static uint32_t define_method_number(stream *s, rb_trace_arg_t *arg, VALUE owner, ID id, VALUE iseq, uint32_t kind,
                                     methods_verdict *verdict)
{
    text name = {s->methods.name, 0, EV_NAME_BYTES_MAX, SIZE_MAX, false};
    if (kind == EV_METHOD_BLOCK)
        put_text(&name, BLOCK_PREFIX);
    put_qualified(&name, owner, id);
    finish_cut(&name);
    ev_method_def def = {.kind = kind, .name_bytes = (uint32_t)name.count};
    const char *path_bytes = "";
    if (kind != EV_METHOD_C) {
        VALUE path = rb_tracearg_path(arg), line = rb_tracearg_lineno(arg);
        if (RB_TYPE_P(path, T_STRING)) {
            path_bytes = RSTRING_PTR(path);
            def.path_bytes = RSTRING_LEN(path) < (long)EV_PATH_BYTES_MAX ? (uint32_t)RSTRING_LEN(path) : EV_PATH_BYTES_MAX;
        }
        def.line = FIXNUM_P(line) && FIX2LONG(line) > 0 ? (uint32_t)FIX2LONG(line) : 0;
    }
    if (select_is_on()) {
        size_t prefix_bytes = kind == EV_METHOD_BLOCK ? strlen(BLOCK_PREFIX) : 0;
        *verdict = verdict_on(&name, prefix_bytes, kind == EV_METHOD_C, iseq, path_bytes);
        if (*verdict != METHODS_WANTED)
            return 0;
    }
    uint32_t slot;
    content key = {.kind = kind, .line = def.line, .name_bytes = def.name_bytes, .path_bytes = def.path_bytes};
    uint32_t number = table_find(&s->methods.methods, &key, name.bytes, path_bytes, &slot);
    if (number == 0 || slot == UINT32_MAX)
        return number;
    capture_piece pieces[] = {{&def, sizeof def}, {name.bytes, def.name_bytes}, {path_bytes, def.path_bytes}};
    if (capture_define(s, EV_DEFINE_METHOD, number, pieces, 3))
        return number;
    table_forget(&s->methods.methods, slot);
    return 0;
}

uint32_t methods_find(stream *s, rb_trace_arg_t *arg, VALUE klass, ID id, VALUE iseq, uint32_t kind)
{
    methods_entry *pair = methods_pair(&s->methods, klass, id);
    VALUE *names = &s->methods.class_names[pair - s->methods.cache];
    const methods_entry *known = methods_known(&s->methods, klass, id, iseq, kind);
    if (known) { /* left out: then the fast path has no answer */
        s->methods.verdict = known->number != 0 ? METHODS_WANTED : METHODS_LEFT_OUT_SO_FAR;
        return known->number;
    }
    VALUE owner = klass;
    ID name_id = id;
    if (id == METHODS_BY_ADDRESS || kind == EV_METHOD_BLOCK) { /* a block is known to people by the method around it */
        owner = rb_tracearg_defined_class(arg);
        VALUE name = rb_tracearg_method_id(arg);
        name_id = SYMBOL_P(name) ? SYM2ID(name) : 0;
    }
    owner = as_module(owner);
    VALUE class_name = owner ? rb_mod_name(named_module(owner)) : Qnil;
    bool stays = owner ? !may_be_renamed(class_name) : true;
    for (int i = 0; i < 2; i++) {
        if (owner && names[i] == class_name && methods_is(&pair[i], klass, ~id, iseq, kind)) {
            s->methods.verdict = pair[i].number != 0 ? METHODS_WANTED : METHODS_LEFT_OUT_SO_FAR;
            return pair[i].number;
        }
    }
    methods_verdict verdict = METHODS_WANTED;
    uint32_t number = define_method_number(s, arg, owner, name_id, iseq, kind, &verdict);
    s->methods.verdict = verdict == METHODS_LEFT_OUT && !stays ? METHODS_LEFT_OUT_SO_FAR : verdict;
    if ((number == 0 && verdict == METHODS_WANTED) || klass == 0 || methods_is_thread_name(klass, id))
        return number;
    if (kind == EV_METHOD_BLOCK && select_has_patterns()) /* its code is not enough: methods that share it are not all wanted */
        return number;
    if (pair[0].klass != klass || pair[0].id != ~id) { /* not what it was called before it was named anew */
        pair[1] = pair[0];
        names[1] = names[0];
    }
    pair[0] = (methods_entry){klass, stays ? id : ~id, iseq, number, kind};
    names[0] = class_name;
    return number;
}

bool methods_is_thread_name(VALUE klass, ID id) { return id == id_thread_name && klass == rb_cThread; }

uint32_t methods_string(stream *s, const char *bytes, size_t count)
{
    uint32_t slot, length = count < EV_NAME_BYTES_MAX ? (uint32_t)count : EV_NAME_BYTES_MAX;
    content key = {.name_bytes = length};
    uint32_t number = table_find(&s->methods.strings, &key, bytes, "", &slot);
    if (number == 0 || slot == UINT32_MAX)
        return number;
    if (capture_define(s, EV_DEFINE_STRING, number, &(capture_piece){bytes, length}, 1))
        return number;
    table_forget(&s->methods.strings, slot);
    return 0;
}

/* ---- Life. */

static void mark_cache(const methods_state *m)
{
    for (uint32_t i = 0; i < METHODS_CACHE_SIZE; i++)
        if (m->cache[i].klass)
            rb_gc_mark(m->cache[i].klass); /* rb_gc_mark pins, too */
}

/* All Ractors stand still during a GC. */
static void mark_caches(void *unused)
{
    (void)unused;
    mark_cache(&capture_main.methods);
    for (const stream *s = ractors_first(); s; s = s->next)
        if (atomic_load(&s->ractor))
            mark_cache(&s->methods);
}

static const rb_data_type_t cache_type = {
    .wrap_struct_name = "rrtrace/methods", .function = {.dmark = mark_caches}, .flags = 0};

void methods_prepare(void)
{
    id_refined_class = rb_intern("__refined_class__");
    id_defined_at = rb_intern("__defined_at__");
    id_thread_name = rb_intern("name=");
    rb_gc_register_address(&cache_guard);
    cache_guard = TypedData_Wrap_Struct(0, &cache_type, &capture);
}

void methods_reset(methods_state *m)
{
    memset(m->cache, 0, sizeof m->cache);
    table_free(&m->methods);
    table_free(&m->strings);
}
