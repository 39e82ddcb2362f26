/* Sums over several outputs of an interval, included by scan.c for each length of vectors (versions.h), a
 * divisor of TOGETHER. */

/* copies_shared() for `shared` >= TOGETHER intervals: so many at a time, all going on until it is
 * done for the last of them. Each lane is the same to the last bit, whatever the vector's length. */
TARGET static void
NAME(copies)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
             size_t j, size_t shared, const double *A, double *H)
{
    enum { VECTORS = TOGETHER / LANES }; /* few enough for registers, three times */
    typedef double numbers DPQ_VECTOR(LANES);
    typedef int64_t truths DPQ_VECTOR(LANES);
    typedef numbers stored DPQ_STORED;
    const numbers zero = {0};
    const double next = p->lattice ? 1.0 : 0.0;

    for (size_t done = 0; done < shared; done += TOGETHER) { /* the last ones may be done twice */
        size_t from = done + TOGETHER < shared ? done : shared - TOGETHER, t = p->lo[j] + from;
        size_t n = TOGETHER; /* so many of them are in the row at hand, too */
        const int64_t *rank = p->rank + t;
        const stored *width = (const stored *)(p->width + t);
        const stored *a = (const stored *)(A + p->start[j] + from);
        stored *h = (stored *)(H + p->start[j] + from);
        numbers factor[VECTORS], sum[VECTORS], least[VECTORS];
        double extra = 0.0; /* places beyond the width */

        for (size_t i = 0; i < VECTORS; i++) {
            factor[i] = zero + 1.0;
            sum[i] = a[i];
            least[i] = width[i];
        }
        for (size_t l = j, k = 2; l-- > 0 && t < p->hi[l]; k++) {
            size_t at = p->start[l] + (t - p->lo[l]);
            const stored *alone = (const stored *)(A + at), *all = (const stored *)(H + at);
            double gain = level[k - 1].share * level[l + 1].gain;
            int64_t above = p->whole[l + 1] + (p->part[l + 1] > 0.0);

            extra += next;
            if (rank[0] >= above && t + n <= p->hi[l]) {
                gain *= level[l + 1].stay;
            }
            else if (rank[n - 1] > p->whole[l] || t + n > p->hi[l]) {
                double stay[TOGETHER] = {0.0};

                /* what follows in memory is of later rows, and is not counted */
                n = n < p->hi[l] - t ? n : p->hi[l] - t;
                for (size_t i = 0; i < n; i++) {
                    stay[i] = stay_at(p, decay, level, l, rank[i]);
                }
                for (size_t i = 0; i < VECTORS; i++) {
                    factor[i] *= ((const stored *)stay)[i];
                }
            }
            for (size_t i = 0; i < VECTORS; i++) {
                factor[i] *= (least[i] + extra) * gain;
                sum[i] += factor[i] * alone[i];
            }
            if (k % OFTEN == 0) {
                truths closed = (truths){0} - 1;
                int64_t every;

                for (size_t i = 0; i < VECTORS; i++) {
                    numbers rest = factor[i] * all[i] - sum[i] * DPQ_SCAN_REST;
                    truths small = (truths)(rest < 0.0);

                    closed &= small;
                    /* soon subnormal, which is slow */
                    factor[i] = DPQ_PICK(small, zero, factor[i]);
                }
                every = DPQ_LANE(closed, 0);
                if (every) { /* seldom, and a look at all is slow */
                    for (size_t i = 1; i < LANES; i++) {
                        every &= DPQ_LANE(closed, i);
                    }
                    if (every) {
                        break;
                    }
                }
            }
        }
        for (size_t i = 0; i < VECTORS; i++) {
            h[i] = sum[i];
        }
    }
}
