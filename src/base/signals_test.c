/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"

#include "base/test.h"

static void own(int number)
{
    (void)number;
}

static bool is_default(int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    return now.sa_handler == SIG_DFL;
}

static void a_signal_is_heard_once(void)
{
    fl_signals s;
    signal(SIGTERM, SIG_DFL);
    fl_signals_begin(&s);
    CHECK_INT(fl_signals_ends(&s), 0);
    raise(SIGUSR1);
    CHECK(fl_signals_asks(&s));
    CHECK(!fl_signals_asks(&s));
    raise(SIGTERM);
    CHECK_INT(fl_signals_ends(&s), SIGTERM);
    fl_signals_end(&s);
    CHECK(is_default(SIGTERM));
    CHECK(is_default(SIGUSR1));
    fl_signals_begin(&s); /* what came before is past */
    CHECK_INT(fl_signals_ends(&s), 0);
    fl_signals_end(&s);
}

static void a_handler_of_the_user_stays(void)
{
    fl_signals s;
    struct sigaction now;
    signal(SIGINT, own);
    fl_signals_begin(&s);
    raise(SIGINT);
    CHECK_INT(fl_signals_ends(&s), 0);
    sigaction(SIGINT, NULL, &now);
    CHECK(now.sa_handler == own);
    fl_signals_end(&s);
    sigaction(SIGINT, NULL, &now);
    CHECK(now.sa_handler == own);
    signal(SIGINT, SIG_DFL);
}

static void several_listen(void)
{
    fl_signals a, b;
    fl_signals_begin(&a);
    fl_signals_begin(&b);
    raise(SIGUSR1);
    CHECK(fl_signals_asks(&a));
    CHECK(fl_signals_asks(&b));
    fl_signals_end(&b);
    fl_signals_end(&a);
    CHECK(is_default(SIGUSR1));
}

const fl_test fl_tests[] = {
    {"a signal is heard once", a_signal_is_heard_once},
    {"a handler of the user stays", a_handler_of_the_user_stays},
    {"several listen to one signal", several_listen},
    {0},
};
