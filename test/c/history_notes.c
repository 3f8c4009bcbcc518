/* What a program has marked: kept in order, bounded. */
#include "test.h"

#include "base/mem.h"
#include "history/notes.h"
#include "wire/event.h"

static void take(notes *n, ev_kind kind, uint64_t at_ns, uint32_t process, uint32_t string, uint32_t span)
{
    notes_take(n, &(sim_note){at_ns, kind, process, 3, string, span, 0});
}

TEST(a_span_ends_with_the_end_of_its_number_in_its_process)
{
    notes *n;
    size_t count;
    CHECK_EQ(notes_new(&n), 0);
    take(n, EV_SPAN_BEGIN, 10, 0, 7, 1);
    take(n, EV_SPAN_BEGIN, 20, 1, 8, 1);
    take(n, EV_SPAN_BEGIN, 30, 0, 9, 2);
    take(n, EV_SPAN_END, 40, 0, 7, 1);
    take(n, EV_SPAN_END, 50, 0, 7, 1); /* nothing is open by that number any more */
    const notes_span *spans = notes_spans(n, &count);
    CHECK_EQ(count, 3);
    CHECK_EQ(spans[0].end_ns, 40);
    CHECK_EQ(spans[1].end_ns, UINT64_MAX);
    CHECK_EQ(spans[2].end_ns, UINT64_MAX);
    notes_end_process(n, 0, 60);
    CHECK_EQ(spans[0].end_ns, 40);
    CHECK_EQ(spans[1].end_ns, UINT64_MAX);
    CHECK_EQ(spans[2].end_ns, 60);
    notes_delete(n);
}

TEST(marks_are_no_spans)
{
    notes *n;
    size_t count;
    CHECK_EQ(notes_new(&n), 0);
    take(n, EV_MARK, 10, 2, 7, 0);
    const notes_mark *marks = notes_marks(n, &count);
    CHECK_EQ(count, 1);
    CHECK_EQ(marks[0].at_ns, 10);
    CHECK_EQ(marks[0].process, 2);
    CHECK_EQ(marks[0].string, 7);
    notes_spans(n, &count);
    CHECK_EQ(count, 0);
    notes_delete(n);
}

TEST(the_newest_are_kept_and_never_more_than_the_bound)
{
    notes *n;
    size_t marks, spans;
    CHECK_EQ(notes_new(&n), 0);
    for (uint32_t i = 0; i < 3 * NOTES_MAX; i++) {
        take(n, EV_MARK, i, 0, 1, 0);
        take(n, EV_SPAN_BEGIN, i, 0, 1, i);
        CHECK((notes_marks(n, &marks), marks <= NOTES_MAX));
        CHECK((notes_spans(n, &spans), spans <= NOTES_MAX));
    }
    CHECK_EQ(notes_marks(n, &marks)[marks - 1].at_ns, 3 * NOTES_MAX - 1);
    CHECK(marks > NOTES_MAX / 2);
    for (size_t i = 1; i < spans; i++)
        CHECK(notes_spans(n, &spans)[i].begin_ns > notes_spans(n, &spans)[i - 1].begin_ns);
    notes_delete(n);
}

TEST(without_memory_notes_are_left_out)
{
    notes *n;
    size_t count;
    CHECK_EQ(notes_new(&n), 0);
    mem_fail_every(1);
    take(n, EV_MARK, 1, 0, 1, 0);
    take(n, EV_SPAN_BEGIN, 1, 0, 1, 0);
    mem_fail_every(0);
    notes_marks(n, &count);
    CHECK_EQ(count, 0);
    notes_delete(n);
}
