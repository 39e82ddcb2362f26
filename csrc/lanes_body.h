/* The forward pass of all lanes, included by lanes.c for each length of vectors (versions.h), a divisor of
 * DPQ_LANES.
 *
 * All lanes go on together, whatever the vector's length: each has the same bits.
 */

typedef double numbers DPQ_VECTOR(LANES);
typedef int64_t truths DPQ_VECTOR(LANES);
typedef numbers stored DPQ_STORED;

/* What one row's pass needs and finds. */
typedef struct {
    const dpq_lanes *lanes;
    size_t level, size;
    double *a, *h;  /* row `level`, */
    double *before; /* and row h before it */
    numbers gain[VECTORS], low[VECTORS]; /* low: where points of no width begin */
    numbers smallest[VECTORS], largest[VECTORS]; /* the smallest entry that is not 0 in truth */
} row_pass;

/* Entry t of a row, given its sum. */
TARGET static inline void
NAME(finish)(row_pass *pass, size_t t, const numbers *sum)
{
    const dpq_lanes *lanes = pass->lanes;
    const size_t size = pass->size;
    const stored *point = AT(lanes->point, t), *next = AT(lanes->point, t + 1);
    const double again = lanes->lattice ? 1.0 : 0.0;
    numbers alone[VECTORS], all[VECTORS], factor[VECTORS], places[VECTORS];

    EACH(i) {
        numbers width = next[i] - point[i];

        alone[i] = all[i] = width * pass->gain[i] * sum[i];
        factor[i] = SAME(1.0);
        places[i] = width + again;
    }
    for (size_t l = pass->level, added = 1; l-- > 0; added++) {
        const stored *gain = AT(lanes->gain, l + 1), *before = AT(lanes->A, l * size + t);
        double kept = lanes->stay[l * size + t] * lanes->level[added].share;

        EACH(i) {
            factor[i] *= places[i] * gain[i] * kept;
            places[i] += again;
            all[i] += factor[i] * before[i];
        }
        if (added >= FEW && (added - FEW) % OFTEN == 0) {
            const stored *rest = AT(lanes->H, l * size + t);
            truths more = {0};
            int64_t any = 0;

            EACH(i) {
                more |= (truths)(factor[i] * rest[i] >= all[i] * DPQ_SCAN_REST);
            }
            for (size_t i = 0; i < LANES; i++) {
                any |= DPQ_LANE(more, i);
            }
            if (!any) {
                break;
            }
        }
    }
    EACH(i) {
        numbers width = next[i] - point[i], seen, tried;

        AT(pass->a, t)[i] = alone[i];
        AT(pass->h, t)[i] = all[i];
        /* a_j(t) is truly zero up to the first interval of some width, where none is before it */
        tried = DPQ_PICK((truths)(point[i] > pass->low[i]), alone[i], all[i]);
        seen = DPQ_PICK((truths)(width > 0.0), tried, pass->smallest[i]);
        pass->smallest[i] = DPQ_PICK((truths)(seen < pass->smallest[i]), seen, pass->smallest[i]);
        pass->largest[i] = DPQ_PICK((truths)(all[i] > pass->largest[i]), all[i], pass->largest[i]);
    }
}

/* The entries t < turn, where v < 0: see scan_body.h, `sums_left`. A window of `ahead` entries is what
 * is left of one block of as many, and what is reached of the next. */
TARGET static inline void
NAME(left_of_target)(row_pass *pass, size_t turn)
{
    const dpq_lanes *lanes = pass->lanes;
    const dpq_scan_level *level = lanes->level + pass->level;
    const size_t reach = (size_t)level->reach, ahead = reach - 1, block = ahead > 0 ? ahead : 1;
    const double *above = lanes->above + (pass->level - 1) * pass->size;
    const double fade = lanes->decay->table[1];
    numbers fading[VECTORS];

    EACH(i) {
        fading[i] = SAME(0.0);
    }
    for (size_t from = 0; from < turn; from += block) {
        numbers front[VECTORS], stacked[VECTORS];
        size_t stop = turn - from < block ? turn : from + block;

        EACH(i) {
            front[i] = stacked[i] = SAME(0.0);
        }
        for (size_t k = block; ahead > 0 && k-- > 0;) {
            size_t s = from + k - block; /* if there is a block before */

            EACH(i) {
                if (from > 0) {
                    stacked[i] += AT(pass->before, s)[i] * above[s];
                }
                AT(lanes->suffix, k)[i] = stacked[i];
            }
        }
        for (size_t t = from; t < stop; t++) {
            numbers sum[VECTORS];

            EACH(i) {
                if (t >= reach) {
                    fading[i] = fading[i] * fade + AT(pass->before, t - reach)[i];
                }
                sum[i] = fading[i] * level->past;
                if (ahead > 0) {
                    if (t > from) {
                        front[i] += AT(pass->before, t - 1)[i] * above[t - 1];
                    }
                    sum[i] += AT(lanes->suffix, t - from)[i] + front[i];
                }
            }
            NAME(finish)(pass, t, sum);
        }
    }
}

/* The entries t >= turn, where v >= 0: see `sums_right`. */
TARGET static inline void
NAME(right_of_target)(row_pass *pass, size_t turn)
{
    const dpq_lanes *lanes = pass->lanes;
    const dpq_scan_level *level = lanes->level + pass->level;
    const size_t reach = (size_t)level->reach, ahead = reach - 1, block = ahead > 0 ? ahead : 1;
    const double *below = lanes->below + (pass->level - 1) * pass->size;
    const double *table = lanes->decay->table;
    numbers flat[VECTORS];

    EACH(i) {
        flat[i] = SAME(0.0);
        for (size_t s = 0; s + reach < turn; s++) {
            flat[i] += AT(pass->before, s)[i] * below[s];
        }
    }
    for (size_t from = turn; from < pass->size; from += block) {
        numbers front[VECTORS], stacked[VECTORS];
        size_t stop = pass->size - from < block ? pass->size : from + block;

        EACH(i) {
            front[i] = stacked[i] = SAME(0.0);
        }
        for (size_t k = block; ahead > 0 && k-- > 0;) {
            EACH(i) {
                stacked[i] *= table[1];
                if (from + k >= block) {
                    stacked[i] += AT(pass->before, from + k - block)[i];
                }
                AT(lanes->suffix, k)[i] = stacked[i];
            }
        }
        for (size_t t = from; t < stop; t++) {
            numbers sum[VECTORS];

            EACH(i) {
                if (t >= reach) {
                    flat[i] += AT(pass->before, t - reach)[i] * below[t - reach];
                }
                sum[i] = flat[i];
                if (ahead > 0) {
                    if (t > from) {
                        front[i] += AT(pass->before, t - 1)[i] * table[t - 1 - from];
                    }
                    sum[i] += (AT(lanes->suffix, t - from)[i] + front[i] * table[ahead - (t - from)]) *
                              level->ahead;
                }
            }
            NAME(finish)(pass, t, sum);
        }
    }
}

/* The rows of all lanes: dpq_lanes_forward(). */
TARGET static unsigned
NAME(forward)(const dpq_lanes *lanes)
{
    const size_t size = intervals_of(lanes), m = lanes->levels;
    row_pass pass = {.lanes = lanes, .size = size};
    double largest[DPQ_LANES], widest[DPQ_LANES], smallest[DPQ_LANES];
    unsigned failed = 0;
    numbers sum[VECTORS];

    for (size_t i = 0; i < DPQ_LANES; i++) {
        lanes->point[i] = lanes->before;
        lanes->point[DPQ_LANES * size + i] = lanes->after;
    }
    EACH(i) {
        pass.low[i] = AT(lanes->point, 0)[i];
        pass.largest[i] = SAME(0.0);
        for (size_t t = 0; t < size; t++) {
            numbers width = AT(lanes->point, t + 1)[i] - AT(lanes->point, t)[i];

            pass.largest[i] = DPQ_PICK((truths)(width > pass.largest[i]), width, pass.largest[i]);
        }
    }
    memcpy(widest, pass.largest, sizeof widest);
    EACH(i) {
        pass.largest[i] = SAME(0.5); /* 2^0 times a half, for frexp() */
    }
    for (size_t j = 0; j < m; j++) {
        memcpy(largest, pass.largest, sizeof largest);
        failed = set_gains(lanes, j, failed, widest, largest);
        pass.level = j;
        pass.a = lanes->A + DPQ_LANES * j * size;
        pass.h = lanes->H + DPQ_LANES * j * size;
        EACH(i) {
            pass.gain[i] = AT(lanes->gain, j)[i];
            pass.smallest[i] = SAME(INFINITY);
            pass.largest[i] = SAME(0.0);
        }
        if (j == 0) {
            EACH(i) {
                sum[i] = SAME(1.0);
            }
            for (size_t t = 0; t < size; t++) {
                NAME(finish)(&pass, t, sum);
            }
        }
        else {
            size_t turn = (size_t)lanes->whole[j] + (lanes->part[j] > 0.0);

            pass.before = lanes->H + DPQ_LANES * (j - 1) * size;
            NAME(left_of_target)(&pass, turn);
            NAME(right_of_target)(&pass, turn);
        }
        memcpy(smallest, pass.smallest, sizeof smallest);
        failed |= lanes_below(smallest, DPQ_SCAN_SMALLEST);
    }
    EACH(i) {
        sum[i] = SAME(0.0);
        for (size_t t = 0; t < size; t++) {
            sum[i] += AT(pass.h, t)[i] * lanes->fade[(m - 1) * size + t];
        }
        AT(lanes->total, 0)[i] = sum[i];
    }
    return failed | lanes_below(lanes->total, DPQ_PATH_LEAST);
}
