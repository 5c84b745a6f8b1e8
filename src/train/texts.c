/* SPDX-License-Identifier: Apache-2.0 */
/* texts.c - passes text from workers to the caller's thread. */
#include "train/worker.h"

enum {
    FULL = 1 << 20, /* bytes; a worker waits while more is not taken */
};

void fl_texts_init(fl_texts *o)
{
    *o = (fl_texts){0};
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->emptied, NULL);
}

void fl_texts_fini(fl_texts *o)
{
    fl_str_fini(&o->print);
    fl_str_fini(&o->debug);
    pthread_cond_destroy(&o->emptied);
    pthread_mutex_destroy(&o->lock);
}

void fl_texts_put(fl_texts *o, fl_str *text, bool debug)
{
    pthread_mutex_lock(&o->lock);
    while (!o->closed && o->print.n + o->debug.n > FULL)
        pthread_cond_wait(&o->emptied, &o->lock);
    if (!o->closed && text->n)
        fl_str_bytes(debug ? &o->debug : &o->print, text->at, text->n);
    pthread_mutex_unlock(&o->lock);
    fl_str_fini(text);
}

void fl_texts_take(fl_texts *o, fl_str *print, fl_str *debug)
{
    pthread_mutex_lock(&o->lock);
    *print = o->print;
    *debug = o->debug;
    o->print = o->debug = (fl_str){0};
    pthread_cond_broadcast(&o->emptied);
    pthread_mutex_unlock(&o->lock);
}

void fl_texts_close(fl_texts *o)
{
    pthread_mutex_lock(&o->lock);
    o->closed = true;
    pthread_cond_broadcast(&o->emptied);
    pthread_mutex_unlock(&o->lock);
}
