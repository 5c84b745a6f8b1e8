/* fuse.c - several ops become one. */
#include "exec/fuse.h"

void fl_fuse(fl_lines *l)
{
}
