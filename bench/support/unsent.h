/* unsent.h - rrtrace that does everything but hand its events over: each is stored, in the ring's first slot, and never
 * published. bench/overhead.rb compiles the extension once more with `-include` of this file, to tell what the ring's memory
 * and its reader cost. */
#include "wire/ring.h"
#define ring_publish(ring_, count_) ((void)(ring_), (void)(count_))
#define ring_push(ring_, event_) (ring_put((ring_), 0, (event_)), true)
