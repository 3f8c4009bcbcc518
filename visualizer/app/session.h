/* app/session.h - everything behind the picture: drain, simulation, history and recording, on threads of their own; or a file.
 * For:     main.c, window.c, window_shot.c.
 * Idea:    intake's thread fills blocks; the session's thread takes them, runs the parallel scan and appends to the history;
 *          the window's thread reads under the model lock. Order of importance: drain, simulate, draw.
 *
 *            rings ─intake thread─> blocks ─simulation thread + workers─> catalog, history ─model lock─> window thread
 *          A session that is read from a recording has no intake: playback.h fills the model instead.
 * Use:     session_start; session_record, if it is to be recorded; session_begin; session_lock, read session_model,
 *          session_unlock; session_wait; session_stop.
 *          Meanwhile session_record_from_here, session_record_no_more; session_take_news.
 *          Of a recording: session_open; session_lock …; session_stop.
 * Memory:  owns intake, block pool, simulation, catalog, history and the recording.
 * Threads: session_start to session_begin, session_wait and session_stop on one thread; the others as said.
 */
#ifndef RRTRACE_APP_SESSION_H
#define RRTRACE_APP_SESSION_H

#include "app/recording.h"
#include "history/activity.h"
#include "history/figures.h"
#include "history/history.h"
#include "history/notes.h"
#include "record/reader.h"
#include "sim/catalog.h"
#include "sim/sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct session session;

typedef struct session_desc {
    int listen_fd;
    const char *socket_path;
    pid_t watch_pid;
    size_t memory_bytes;
    bool counts_methods; /* session_model.figures is wanted: it costs some ns a call */
} session_desc;

/* Read under the lock. */
typedef struct session_model {
    const catalog *catalog;
    const history *history;
    const history *detail; /* read back from the recording: whole in [detail_begin_ns, detail_end_ns); NULL: nothing */
    uint64_t detail_begin_ns, detail_end_ns;
    const sim *sim;
    const activity *activity; /* NULL: memory was out */
    const figures *figures; /* NULL: not counted */
    const notes *notes;
    uint64_t begin_ns;      /* of the recording that is shown; 0: programs are */
    uint64_t last_event_ns; /* the newest event seen, 0: none yet */
} session_model;

typedef struct session_status {
    uint64_t event_count, backlog_events, dropped, writer_waits;
    double events_per_s; /* over about the last second */
    history_stats history;
    uint32_t stream_count, open_streams;
    bool is_over;        /* see intake_is_over, and everything is processed. A second later the recording is ended, too */
    bool watched_left;   /* the watched process has said goodbye, and all of it is processed (and saved) */
    const char *problem; /* one line, or NULL: the recording's, else the last damaged stream's, else what could not be let in. Until the next call, as recording */
    bool is_recording;
    const char *recording; /* the path of that file, or of the last one; NULL: there was none */
    uint64_t recorded_bytes; /* of it */
    bool recording_failed; /* it ended before it was told to, or could not begin: problem says why */
    const char *file;    /* the recording that is shown, NULL: programs are */
    double read_share;   /* of that file: what is in the history, 1: all. Programs: 1 */
    bool is_outlined;    /* of that file: names and outline are there. Programs: true */
    bool is_too_much;    /* what was looked at last stays an outline, though the recording has it: memory holds less of it at once */
} session_status;

/* Nothing comes any more, unless another program joins. */
static inline bool session_has_ended(const session_status *status)
{
    return status->file || (status->stream_count > 0 && status->open_streams == 0);
}

/* Lets programs in. Their events wait until session_begin. 0 or -errno. */
int session_start(session **out, const session_desc *desc);
/* Record into a file from the start; goes_on: behind what is in it. path is borrowed until session_stop. 0, or -errno and
 * one line. */
int session_record(session *s, const char *path, bool goes_on, char *error, size_t error_bytes);
int session_begin(session *s); /* 0 or -errno */
/* A recording instead of programs; it is at work at once. reader, of the file path: taken over, also on failure. path: borrowed
 * until session_stop. 0 or -errno. */
int session_open(session **out, record_reader *reader, const char *path, size_t memory_bytes);
void session_stop(session *s);                              /* NULL is fine */

void session_lock(session *s);
void session_unlock(session *s);
session_model session_model_of(session *s); /* with the lock held, once each time; all of it is borrowed until session_unlock */
/* This time is being looked at: what memory has let go of it is read back from the recording, if there is one. Without the
 * lock. True: more of it has come since the last call, so that the picture is another. */
bool session_look_at(session *s, uint64_t begin_ns, uint64_t end_ns);

session_status session_status_of(session *s); /* on one thread, as the next four */

/* A recording begins in the middle, with all that is open by then (nothing, if one goes on already); path is copied. Or the one
 * that goes on ends, whoever began it; waits: it is written when this returns. Else soon: session_take_news says what came of it. */
void session_record_from_here(session *s, const char *path);
void session_record_no_more(session *s, bool waits);
bool session_take_news(session *s, recording_news *out); /* false: there is none */

/* Wait until a stream has ended or the session is over, at most timeout_ms. True: some stream ended since the last call. */
bool session_wait(session *s, int timeout_ms);
/* Tell all programs that said goodbye so far that their part is done. */
void session_answer(session *s);
/* From now on tell each as soon as its events are processed: nothing is written at the end. */
void session_answer_at_once(session *s);

#endif
