#include "record/state_code.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define VARINT_BYTES_MAX 10u

/* One walk serves both ways, so that they cannot differ: each field is passed to code(), which writes or reads it. */
typedef struct coding {
    columns_bytes *out; /* writing, */
    const unsigned char *at, *end; /* or reading */
    int error;
} coding;

static void put(coding *c, uint64_t value)
{
    if (!vec_reserve(c->out, c->out->count + VARINT_BYTES_MAX)) {
        c->error = -ENOMEM;
        return;
    }
    for (; value >= 0x80; value >>= 7)
        c->out->items[c->out->count++] = (unsigned char)(value | 0x80);
    c->out->items[c->out->count++] = (unsigned char)value;
}

static uint64_t get(coding *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && c->at < c->end; shift += 7) {
        unsigned char byte = *c->at++;
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte < 0x80)
            return value;
    }
    c->error = -EBADMSG;
    return 0;
}

/* The difference to *last, signed, small ones small. */
static void code64(coding *c, uint64_t *field, uint64_t *last)
{
    if (c->out) {
        uint64_t step = *field - *last;
        put(c, step << 1 ^ (0u - (step >> 63)));
    } else {
        uint64_t value = get(c);
        *field = *last + (value >> 1 ^ (0u - (value & 1)));
    }
    *last = *field;
}

static void code32(coding *c, uint32_t *field, uint64_t *last)
{
    uint64_t wide = *field;
    code64(c, &wide, last);
    *field = (uint32_t)wide;
    if (wide > UINT32_MAX)
        c->error = -EBADMSG;
}

static void plain64(coding *c, uint64_t *field)
{
    uint64_t none = 0;
    code64(c, field, &none);
}

static void plain32(coding *c, uint32_t *field)
{
    uint64_t none = 0;
    code32(c, field, &none);
}

static void code_head(coding *c, sim_state *s, uint32_t counts[3])
{
    uint32_t is_placed = s->is_placed;
    plain64(c, &s->clock.line.base_ticks);
    plain64(c, &s->clock.line.base_ns);
    plain64(c, &s->clock.line.ns_per_tick_q32);
    plain64(c, &s->clock.first_ticks);
    plain64(c, &s->clock.first_ns);
    plain32(c, &s->clock.pair_count);
    plain64(c, &s->last_ticks);
    plain64(c, &s->last_ns);
    plain64(c, &s->process_begin_ns);
    plain64(c, &s->process_event_count);
    plain64(c, &s->gc_since_ns);
    plain32(c, &s->gc);
    plain32(c, &is_placed);
    plain32(c, &s->current_thread);
    plain32(c, &s->current_fiber);
    for (int i = 0; i < 3; i++)
        plain32(c, &counts[i]);
    s->is_placed = is_placed != 0;
}

/* Times from near the state's own, numbers from the one before. */
#define EACH(vec, code, field, from)                            \
    do {                                                        \
        uint64_t last_ = (from);                                \
        for (size_t i_ = 0; i_ < (vec).count && !c->error; i_++) \
            code(c, &(vec).items[i_].field, &last_);            \
    } while (0)

static void code_lists(coding *c, sim_state *s)
{
    EACH(s->threads, code32, number, 0);
    EACH(s->threads, code32, fiber_count, 0);
    EACH(s->threads, code32, gvl, 0);
    EACH(s->threads, code64, gvl_since_ns, s->last_ns);
    EACH(s->threads, code64, begin_ns, s->last_ns);
    EACH(s->threads, code64, end_ns, 0);
    EACH(s->fibers, code32, number, 0);
    EACH(s->fibers, code32, frame_count, 0);
    EACH(s->fibers, code64, begin_ns, s->last_ns);
    EACH(s->fibers, code64, end_ns, s->last_ns);
    EACH(s->frames, code32, position, 0);
    EACH(s->frames, code32, method, 0);
    EACH(s->frames, code64, begin_ns, s->last_ns);
}

int state_encode(const sim_state *state, columns_bytes *out)
{
    coding c = {.out = out};
    sim_state copy = *state; /* only read from: writing leaves fields as they are */
    if (state->threads.count > UINT32_MAX || state->fibers.count > UINT32_MAX || state->frames.count > UINT32_MAX)
        return -ENOMEM;
    uint32_t counts[3] = {(uint32_t)state->threads.count, (uint32_t)state->fibers.count, (uint32_t)state->frames.count};
    code_head(&c, &copy, counts);
    code_lists(&c, &copy);
    return c.error;
}

int state_decode(const void *bytes, size_t count, sim_state *out)
{
    coding c = {.at = bytes, .end = (const unsigned char *)bytes + count};
    uint32_t counts[3] = {0};
    code_head(&c, out, counts);
    size_t rest = (size_t)(c.end - c.at);
    if (c.error || counts[0] > rest / 6 || counts[1] > rest / 4 || counts[2] > rest / 3) /* at least a byte a field */
        return -EBADMSG;
    out->threads.count = out->fibers.count = out->frames.count = 0;
    if (!vec_reserve(&out->threads, counts[0]) || !vec_reserve(&out->fibers, counts[1]) || !vec_reserve(&out->frames, counts[2]))
        return -ENOMEM;
    out->threads.count = counts[0];
    out->fibers.count = counts[1];
    out->frames.count = counts[2];
    for (size_t i = 0; i < counts[0]; i++)
        out->threads.items[i] = (sim_state_thread){0};
    code_lists(&c, out);
    if (c.error || c.at != c.end) {
        out->threads.count = out->fibers.count = out->frames.count = 0;
        return -EBADMSG;
    }
    return 0;
}
