#include "record/columns.h"

#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

/* Level 1: higher ones take several times as long for a tenth less; below it literals are not entropy-coded, which is most
 * of what zstd can do for times (bench/record). */
#define ZSTD_LEVEL 1

#define SAMPLE_BYTES 4096u
#define NOISE_PERCENT 80u

enum { SHAPES, TIMES, RESTS, WIDE, NUMBERS, PLACES, COLUMN_COUNT };

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

/* A byte of TIMES: below TIME_SHORT the time itself; up to TIME_WIDE the bits above the eight that stand in RESTS, counted from
 * TIME_SHORT; TIME_WIDE: all of it stands in WIDE. Measured: five of six times of a Rails-like program are short. */
#define TIME_SHORT 224u
#define TIME_WIDE 255u
#define TIME_WIDE_FROM (TIME_SHORT + (TIME_WIDE - TIME_SHORT) * 256u)

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
    VEC(uint32_t) defines;  /* where a chunk's DEFINEs stand */
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
    vec_free(&c->defines);
    mem_free(c->scratch);
    mem_free(c);
}

/* ---- zstd ----------------------------------------------------------------------------------------------------- */

static int store(const void *raw, size_t raw_bytes, columns_bytes *packed)
{
    if (!vec_reserve(packed, packed->count + raw_bytes))
        return -ENOMEM;
    memcpy(packed->items + packed->count, raw, raw_bytes);
    packed->count += raw_bytes;
    return 0;
}

/* Times by a fine clock are noise: zstd takes a fifth of all our time to save a tenth of them. A sample tells. */
static bool is_noise(columns_coder *c, const unsigned char *raw, size_t raw_bytes)
{
    unsigned char packed[SAMPLE_BYTES + 512]; /* ZSTD_COMPRESSBOUND of a sample is 32 bytes more than it */
    if (raw_bytes < SAMPLE_BYTES * 4)
        return false;
    size_t bytes = ZSTD_compress2(c->compressor, packed, sizeof packed, raw + raw_bytes / 2, SAMPLE_BYTES);
    return ZSTD_isError(bytes) || bytes > SAMPLE_BYTES * NOISE_PERCENT / 100;
}

int columns_pack(columns_coder *c, const void *raw, size_t raw_bytes, columns_bytes *packed)
{
    if (raw_bytes == 0)
        return 0;
    if (is_noise(c, raw, raw_bytes))
        return store(raw, raw_bytes, packed);
    size_t bound = ZSTD_compressBound(raw_bytes);
    if (!vec_reserve(packed, packed->count + bound))
        return -ENOMEM;
    size_t bytes = ZSTD_compress2(c->compressor, packed->items + packed->count, bound, raw, raw_bytes);
    if (ZSTD_isError(bytes) || bytes >= raw_bytes)
        return store(raw, raw_bytes, packed);
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

/* What one look over the events tells: the bits in which ticks differ, where the definitions are (in c->defines), and these
 * copied out. */
static int look_over(columns_coder *c, const ev *events, uint32_t slot_count, columns_bytes *definitions, uint64_t *differing,
                     uint32_t *plain_count)
{
    uint64_t first = slot_count ? events[0].head : 0, bits = 0;
    uint32_t payload = 0;
    c->defines.count = 0;
    for (uint32_t i = 0; i < slot_count; i++) {
        bits |= events[i].head ^ first;
        if (__builtin_expect(ev_kind_of(events[i]) != EV_DEFINE, 1))
            continue;
        uint32_t slots = ev_define_slots(events[i].place), *place = vec_push(&c->defines);
        size_t bytes = ((size_t)slots + 1) * sizeof(ev);
        if (events[i].place > EV_DEFINE_BYTES_MAX || slots > slot_count - i - 1)
            return -EINVAL;
        if (!place || !vec_reserve(definitions, definitions->count + bytes))
            return -ENOMEM;
        *place = i;
        memcpy(definitions->items + definitions->count, events + i, bytes);
        definitions->count += bytes;
        payload += slots;
        i += slots;
    }
    *differing = bits & EV_TICKS_MASK;
    *plain_count = slot_count - payload;
    return 0;
}

/* Times of events[0, count), none of which is a DEFINE. A loop of its own, without a branch that could be guessed wrong: a rest
 * is always written, and stays only if it is one. */
static uint64_t put_times(encoder *to, const ev *events, uint32_t count, unsigned shift, uint64_t last_ticks)
{
    unsigned char *restrict times = to->at[TIMES], *restrict rest = to->at[RESTS];
    uint64_t last = last_ticks;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t head = events[i].head, since = (head - last) << (64 - EV_TICKS_BITS) >> (64 - EV_TICKS_BITS) >> shift;
        last = head; /* kinds go out at the top */
        if (__builtin_expect(since >= TIME_WIDE_FROM, 0)) {
            times[i] = TIME_WIDE;
            memcpy(to->at[WIDE], &since, sizeof since);
            to->at[WIDE] += sizeof since;
            continue;
        }
        uint32_t time = (uint32_t)since, beyond = time - TIME_SHORT, is_long = time >= TIME_SHORT;
        *rest = (unsigned char)beyond;
        times[i] = (unsigned char)(is_long ? TIME_SHORT + (beyond >> 8) : time);
        rest += is_long;
    }
    to->at[TIMES] += count;
    to->at[RESTS] = rest;
    return last & EV_TICKS_MASK;
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

/* Calls that are as guessed and returns from the top, as long as they come; the rest leaves the loop. Returns where. What it
 * changes stands in local variables: a byte written into a column could be anything to the compiler. */
static uint32_t put_run(encoder *to, model *m, const ev *events, uint32_t i, uint32_t end)
{
    unsigned char *restrict shape = to->at[SHAPES];
    fiber *f = m->current;
    frame *restrict frames = f->frames;
    uint32_t top_index = f->top, count = f->count;
    for (; i < end && count > 0; i++) {
        ev e = events[i];
        frame *top = &frames[top_index & (FRAMES - 1)];
        uint32_t kind = (uint32_t)(e.head >> EV_TICKS_BITS);
        if (kind == EV_RETURN && e.place == top->place && e.number == 0 && count > 1) {
            *shape++ = SHAPE_RETURN;
            top_index--;
            count--;
            continue;
        }
        const guess *g = guess_of(m, top);
        if (kind != EV_CALL || g->method != e.number || g->step != top->place - e.place ||
            !ev_is_deeper(ev_depth_key(e.place), ev_depth_key(top->place)))
            break;
        *shape++ = SHAPE_CALL;
        top->last_callee = e.number;
        top_index++;
        count += count < FRAMES;
        frames[top_index & (FRAMES - 1)] = (frame){e.place, e.number, 0};
    }
    to->at[SHAPES] = shape;
    f->top = top_index;
    f->count = count;
    return i;
}

/* events[0, count): none is a DEFINE. */
static void put_shapes(encoder *to, model *m, const ev *events, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        i = put_run(to, m, events, i, count);
        if (i == count)
            break;
        switch (ev_kind_of(events[i])) {
        case EV_CALL: put_call(to, m, events[i]); break;
        case EV_RETURN: put_return(to, m, events[i]); break;
        default: put_explicit(to, m, events[i]); break;
        }
    }
}

/* The pieces between definitions, and these. */
static void put_events(encoder *to, columns_coder *c, const ev *events, uint32_t slot_count, unsigned shift, uint64_t last_ticks)
{
    uint32_t begin = 0;
    for (size_t d = 0; d <= c->defines.count; d++) {
        bool is_last = d == c->defines.count;
        uint32_t end = is_last ? slot_count : c->defines.items[d];
        last_ticks = put_times(to, events + begin, end - begin, shift, last_ticks);
        put_shapes(to, &c->model, events + begin, end - begin);
        if (is_last)
            break;
        *to->at[SHAPES]++ = SHAPE_DEFINE;
        last_ticks = ev_ticks_of(events[end]);
        begin = end + 1 + ev_define_slots(events[end].place);
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
                   uint32_t *plain_count, uint32_t *define_count)
{
    uint64_t differing;
    if (slot_count > COLUMNS_EVENTS_MAX)
        return -EINVAL;
    int error = look_over(c, events, slot_count, definitions, &differing, plain_count);
    if (error)
        return error;
    encoder to;
    size_t bytes = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        bytes += column_width[i] * *plain_count + 1; /* one more: put_times writes a rest that may not stay */
    if (!reserve_scratch(c, bytes))
        return -ENOMEM;
    unsigned char *at = c->scratch;
    for (int i = 0; i < COLUMN_COUNT; at += column_width[i++] * *plain_count + 1)
        to.columns[i] = to.at[i] = at;
    columns_head head = {
        .first_ticks = slot_count ? ev_ticks_of(events[0]) : 0,
        .shift = differing ? (uint32_t)__builtin_ctzll(differing) : 0,
        .column_count = COLUMN_COUNT,
    };
    model_reset(&c->model);
    put_events(&to, c, events, slot_count, head.shift, head.first_ticks);
    *define_count = (uint32_t)c->defines.count;
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

static uint64_t get_wide(decoder *from)
{
    uint64_t since = 0;
    if (from->end[WIDE] - from->at[WIDE] < (ptrdiff_t)sizeof since) {
        from->is_bad = true;
        return 0;
    }
    memcpy(&since, from->at[WIDE], sizeof since);
    from->at[WIDE] += sizeof since;
    return since;
}

static inline uint64_t get_head(decoder *from, ev_kind kind)
{
    if (from->at[TIMES] == from->end[TIMES]) {
        from->is_bad = true;
        return 0;
    }
    unsigned time = *from->at[TIMES]++;
    uint64_t since = time;
    if (time == TIME_WIDE) {
        since = get_wide(from);
    } else if (time >= TIME_SHORT) {
        if (from->at[RESTS] == from->end[RESTS])
            from->is_bad = true;
        else
            since = (uint64_t)(time - TIME_SHORT) * 256 + TIME_SHORT + *from->at[RESTS]++;
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
    if (rest != 0)
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
