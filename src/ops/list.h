/* list.h - every operator: one line each, sorted. */
FL_OP(mean)
