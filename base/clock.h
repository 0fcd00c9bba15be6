#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* Time: monotonic milliseconds for deadlines, Unix milliseconds for records. */

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Milliseconds since some fixed point; never jumps. */
static inline int64_t clock_mono_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* Milliseconds since 1970 UTC. */
static inline int64_t clock_wall_ms(void)
{
	return clock_ms(CLOCK_REALTIME);
}

#endif
