/* A chunk says when its first event was, however often the clock was set right within it. */
#include "record/reader.h"
#include "record/writer.h"

#include "report_stream.h"

TEST(a_first_chunk_begins_with_its_first_event_though_the_clock_is_calibrated_in_it)
{
    char path[] = "/tmp/rrtrace-times-XXXXXX", error[512];
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    unlink(path);
    made s = {0};
    made_clock(&s, 1000, 500000); /* 2 ns a tick */
    made_clock(&s, 2000, 502000);
    made_switch(&s, 3000, 1, 1);
    made_call(&s, 4000, 1, 1);
    made_clock(&s, 5000, 508000);
    made_call(&s, 6000, 2, 1);
    made_clock(&s, 7000, 512000);
    record_writer *w;
    record_reader *r;
    CHECK_EQ(record_writer_open(&w, path, error, sizeof error), 0);
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 500000), 0);
    CHECK_EQ(record_writer_events(w, 0, s.events.items, s.events.count), 0);
    CHECK_EQ(record_writer_stream_ends(w, 0, NULL), 0);
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    CHECK_EQ(record_open(&r, path, error, sizeof error), 0);
    record_info info = record_info_of(r);
    CHECK_EQ(info.begin_ns, 500000);
    CHECK(info.end_ns >= 511000);
    record_close(r);
    unlink(path);
    vec_free(&s.events);
}
