/* SPDX-License-Identifier: MIT
 *
 * A thread of its own looks at the clock, so that the line appears, and its seconds go
 * on, however long a stage takes; the stages only say where they are.
 */
#include "mo/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 1, TENTHS = 2, LINE = 100 }; /* seconds; tenths between two looks */

static const char erase[] = "\r\033[K"; /* ECMA-48, EL */

struct progress {
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    const char *words;
    uint32_t round;
    bool ended;
    struct timespec started;
};

static void write_out(const char *text, size_t size)
{
    ssize_t ignored = write(STDERR_FILENO, text, size);
    (void)ignored;
}

static long seconds_since(const struct timespec *started)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (long)(now.tv_sec - started->tv_sec);
}

static void show(const struct progress *progress, long seconds)
{
    char line[LINE];
    int size = progress->round > 0
                   ? snprintf(line, sizeof line, "%smo-link: round %" PRIu32 ": %s, %ld s",
                              erase, progress->round, progress->words, seconds)
                   : snprintf(line, sizeof line, "%smo-link: %s, %ld s", erase,
                              progress->words, seconds);
    if (size > 0 && size < LINE)
        write_out(line, (size_t)size);
}

/* The next look; the clock of pthread_cond_timedwait() is the real-time one. */
static struct timespec soon(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += TENTHS * 100000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_nsec -= 1000000000L;
        at.tv_sec++;
    }
    return at;
}

static void *watch(void *context)
{
    struct progress *progress = context;
    bool shown = false;
    pthread_mutex_lock(&progress->lock);
    while (!progress->ended) {
        struct timespec at = soon();
        (void)pthread_cond_timedwait(&progress->wake, &progress->lock, &at);
        long seconds = seconds_since(&progress->started);
        if (progress->ended || seconds <= PATIENCE)
            continue;
        show(progress, seconds);
        shown = true;
    }
    if (shown)
        write_out(erase, sizeof erase - 1);
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

/* Signals are for the thread that works. */
static bool start_thread(struct progress *progress)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    bool ok = pthread_create(&progress->thread, NULL, watch, progress) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

struct progress *progress_start(struct arena *session)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDERR_FILENO) || !terminal || strcmp(terminal, "dumb") == 0)
        return NULL;
    struct progress *progress = arena_new_array(session, struct progress, 1);
    progress->words = "starting";
    clock_gettime(CLOCK_REALTIME, &progress->started);
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->wake, NULL);
    return start_thread(progress) ? progress : NULL;
}

void progress_at(struct progress *progress, const char *words, uint32_t round)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->words = words;
    progress->round = round;
    pthread_mutex_unlock(&progress->lock);
}

void progress_end(struct progress *progress)
{
    if (!progress)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->ended = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
}
