#include "record/tracks.h"

#include "base/mem.h"

void tracks_init(tracks *t, const catalog *own, const catalog *session, void (*lock)(void *), void (*unlock)(void *), void *context)
{
    *t = (tracks){.own = own, .session = session, .lock = lock, .unlock = unlock, .context = context};
}

void tracks_free(tracks *t) { vec_free(&t->ids); }

static void name(tracks *t, uint32_t own_track, uint32_t id)
{
    if (own_track < t->ids.count)
        t->ids.items[own_track] = id;
}

static void name_processes(tracks *t)
{
    for (; t->known_processes < catalog_process_count(t->own); t->known_processes++)
        if (t->known_processes < catalog_process_count(t->session))
            name(t, catalog_process_at(t->own, t->known_processes)->gc_track, catalog_process_at(t->session, t->known_processes)->gc_track);
}

static void name_threads(tracks *t)
{
    for (; t->known_threads < catalog_thread_count(t->own); t->known_threads++) {
        const catalog_thread *thread = catalog_thread_at(t->own, t->known_threads);
        uint32_t id = catalog_find_thread(t->session, thread->process, thread->number);
        if (id != CATALOG_NONE)
            name(t, thread->gvl_track, catalog_thread_at(t->session, id)->gvl_track);
    }
}

static void name_fibers(tracks *t)
{
    for (; t->known_fibers < catalog_fiber_count(t->own); t->known_fibers++) {
        const catalog_fiber *f = catalog_fiber_at(t->own, t->known_fibers);
        uint32_t id = catalog_find_fiber(t->session, catalog_thread_at(t->own, f->thread)->process, f->number);
        if (id != CATALOG_NONE)
            name(t, f->track, catalog_fiber_at(t->session, id)->track);
    }
}

/* Threads and fibers that have come up in the replay since the last time. */
static bool name_new(tracks *t)
{
    size_t count = catalog_track_count(t->own);
    if (!vec_reserve(&t->ids, count))
        return false;
    for (; t->ids.count < count; t->ids.count++)
        t->ids.items[t->ids.count] = SIM_TRACK_NONE;
    if (t->lock)
        t->lock(t->context);
    name_processes(t);
    name_threads(t);
    name_fibers(t);
    if (t->unlock)
        t->unlock(t->context);
    return true;
}

bool tracks_of(tracks *t, uint32_t own_track, uint32_t *id)
{
    *id = SIM_TRACK_NONE;
    if (own_track >= t->ids.count && !name_new(t))
        return false;
    *id = own_track < t->ids.count ? t->ids.items[own_track] : SIM_TRACK_NONE;
    return true;
}
