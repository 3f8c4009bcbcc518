#include "sim/catalog.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Numbers of a process, from 1 and dense when the writer is sound. A liar's number beyond what was seen so far plus this
 * is refused, so that no lie makes us allocate gigabytes. */
#define NUMBER_GAP_MAX 65536u

/* Things live in chunks that never move, so pointers to them last. */
#define CHUNK_BITS 10
#define CHUNK_COUNT (1u << CHUNK_BITS)
#define CHUNKS_MAX 65536u /* 64 Mi things of a kind */

typedef struct chunked {
    void **chunks; /* owned, CHUNKS_MAX pointers reserved at first use */
    uint32_t count;
    size_t element_bytes;
} chunked;

static void *chunked_at(const chunked *c, uint32_t id)
{
    return (char *)c->chunks[id >> CHUNK_BITS] + (size_t)(id & (CHUNK_COUNT - 1)) * c->element_bytes;
}

static uint32_t chunked_add(chunked *c, void **out)
{
    if (!c->chunks && !(c->chunks = mem_zalloc(CHUNKS_MAX, sizeof *c->chunks)))
        return CATALOG_NONE;
    uint32_t id = c->count, chunk = id >> CHUNK_BITS;
    if (chunk >= CHUNKS_MAX || (!c->chunks[chunk] && !(c->chunks[chunk] = mem_zalloc(CHUNK_COUNT, c->element_bytes))))
        return CATALOG_NONE;
    c->count++;
    *out = chunked_at(c, id);
    return id;
}

static void chunked_free(chunked *c)
{
    for (uint32_t i = 0; c->chunks && i < CHUNKS_MAX && c->chunks[i]; i++)
        mem_free(c->chunks[i]);
    mem_free(c->chunks);
}

/* What belongs to a process but is nobody else's business. */
typedef struct process_names {
    VEC(catalog_method *) methods; /* by number; NULL: undefined so far */
    VEC(char *) strings;           /* by number, owned */
    VEC(catalog_method *) unknown; /* by number, made when asked for; owned */
    uint32_t last_thread;          /* ends of the linked lists */
} process_names;

struct catalog {
    chunked processes, threads, fibers;
    VEC(process_names) names;  /* by process id */
    VEC(uint32_t) last_fibers; /* by thread id */
    map thread_ids, fiber_ids; /* process << 32 | number -> id */
    uint32_t track_count;
    VEC(void *) owned; /* strings and methods, freed at the end */
    catalog_method unknown;
};

int catalog_new(catalog **out)
{
    catalog *c = *out = mem_zalloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->processes.element_bytes = sizeof(catalog_process);
    c->threads.element_bytes = sizeof(catalog_thread);
    c->fibers.element_bytes = sizeof(catalog_fiber);
    c->unknown = (catalog_method){.name = "(unknown method)", .path = "", .name_bytes = 16};
    return 0;
}

void catalog_delete(catalog *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->owned.count; i++)
        mem_free(c->owned.items[i]);
    vec_free(&c->owned);
    for (size_t i = 0; i < c->names.count; i++) {
        vec_free(&c->names.items[i].methods);
        vec_free(&c->names.items[i].strings);
        vec_free(&c->names.items[i].unknown);
    }
    vec_free(&c->names);
    vec_free(&c->last_fibers);
    map_free(&c->thread_ids);
    map_free(&c->fiber_ids);
    chunked_free(&c->processes);
    chunked_free(&c->threads);
    chunked_free(&c->fibers);
    mem_free(c);
}

/* Memory that lives as long as the catalog. */
static void *keep(catalog *c, size_t bytes)
{
    if (!vec_reserve(&c->owned, c->owned.count + 1))
        return NULL;
    void *p = mem_zalloc(1, bytes);
    if (p)
        c->owned.items[c->owned.count++] = p;
    return p;
}

/* NULL: memory is out. */
static const char *keep_string(catalog *c, const char *bytes, size_t count)
{
    if (count == 0)
        return "";
    char *copy = keep(c, count + 1);
    if (!copy)
        return NULL;
    memcpy(copy, bytes, count);
    return copy;
}

uint32_t catalog_track_count(const catalog *c) { return c->track_count; }
uint32_t catalog_process_count(const catalog *c) { return c->processes.count; }
uint32_t catalog_thread_count(const catalog *c) { return c->threads.count; }
uint32_t catalog_fiber_count(const catalog *c) { return c->fibers.count; }
catalog_process *catalog_process_at(const catalog *c, uint32_t id) { return chunked_at(&c->processes, id); }
catalog_thread *catalog_thread_at(const catalog *c, uint32_t id) { return chunked_at(&c->threads, id); }
catalog_fiber *catalog_fiber_at(const catalog *c, uint32_t id) { return chunked_at(&c->fibers, id); }

/* Of a uint64_t member, at that offset, over all processes. */
static uint64_t sum_of(const catalog *c, size_t offset)
{
    uint64_t sum = 0, one;
    for (uint32_t i = 0; i < c->processes.count; i++) {
        memcpy(&one, (const char *)catalog_process_at(c, i) + offset, sizeof one);
        sum += one;
    }
    return sum;
}

uint64_t catalog_event_count(const catalog *c) { return sum_of(c, offsetof(catalog_process, event_count)); }
uint64_t catalog_dropped(const catalog *c) { return sum_of(c, offsetof(catalog_process, dropped)); }
uint64_t catalog_waited(const catalog *c) { return sum_of(c, offsetof(catalog_process, waited)); }

uint32_t catalog_process_add(catalog *c, uint32_t pid, uint64_t begin_ns)
{
    void *place;
    process_names *names = vec_push(&c->names);
    if (!names)
        return CATALOG_NONE;
    memset(names, 0, sizeof *names);
    names->last_thread = CATALOG_NONE;
    uint32_t id = chunked_add(&c->processes, &place);
    if (id == CATALOG_NONE) {
        c->names.count--;
        return CATALOG_NONE;
    }
    *(catalog_process *)place = (catalog_process){
        .pid = pid,
        .ractor = 1,
        .command = "",
        .ruby = "",
        .gc_track = c->track_count++,
        .first_thread = CATALOG_NONE,
        .begin_ns = begin_ns,
    };
    return id;
}

static uint64_t number_key(uint32_t process, uint32_t number) { return (uint64_t)process << 32 | number; }

uint32_t catalog_thread_of(catalog *c, uint32_t process, uint32_t number, uint64_t now_ns)
{
    uint64_t key = number_key(process, number);
    uint32_t id = map_get(&c->thread_ids, key);
    if (id != MAP_NONE)
        return id;
    if (!vec_reserve(&c->last_fibers, (size_t)c->threads.count + 1))
        return CATALOG_NONE;
    void *place;
    id = chunked_add(&c->threads, &place);
    if (id == CATALOG_NONE)
        return CATALOG_NONE;
    if (map_put(&c->thread_ids, key, id) != 0) {
        c->threads.count--;
        return CATALOG_NONE;
    }
    *(catalog_thread *)place = (catalog_thread){
        .process = process,
        .number = number,
        .ractor = catalog_process_at(c, process)->ractor,
        .is_main = number == 1,
        .name = "",
        .gvl_track = c->track_count++,
        .first_fiber = CATALOG_NONE,
        .next = CATALOG_NONE,
        .begin_ns = now_ns,
    };
    c->last_fibers.items[id] = CATALOG_NONE;
    c->last_fibers.count = (size_t)id + 1;
    process_names *names = &c->names.items[process];
    if (names->last_thread == CATALOG_NONE)
        catalog_process_at(c, process)->first_thread = id;
    else
        catalog_thread_at(c, names->last_thread)->next = id;
    names->last_thread = id;
    return id;
}

void catalog_thread_title(const catalog *c, uint32_t id, char out[CATALOG_TITLE_BYTES])
{
    const catalog_thread *thread = catalog_thread_at(c, id);
    const catalog_process *process = catalog_process_at(c, thread->process);
    uint32_t ractor = process->ractor > thread->ractor ? process->ractor : thread->ractor;
    if (thread->name[0])
        snprintf(out, CATALOG_TITLE_BYTES, "%.80s", thread->name);
    else if (ractor > 1 && process->first_thread == id)
        snprintf(out, CATALOG_TITLE_BYTES, "ractor %" PRIu32, ractor);
    else if (thread->is_main || thread->number == 1)
        snprintf(out, CATALOG_TITLE_BYTES, "main");
    else
        snprintf(out, CATALOG_TITLE_BYTES, "thread %" PRIu32, thread->number);
}

uint32_t catalog_fiber_of(catalog *c, uint32_t process, uint32_t number, uint32_t thread, uint64_t now_ns)
{
    uint64_t key = number_key(process, number);
    uint32_t id = map_get(&c->fiber_ids, key);
    if (id != MAP_NONE)
        return id;
    void *place;
    id = chunked_add(&c->fibers, &place);
    if (id == CATALOG_NONE)
        return CATALOG_NONE;
    if (map_put(&c->fiber_ids, key, id) != 0) {
        c->fibers.count--;
        return CATALOG_NONE;
    }
    *(catalog_fiber *)place = (catalog_fiber){
        .thread = thread,
        .number = number,
        .track = c->track_count++,
        .next = CATALOG_NONE,
        .begin_ns = now_ns,
        .end_ns = now_ns,
    };
    uint32_t *last = &c->last_fibers.items[thread];
    if (*last == CATALOG_NONE)
        catalog_thread_at(c, thread)->first_fiber = id;
    else
        catalog_fiber_at(c, *last)->next = id;
    *last = id;
    return id;
}

_Static_assert(MAP_NONE == CATALOG_NONE, "one word for 'there is none'");

uint32_t catalog_find_thread(const catalog *c, uint32_t process, uint32_t number)
{
    return map_get(&c->thread_ids, number_key(process, number));
}

uint32_t catalog_find_fiber(const catalog *c, uint32_t process, uint32_t number)
{
    return map_get(&c->fiber_ids, number_key(process, number));
}

/* FNV-1a over the bytes that are no digits, so that `_app_views_1234` and `_app_views_77` look alike. */
static uint32_t name_hash(const char *name, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        if (name[i] < '0' || name[i] > '9')
            hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

/* Room for items[number], cleared; false when the number is absurd or memory is out. */
static bool make_place(void *vec_items, size_t *count, size_t *capacity, uint32_t number)
{
    if (number < *count)
        return true;
    if (number > *count + NUMBER_GAP_MAX || (number >= *capacity && !vec_grow(vec_items, capacity, (size_t)number + 1, sizeof(void *))))
        return false;
    char *items;
    memcpy(&items, vec_items, sizeof items);
    memset(items + *count * sizeof(void *), 0, (number + 1 - *count) * sizeof(void *));
    *count = (size_t)number + 1;
    return true;
}

static bool define_method(catalog *c, uint32_t process, uint32_t number, const char *payload, size_t bytes)
{
    ev_method_def def;
    if (bytes < sizeof def)
        return false;
    memcpy(&def, payload, sizeof def);
    size_t rest = bytes - sizeof def;
    if (def.name_bytes > rest || def.path_bytes > rest - def.name_bytes || def.kind > EV_METHOD_BLOCK)
        return false;
    process_names *names = &c->names.items[process];
    if (!make_place(&names->methods.items, &names->methods.count, &names->methods.capacity, number))
        return false;
    catalog_method *m = keep(c, sizeof *m);
    if (!m)
        return false;
    const char *name = payload + sizeof def;
    *m = (catalog_method){
        .name = keep_string(c, name, def.name_bytes),
        .path = keep_string(c, name + def.name_bytes, def.path_bytes),
        .name_bytes = def.name_bytes,
        .path_bytes = def.path_bytes,
        .line = def.line,
        .kind = def.kind,
        .hash = name_hash(name, def.name_bytes),
    };
    if (!m->name || !m->path)
        return false;
    names->methods.items[number] = m;
    return true;
}

static bool define_thread(catalog *c, uint32_t process, uint32_t number, const char *payload, size_t bytes, uint64_t now_ns)
{
    ev_thread_def def;
    if (bytes < sizeof def)
        return false;
    memcpy(&def, payload, sizeof def);
    if (def.name_bytes > bytes - sizeof def)
        return false;
    uint32_t id = catalog_thread_of(c, process, number, now_ns);
    if (id == CATALOG_NONE)
        return false;
    catalog_thread *t = catalog_thread_at(c, id);
    t->ractor = def.ractor;
    t->native_tid = def.native_tid;
    t->is_main = def.flags & EV_THREAD_MAIN;
    const char *name = keep_string(c, payload + sizeof def, def.name_bytes);
    if (name)
        t->name = name;
    return name != NULL;
}

static bool define_process(catalog *c, uint32_t process, const char *payload, size_t bytes, uint64_t now_ns)
{
    ev_process_def def;
    if (bytes < sizeof def)
        return false;
    memcpy(&def, payload, sizeof def);
    size_t rest = bytes - sizeof def;
    if (def.argv_bytes > rest || def.ruby_bytes > rest - def.argv_bytes)
        return false;
    char *command = keep(c, (size_t)def.argv_bytes + 1);
    const char *ruby = keep_string(c, payload + sizeof def + def.argv_bytes, def.ruby_bytes);
    if (!command || !ruby)
        return false;
    memcpy(command, payload + sizeof def, def.argv_bytes);
    for (size_t i = 0; i < def.argv_bytes; i++) /* arguments end in NUL: make them one line */
        if (command[i] == '\0')
            command[i] = i + 1 < def.argv_bytes ? ' ' : '\0';
    catalog_process *p = catalog_process_at(c, process);
    p->pid = def.pid;
    p->ppid = def.ppid;
    p->ractor = def.ractor;
    p->position_source = def.position_source;
    p->command = command;
    p->ruby = ruby;
    p->realtime_offset_ns = def.realtime_ns - now_ns;
    return true;
}

static bool define_string(catalog *c, uint32_t process, uint32_t number, const char *payload, size_t bytes)
{
    process_names *names = &c->names.items[process];
    if (!make_place(&names->strings.items, &names->strings.count, &names->strings.capacity, number))
        return false;
    char *copy = keep(c, bytes + 1);
    if (!copy)
        return false;
    memcpy(copy, payload, bytes);
    names->strings.items[number] = copy;
    return true;
}

static bool define_fiber(catalog *c, uint32_t process, uint32_t number, const char *payload, size_t bytes, uint64_t now_ns)
{
    ev_fiber_def def;
    if (bytes < sizeof def)
        return false;
    memcpy(&def, payload, sizeof def);
    uint32_t thread = catalog_thread_of(c, process, def.thread, now_ns);
    return thread != CATALOG_NONE && catalog_fiber_of(c, process, number, thread, now_ns) != CATALOG_NONE;
}

bool catalog_define(catalog *c, uint32_t process, ev head, const void *payload, uint64_t now_ns)
{
    uint32_t number = ev_define_of(head);
    size_t bytes = head.place;
    switch (ev_define_what(head)) {
    case EV_DEFINE_METHOD: return define_method(c, process, number, payload, bytes);
    case EV_DEFINE_THREAD: return define_thread(c, process, number, payload, bytes, now_ns);
    case EV_DEFINE_FIBER: return define_fiber(c, process, number, payload, bytes, now_ns);
    case EV_DEFINE_PROCESS: return define_process(c, process, payload, bytes, now_ns);
    case EV_DEFINE_STRING: return define_string(c, process, number, payload, bytes);
    case EV_DEFINE_CLOCK: return true;
    case EV_DEFINE_DROPPED: {
        ev_dropped_def def;
        if (bytes < sizeof def)
            return false;
        memcpy(&def, payload, sizeof def);
        catalog_process_at(c, process)->dropped += def.count;
        return true;
    }
    case EV_DEFINE_WAITED: {
        ev_waited_def def;
        if (bytes < sizeof def)
            return false;
        memcpy(&def, payload, sizeof def);
        catalog_process_at(c, process)->waited += def.count;
        return true;
    }
    }
    return false;
}

/* Undefined numbers happen only in damaged streams; each gets its own name, so that reports can tell them apart. */
static const catalog_method *unknown_method(const catalog *c, uint32_t process, uint32_t number)
{
    catalog *mutable = (catalog *)(uintptr_t)c; /* a cache behind a reading call */
    process_names *names = &mutable->names.items[process];
    if (!make_place(&names->unknown.items, &names->unknown.count, &names->unknown.capacity, number))
        return &c->unknown;
    if (!names->unknown.items[number]) {
        char text[48];
        int bytes = snprintf(text, sizeof text, "(unknown method %u)", number);
        catalog_method *m = keep(mutable, sizeof *m);
        if (!m)
            return &c->unknown;
        *m = c->unknown;
        const char *name = keep_string(mutable, text, (size_t)bytes);
        if (!name)
            return &c->unknown;
        m->name = name;
        m->name_bytes = (uint32_t)bytes;
        names->unknown.items[number] = m;
    }
    return names->unknown.items[number];
}

const catalog_method *catalog_method_known(const catalog *c, uint32_t process, uint32_t number)
{
    const process_names *names = &c->names.items[process];
    return number < names->methods.count ? names->methods.items[number] : NULL;
}

const catalog_method *catalog_method_of(const catalog *c, uint32_t process, uint32_t number)
{
    const catalog_method *known = catalog_method_known(c, process, number);
    return known ? known : unknown_method(c, process, number);
}

uint32_t catalog_string_limit(const catalog *c, uint32_t process) { return (uint32_t)c->names.items[process].strings.count; }

uint32_t catalog_method_limit(const catalog *c, uint32_t process) { return (uint32_t)c->names.items[process].methods.count; }

const char *catalog_string_of(const catalog *c, uint32_t process, uint32_t number)
{
    const process_names *names = &c->names.items[process];
    return number < names->strings.count && names->strings.items[number] ? names->strings.items[number] : "";
}
