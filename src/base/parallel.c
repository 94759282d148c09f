/* SPDX-License-Identifier: MIT
 *
 * Threads that live as long as one call: to start one takes some ten microseconds.
 * Parts are handed out one by one, so that a thread which the system holds up does not
 * hold up the rest.
 */
#define _DEFAULT_SOURCE /* _SC_NPROCESSORS_ONLN */

#include "mo/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

uint32_t parallel_processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1)
        return 1;
    return count < MOST_WORKERS ? (uint32_t)count : MOST_WORKERS;
}

struct job {
    void (*work)(void *context, uint32_t part, uint32_t worker);
    void *context;
    uint32_t count;
    atomic_uint_fast32_t next; /* the first part that nobody has begun */
};

struct worker {
    struct job *job;
    uint32_t number;
    pthread_t thread;
};

static void *work_off(void *argument)
{
    const struct worker *self = argument;
    struct job *job = self->job;
    for (;;) {
        uint_fast32_t part = atomic_fetch_add(&job->next, 1);
        if (part >= job->count)
            return NULL;
        job->work(job->context, (uint32_t)part, self->number);
    }
}

/* Where no more threads can be had, those that there are do it all. */
void parallel_do(uint32_t workers, uint32_t count,
                 void (*work)(void *context, uint32_t part, uint32_t worker),
                 void *context)
{
    struct job job = {.work = work, .context = context, .count = count};
    struct worker all[MOST_WORKERS];
    uint32_t wanted = workers < MOST_WORKERS ? workers : MOST_WORKERS, started = 1;
    wanted = wanted < count ? wanted : count;
    for (; started < wanted; started++) {
        struct worker *next = &all[started];
        *next = (struct worker){.job = &job, .number = started};
        if (pthread_create(&next->thread, NULL, work_off, next) != 0)
            break;
    }
    all[0] = (struct worker){.job = &job};
    work_off(&all[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(all[i].thread, NULL);
}

static uint32_t worker_count(uint32_t workers)
{
    uint32_t count = workers < MOST_WORKERS ? workers : MOST_WORKERS;
    return count ? count : 1;
}

struct arena **parallel_arenas(struct arena *arena, uint32_t workers)
{
    struct arena **arenas =
        arena_new_array(arena, struct arena *, worker_count(workers));
    for (uint32_t i = 0; i < worker_count(workers); i++)
        arenas[i] = arena_new();
    return arenas;
}

void parallel_adopt(struct arena *arena, struct arena *const *arenas, uint32_t workers)
{
    for (uint32_t i = 0; i < worker_count(workers); i++)
        arena_adopt(arena, arenas[i]);
}
