/* SPDX-License-Identifier: Apache-2.0 */
/* tls.c - the files that the environment names. */
#include "cluster/tls.h"

#include "base/flag.h"
#include "net/aes.h"

static const char *const variables[] = {"FLUID_TLS_CERT", "FLUID_TLS_KEY",
                                        "FLUID_TLS_CA"};

bool fl_job_has_tls(void)
{
    for (int i = 0; i < 3; i++)
        if (fl_flag_text(variables[i]))
            return true;
    return false;
}

fl_err fl_job_tls_read(fl_tls **out)
{
    const char *path[3];
    bool no_plugin = false;
    *out = NULL;
    if (!fl_job_has_tls())
        return FL_OK;
    FL_TRY(fl_flag_bool("FLUID_TLS_NO_PLUGIN", &no_plugin));
    for (int i = 0; i < 3; i++) {
        path[i] = fl_flag_text(variables[i]);
        if (!path[i])
            return fl_fail(
                FL_EINVAL, "%s is not set; a job with TLS needs %s, %s and %s",
                variables[i], variables[0], variables[1], variables[2]);
    }
    if (!no_plugin)
        fl_aes_load();
    const fl_err err = fl_tls_new(path[0], path[1], path[2], out);
    return err ? fl_fail_at(err, "FLUID_TLS_CERT, FLUID_TLS_KEY and "
                                 "FLUID_TLS_CA name the files")
               : FL_OK;
}
