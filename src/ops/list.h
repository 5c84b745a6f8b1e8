/* list.h - every operator: one line each, sorted. */
FL_OP(margin_rank_loss)
FL_OP(mean)
