/* SPDX-License-Identifier: MIT
 *
 * Signals. An interruption is waited out, so that nothing is left in the scratch folder,
 * and then ends this process, too. A pipe that nobody reads any more is an error of
 * write() and nothing else: what is lost is a report, not the link.
 *
 * Handlers, and not SIG_IGN: they do not go on through exec(), so the real linker gets
 * what it would have got without us. What we were told to ignore (by nohup) stays so.
 */
#include "ld.h"

#include <signal.h>

static volatile sig_atomic_t caught;

static void note(int number)
{
    caught = number; /* the linker gets it, too: its end is what we wait for */
}

static void go_on(int number)
{
    (void)number; /* SIGPIPE: the write fails */
}

static bool is_ignored(int number)
{
    struct sigaction old;
    return sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    if (!is_ignored(number))
        sigaction(number, &action, NULL);
}

bool signals_interrupt(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

static void handle_interruptions(void (*handler)(int))
{
    handle(SIGINT, handler);
    handle(SIGTERM, handler);
    handle(SIGHUP, handler);
}

void signals_catch(void)
{
    handle_interruptions(note);
    handle(SIGPIPE, go_on);
}

void signals_forget(void)
{
    handle_interruptions(SIG_DFL);
}

int signals_caught(void)
{
    return caught;
}

int signals_end(int number)
{
    signal(number, SIG_DFL);
    raise(number);
    return 128 + number;
}
