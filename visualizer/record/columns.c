#include "record/columns.h"

#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

/* Level 1: higher ones take several times as long for a tenth less; below it literals are not entropy-coded, which is most
 * of what zstd can do for times (bench/record). */
#define ZSTD_LEVEL 1

enum { SHAPES, LOW, HIGH, WIDE, NUMBERS, PLACES, COLUMN_COUNT };

/* Shapes. The first three are what programs do nearly all the time. */
enum {
    SHAPE_RETURN = 0,   /* RETURN, number 0, from the top of the stack */
    SHAPE_RETURN_NAMED, /* the same, its number that of the top's method */
    SHAPE_CALL,         /* CALL: method and position as this caller's last time after the same call */
    SHAPE_DEFINE,       /* the next definition */
    SHAPE_EXPLICIT = 16,     /* + kind: number in NUMBERS, place in PLACES */
    SHAPE_CALL_STEP = 64,    /* + slot: CALL, number in NUMBERS, position by the step in that slot */
    SHAPE_RETURN_STEP = 128, /* + slot: RETURN, number 0, position by the step in that slot */
    SHAPE_END = 192,
};

#define STEP_SLOTS 64u
#define GUESSES 4096u     /* powers of two all; 32 KiB */
#define FIBERS 1024u      /* fibers whose stacks are known at a time */
#define FRAMES 64u        /* frames known of each, the deepest ones; a return below them costs a shape of its own */
#define HIGH_WIDE 255u

typedef struct frame {
    uint32_t place, method;
    uint32_t last_callee; /* what it called last */
} frame;

typedef struct fiber {
    uint32_t number;
    uint32_t top, count; /* frames[top & (FRAMES - 1)] is the top; count of those below it are known, it included */
    frame floor;         /* stands for the frame below those known: its place is a guess */
    frame frames[FRAMES];
} fiber;

typedef struct guess {
    uint32_t method, step;
} guess;

typedef struct model {
    guess guesses[GUESSES];
    uint32_t call_steps[STEP_SLOTS], return_steps[STEP_SLOTS];
    fiber *fibers; /* FIBERS; owned */
    fiber *current;
    bool used[FIBERS];
} model;

struct columns_coder {
    model model;
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
    unsigned char *scratch; /* owned; the columns of one chunk */
    size_t scratch_bytes;
};

int columns_coder_new(columns_coder **out)
{
    columns_coder *c = *out = mem_zalloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->model.fibers = mem_alloc(FIBERS, sizeof *c->model.fibers);
    c->compressor = ZSTD_createCCtx();
    c->decompressor = ZSTD_createDCtx();
    if (!c->model.fibers || !c->compressor || !c->decompressor) {
        columns_coder_delete(c);
        *out = NULL;
        return -ENOMEM;
    }
    ZSTD_CCtx_setParameter(c->compressor, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    return 0;
}

void columns_coder_delete(columns_coder *c)
{
    if (!c)
        return;
    ZSTD_freeCCtx(c->compressor);
    ZSTD_freeDCtx(c->decompressor);
    mem_free(c->model.fibers);
    mem_free(c->scratch);
    mem_free(c);
}

/* ---- zstd ----------------------------------------------------------------------------------------------------- */

int columns_pack(columns_coder *c, const void *raw, size_t raw_bytes, columns_bytes *packed)
{
    if (raw_bytes == 0)
        return 0;
    size_t bound = ZSTD_compressBound(raw_bytes);
    if (!vec_reserve(packed, packed->count + bound))
        return -ENOMEM;
    unsigned char *out = packed->items + packed->count;
    size_t bytes = ZSTD_compress2(c->compressor, out, bound, raw, raw_bytes);
    if (ZSTD_isError(bytes) || bytes >= raw_bytes) {
        memcpy(out, raw, raw_bytes);
        bytes = raw_bytes;
    }
    packed->count += bytes;
    return 0;
}

int columns_unpack(columns_coder *c, const void *packed, size_t packed_bytes, void *raw, size_t raw_bytes)
{
    if (packed_bytes == raw_bytes) {
        if (raw_bytes > 0)
            memcpy(raw, packed, raw_bytes);
        return 0;
    }
    if (packed_bytes > raw_bytes)
        return -EBADMSG;
    size_t bytes = ZSTD_decompressDCtx(c->decompressor, raw, raw_bytes, packed, packed_bytes);
    return ZSTD_isError(bytes) || bytes != raw_bytes ? -EBADMSG : 0;
}

/* ---- the model ------------------------------------------------------------------------------------------------ */

static void go_to(model *m, uint32_t number)
{
    uint32_t slot = number & (FIBERS - 1);
    fiber *f = &m->fibers[slot];
    m->current = f;
    if (m->used[slot] && f->number == number)
        return;
    m->used[slot] = true;
    f->number = number;
    f->top = f->count = 0;
    f->floor = (frame){0, 0, 0};
}

static void model_reset(model *m)
{
    memset(m->guesses, 0, sizeof m->guesses);
    memset(m->used, 0, sizeof m->used);
    for (uint32_t i = 0; i < STEP_SLOTS; i++)
        m->call_steps[i] = m->return_steps[i] = 0;
    go_to(m, 0);
}

static inline frame *top_of(fiber *f) { return f->count ? &f->frames[f->top & (FRAMES - 1)] : &f->floor; }

static inline guess *guess_of(model *m, const frame *caller)
{
    uint32_t hash = (caller->method * 0x9E3779B1u ^ caller->last_callee) * 0x85EBCA6Bu;
    return &m->guesses[hash >> 20 & (GUESSES - 1)];
}

static inline uint32_t step_slot(uint32_t step) { return step * 0x9E3779B1u >> 26; }

static inline void pop(fiber *f)
{
    f->top--;
    f->count--;
}

/* The frame at place is gone: where nothing is known below it, what comes next is measured from there. */
static inline void settle(fiber *f, uint32_t place)
{
    if (f->count == 0)
        f->floor = (frame){place, 0, 0};
}

/* Frames deeper than key are gone; those at key, too, if and_equal. */
static inline void cut(fiber *f, uint32_t key, bool and_equal)
{
    while (f->count > 0) {
        uint32_t top = ev_depth_key(f->frames[f->top & (FRAMES - 1)].place);
        if (!ev_is_deeper(top, key) && !(and_equal && top == key))
            break;
        pop(f);
    }
}

static inline void push(fiber *f, uint32_t place, uint32_t method)
{
    if (f->count > 0)
        cut(f, ev_depth_key(place), true);
    f->top++;
    f->count += f->count < FRAMES;
    f->frames[f->top & (FRAMES - 1)] = (frame){place, method, 0};
}

static inline void model_call(model *m, frame *caller, uint32_t place, uint32_t method)
{
    caller->last_callee = method;
    push(m->current, place, method);
}

/* A return that was not the top's. */
static inline void model_return(model *m, uint32_t place)
{
    fiber *f = m->current;
    cut(f, ev_depth_key(place), true);
    settle(f, place);
}

/* The events that come as they are. */
static void model_explicit(model *m, ev e)
{
    switch (ev_kind_of(e)) {
    case EV_CALL: model_call(m, top_of(m->current), e.place, e.number); break;
    case EV_FRAME: push(m->current, e.place, e.number); break;
    case EV_RETURN:
    case EV_CUT: model_return(m, e.place); break;
    case EV_SWITCH: go_to(m, e.number); break;
    default: break;
    }
}

static bool has_position(uint32_t kind) { return kind == EV_CALL || kind == EV_RETURN || kind == EV_CUT || kind == EV_FRAME; }

/* ---- encoding ------------------------------------------------------------------------------------------------- */

typedef struct encoder {
    unsigned char *columns[COLUMN_COUNT]; /* begins */
    unsigned char *at[COLUMN_COUNT];
} encoder;

static inline unsigned char *put_varint(unsigned char *p, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p++ = (unsigned char)(value | 0x80);
    *p++ = (unsigned char)value;
    return p;
}

/* Small steps up and down become small numbers. */
static inline uint32_t zigzag(uint32_t step) { return step << 1 ^ (0u - (step >> 31)); }
static inline uint32_t unzigzag(uint32_t value) { return value >> 1 ^ (0u - (value & 1)); }

static const size_t column_width[COLUMN_COUNT] = {1, 1, 1, 8, 5, 5}; /* bytes an event at most */

static bool reserve_scratch(columns_coder *c, size_t bytes)
{
    if (bytes <= c->scratch_bytes)
        return true;
    unsigned char *bigger = mem_alloc(1, bytes);
    if (!bigger)
        return false;
    mem_free(c->scratch);
    c->scratch = bigger;
    c->scratch_bytes = bytes;
    return true;
}

/* What one look over the events tells: which low bits all ticks share, and the definitions, which are copied out. */
typedef struct survey {
    uint32_t plain_count, define_count;
    uint64_t differing; /* bits in which ticks differ */
} survey;

static int look_over(const ev *events, uint32_t slot_count, columns_bytes *definitions, survey *s)
{
    *s = (survey){0};
    uint64_t first = slot_count ? events[0].head : 0;
    for (uint32_t i = 0; i < slot_count; i++) {
        s->differing |= events[i].head ^ first;
        s->plain_count++;
        if (ev_kind_of(events[i]) != EV_DEFINE)
            continue;
        uint32_t slots = ev_define_slots(events[i].place);
        size_t bytes = ((size_t)slots + 1) * sizeof(ev);
        if (events[i].place > EV_DEFINE_BYTES_MAX || slots > slot_count - i - 1)
            return -EINVAL;
        if (!vec_reserve(definitions, definitions->count + bytes))
            return -ENOMEM;
        memcpy(definitions->items + definitions->count, events + i, bytes);
        definitions->count += bytes;
        s->define_count++;
        i += slots;
    }
    return 0;
}

static inline void put_time(encoder *to, uint64_t ticks, uint64_t *last_ticks, unsigned shift)
{
    uint64_t since = ((ticks - *last_ticks) & EV_TICKS_MASK) >> shift, high = since >> 8;
    *last_ticks = ticks;
    *to->at[LOW]++ = (unsigned char)since;
    *to->at[HIGH]++ = (unsigned char)(high < HIGH_WIDE ? high : HIGH_WIDE);
    if (high >= HIGH_WIDE) {
        memcpy(to->at[WIDE], &since, sizeof since);
        to->at[WIDE] += sizeof since;
    }
}

static void put_explicit(encoder *to, model *m, ev e)
{
    uint32_t kind = (uint32_t)ev_kind_of(e);
    *to->at[SHAPES]++ = (unsigned char)(SHAPE_EXPLICIT + kind);
    to->at[NUMBERS] = put_varint(to->at[NUMBERS], e.number);
    uint32_t place = has_position(kind) ? zigzag(top_of(m->current)->place - e.place) : e.place;
    to->at[PLACES] = put_varint(to->at[PLACES], place);
    model_explicit(m, e);
}

static inline void put_call(encoder *to, model *m, ev e)
{
    frame *caller = top_of(m->current);
    uint32_t step = caller->place - e.place;
    guess *g = guess_of(m, caller);
    if (g->method == e.number && g->step == step) {
        *to->at[SHAPES]++ = SHAPE_CALL;
    } else {
        *g = (guess){e.number, step};
        uint32_t slot = step_slot(step);
        if (m->call_steps[slot] != step) {
            m->call_steps[slot] = step;
            put_explicit(to, m, e);
            return;
        }
        *to->at[SHAPES]++ = (unsigned char)(SHAPE_CALL_STEP + slot);
        to->at[NUMBERS] = put_varint(to->at[NUMBERS], e.number);
    }
    model_call(m, caller, e.place, e.number);
}

static inline void put_return(encoder *to, model *m, ev e)
{
    fiber *f = m->current;
    const frame *top = top_of(f);
    if (f->count > 0 && e.place == top->place && (e.number == 0 || e.number == top->method)) {
        *to->at[SHAPES]++ = e.number ? SHAPE_RETURN_NAMED : SHAPE_RETURN;
        pop(f);
        settle(f, e.place);
        return;
    }
    uint32_t step = top->place - e.place, slot = step_slot(step);
    if (e.number != 0 || m->return_steps[slot] != step) {
        m->return_steps[slot] = step;
        put_explicit(to, m, e);
        return;
    }
    *to->at[SHAPES]++ = (unsigned char)(SHAPE_RETURN_STEP + slot);
    model_return(m, e.place);
}

static void put_events(encoder *to, model *m, const ev *events, uint32_t slot_count, unsigned shift, uint64_t last_ticks)
{
    for (uint32_t i = 0; i < slot_count; i++) {
        ev e = events[i];
        ev_kind kind = ev_kind_of(e);
        if (kind == EV_DEFINE) {
            *to->at[SHAPES]++ = SHAPE_DEFINE;
            last_ticks = ev_ticks_of(e);
            i += ev_define_slots(e.place);
            continue;
        }
        put_time(to, ev_ticks_of(e), &last_ticks, shift);
        if (kind == EV_CALL)
            put_call(to, m, e);
        else if (kind == EV_RETURN)
            put_return(to, m, e);
        else
            put_explicit(to, m, e);
    }
}

/* The columns as they lie in a chunk: this, then each column, packed. */
typedef struct columns_head {
    uint64_t first_ticks; /* what the first event's ticks count from */
    uint32_t shift;       /* low bits of all differences that are 0 and left out */
    uint32_t column_count;
    struct {
        uint32_t raw_bytes, packed_bytes; /* the same: as it is; else a zstd frame */
    } columns[COLUMN_COUNT];
} columns_head;

_Static_assert(sizeof(columns_head) == 16 + 8 * COLUMN_COUNT, "no padding");

static int pack_all(columns_coder *c, const encoder *from, columns_head *head, columns_bytes *packed)
{
    size_t begin = packed->count;
    if (!vec_reserve(packed, begin + sizeof *head))
        return -ENOMEM;
    packed->count += sizeof *head;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        size_t before = packed->count, raw_bytes = (size_t)(from->at[i] - from->columns[i]);
        int error = columns_pack(c, from->columns[i], raw_bytes, packed);
        if (error)
            return error;
        head->columns[i].raw_bytes = (uint32_t)raw_bytes;
        head->columns[i].packed_bytes = (uint32_t)(packed->count - before);
    }
    memcpy(packed->items + begin, head, sizeof *head);
    return 0;
}

int columns_encode(columns_coder *c, const ev *events, uint32_t slot_count, columns_bytes *packed, columns_bytes *definitions,
                   uint32_t *plain_count)
{
    survey s;
    if (slot_count > COLUMNS_EVENTS_MAX)
        return -EINVAL;
    int error = look_over(events, slot_count, definitions, &s);
    if (error)
        return error;
    encoder to;
    size_t bytes = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        bytes += column_width[i] * s.plain_count;
    if (!reserve_scratch(c, bytes))
        return -ENOMEM;
    unsigned char *at = c->scratch;
    for (int i = 0; i < COLUMN_COUNT; at += column_width[i++] * s.plain_count)
        to.columns[i] = to.at[i] = at;
    uint64_t differing = s.differing & EV_TICKS_MASK;
    columns_head head = {
        .first_ticks = slot_count ? ev_ticks_of(events[0]) : 0,
        .shift = differing ? (uint32_t)__builtin_ctzll(differing) : 0,
        .column_count = COLUMN_COUNT,
    };
    model_reset(&c->model);
    put_events(&to, &c->model, events, slot_count, head.shift, head.first_ticks);
    *plain_count = s.plain_count;
    return pack_all(c, &to, &head, packed);
}

/* ---- decoding ------------------------------------------------------------------------------------------------- */

typedef struct decoder {
    const unsigned char *at[COLUMN_COUNT], *end[COLUMN_COUNT];
    const unsigned char *definitions, *definitions_end;
    uint64_t last_ticks;
    unsigned shift;
    bool is_bad; /* something was not there, or not as it must be */
} decoder;

static uint32_t get_varint(decoder *from, int column)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (from->at[column] == from->end[column])
            break;
        unsigned char byte = *from->at[column]++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            from->is_bad |= value > UINT32_MAX;
            return (uint32_t)value;
        }
    }
    from->is_bad = true;
    return 0;
}

static inline uint64_t get_head(decoder *from, ev_kind kind)
{
    if (from->at[LOW] == from->end[LOW]) {
        from->is_bad = true;
        return 0;
    }
    uint64_t low = *from->at[LOW]++, high = *from->at[HIGH]++, since = high << 8 | low; /* as many as LOW: decode_begin looks */
    if (high == HIGH_WIDE) {
        if (from->end[WIDE] - from->at[WIDE] < 8) {
            from->is_bad = true;
            return 0;
        }
        memcpy(&since, from->at[WIDE], sizeof since);
        from->at[WIDE] += sizeof since;
    }
    from->last_ticks = (from->last_ticks + (since << from->shift)) & EV_TICKS_MASK;
    return (uint64_t)kind << EV_TICKS_BITS | from->last_ticks;
}

static ev get_explicit(decoder *from, model *m, uint32_t kind)
{
    ev e = {.head = get_head(from, (ev_kind)kind), .number = get_varint(from, NUMBERS)};
    uint32_t place = get_varint(from, PLACES);
    e.place = has_position(kind) ? top_of(m->current)->place - unzigzag(place) : place;
    uint32_t step = top_of(m->current)->place - e.place;
    if (kind == EV_CALL) {
        *guess_of(m, top_of(m->current)) = (guess){e.number, step};
        m->call_steps[step_slot(step)] = step;
    } else if (kind == EV_RETURN) {
        m->return_steps[step_slot(step)] = step;
    }
    model_explicit(m, e);
    return e;
}

static inline ev get_event(decoder *from, model *m, unsigned shape)
{
    fiber *f = m->current;
    frame *top = top_of(f);
    ev e;
    if (shape <= SHAPE_RETURN_NAMED) {
        e = (ev){get_head(from, EV_RETURN), shape == SHAPE_RETURN ? 0 : top->method, top->place};
        if (f->count == 0) {
            from->is_bad = true;
            return e;
        }
        pop(f);
        settle(f, e.place);
        return e;
    }
    if (shape == SHAPE_CALL || (shape >= SHAPE_CALL_STEP && shape < SHAPE_RETURN_STEP)) {
        guess *g = guess_of(m, top);
        if (shape != SHAPE_CALL)
            *g = (guess){get_varint(from, NUMBERS), m->call_steps[shape - SHAPE_CALL_STEP]};
        e = (ev){get_head(from, EV_CALL), g->method, top->place - g->step};
        model_call(m, top, e.place, e.number);
        return e;
    }
    if (shape >= SHAPE_RETURN_STEP && shape < SHAPE_END) {
        e = (ev){get_head(from, EV_RETURN), 0, top->place - m->return_steps[shape - SHAPE_RETURN_STEP]};
        model_return(m, e.place);
        return e;
    }
    if (shape < SHAPE_EXPLICIT || shape >= SHAPE_EXPLICIT + EV_KIND_COUNT || shape == SHAPE_EXPLICIT + EV_DEFINE) {
        from->is_bad = true;
        return (ev){0, 0, 0};
    }
    return get_explicit(from, m, shape - SHAPE_EXPLICIT);
}

/* Slots of the next definition, its payload's included; 0: there is none that fits into room. */
static uint32_t get_definition(decoder *from, ev *out, uint32_t room)
{
    size_t rest = (size_t)(from->definitions_end - from->definitions) / sizeof(ev);
    ev head;
    if (rest == 0 || room == 0)
        return 0;
    memcpy(&head, from->definitions, sizeof head);
    uint32_t slots = ev_define_slots(head.place) + 1;
    if (ev_kind_of(head) != EV_DEFINE || head.place > EV_DEFINE_BYTES_MAX || slots > rest || slots > room)
        return 0;
    memcpy(out, from->definitions, slots * sizeof(ev));
    from->definitions += slots * sizeof(ev);
    from->last_ticks = ev_ticks_of(head);
    return slots;
}

static int decode_begin(columns_coder *c, decoder *from, const unsigned char *packed, size_t packed_bytes, uint32_t slot_count)
{
    columns_head head;
    if (packed_bytes < sizeof head)
        return -EBADMSG;
    memcpy(&head, packed, sizeof head);
    if (head.column_count != COLUMN_COUNT || head.shift >= EV_TICKS_BITS)
        return -EBADMSG;
    size_t raw_bytes = 0, rest = packed_bytes - sizeof head;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (head.columns[i].packed_bytes > rest || head.columns[i].raw_bytes > column_width[i] * slot_count)
            return -EBADMSG;
        rest -= head.columns[i].packed_bytes;
        raw_bytes += head.columns[i].raw_bytes;
    }
    if (rest != 0 || head.columns[HIGH].raw_bytes != head.columns[LOW].raw_bytes)
        return -EBADMSG;
    if (!reserve_scratch(c, raw_bytes))
        return -ENOMEM;
    unsigned char *at = c->scratch;
    packed += sizeof head;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        int error = columns_unpack(c, packed, head.columns[i].packed_bytes, at, head.columns[i].raw_bytes);
        if (error)
            return error;
        from->at[i] = at;
        from->end[i] = at += head.columns[i].raw_bytes;
        packed += head.columns[i].packed_bytes;
    }
    from->last_ticks = head.first_ticks;
    from->shift = head.shift;
    return 0;
}

static bool is_used_up(const decoder *from)
{
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (from->at[i] != from->end[i])
            return false;
    return from->definitions == from->definitions_end;
}

int columns_decode(columns_coder *c, const void *packed, size_t packed_bytes, const void *definitions, size_t definition_bytes,
                   ev *out, uint32_t slot_count)
{
    decoder from = {.definitions = definitions, .definitions_end = (const unsigned char *)definitions + definition_bytes};
    if (slot_count > COLUMNS_EVENTS_MAX)
        return -EBADMSG;
    int error = decode_begin(c, &from, packed, packed_bytes, slot_count);
    if (error)
        return error;
    model_reset(&c->model);
    for (uint32_t i = 0; i < slot_count && !from.is_bad;) {
        if (from.at[SHAPES] == from.end[SHAPES])
            return -EBADMSG;
        unsigned shape = *from.at[SHAPES]++;
        if (shape == SHAPE_DEFINE) {
            uint32_t slots = get_definition(&from, out + i, slot_count - i);
            if (slots == 0)
                return -EBADMSG;
            i += slots;
        } else {
            out[i++] = get_event(&from, &c->model, shape);
        }
    }
    return from.is_bad || !is_used_up(&from) ? -EBADMSG : 0;
}
