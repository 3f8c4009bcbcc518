#include "record/resume.h"

#include "base/mem.h"

uint32_t resume_stream(record_reader *r, uint32_t chunk, sim *s, uint32_t process, uint32_t clock_source,
                       void (*lock)(void *context), void (*unlock)(void *context), void *context)
{
    sim_state state = {0};
    uint32_t number = SIM_STREAM_NONE;
    if (!record_chunk_at(r, chunk).has_state)
        return sim_stream_open(s, process, clock_source);
    if (record_read_state(r, chunk, &state) == 0) {
        if (lock)
            lock(context);
        number = sim_stream_resume(s, process, clock_source, &state);
        if (unlock)
            unlock(context);
    }
    sim_state_free(&state);
    return number;
}
