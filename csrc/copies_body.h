/* Sums over several outputs of an interval, included for each length of vectors (versions.h), a divisor of
 * TOGETHER, by scan.c and by scan_blocks_rows.c:
 *
 * IN_BLOCKS  whether rows are of blocks, or have one exponent each
 */
#ifndef TOGETHER
#define TOGETHER 16 /* intervals whose sums over k are taken together, */
#define OFTEN 4     /* factors between two looks at what is to come; */
/* in rows of blocks if widths are between these, what a step keeps is not less than that, and units from level
 * to level are at most MOST_STEP powers of two apart: so no factor of a step is 0 or infinite; and then if
 * sums are between the last two */
#define LEAST_WIDTH 0x1p-100
#define MOST_WIDTH 0x1p100
#define LEAST_STAY 0x1p-300
#define MOST_STEP 500
#define LEAST_SUM 0x1p-840
#define MOST_SUM 0x1p1000
#endif

/* h_j for the entries from, ..., from + TOGETHER - 1 of row j, given a_j: all go on until it is done for the
 * last of them. Each lane is the same to the last bit, whatever the vector's length. In rows of blocks, whether
 * that was possible: where numbers may be too small or too large for it, nothing of use is filled in.
 *
 * There the factors are in units of blocks of H, in which their bound on what is to come is about 1, or of
 * a_j's own: one that is below 2^-1020 is nothing to the sum, nor is anything that follows. */
TARGET static inline int
NAME(together)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
               const dpq_scan_blocks *blocks, size_t j, size_t from, const double *A, double *H)
{
    enum { VECTORS = TOGETHER / LANES }; /* few enough for registers, three times */
    typedef double numbers DPQ_VECTOR(LANES);
    typedef int64_t truths DPQ_VECTOR(LANES);
    typedef numbers stored DPQ_STORED;
    const numbers zero = {0};
    const double next = p->lattice ? 1.0 : 0.0;
    const size_t t = p->lo[j] + from;
    const int64_t *rank = p->rank + t;
    const stored *width = (const stored *)(p->width + t);
    const stored *a = (const stored *)(A + p->start[j] + from);
    stored *h = (stored *)(H + p->start[j] + from);
    numbers factor[VECTORS], sum[VECTORS], least[VECTORS];
    size_t n = TOGETHER; /* how many of them are in the row at hand, too */
    int64_t unit = IN_BLOCKS ? blocks->A[dpq_scan_block(p, blocks, j, t)] : 0;
    double extra = 0.0; /* places beyond the width */

    for (size_t i = 0; IN_BLOCKS && i < TOGETHER; i++) {
        if (!(p->width[t + i] > LEAST_WIDTH && p->width[t + i] < MOST_WIDTH)) {
            return 0;
        }
    }
    for (size_t i = 0; i < VECTORS; i++) {
        factor[i] = zero + 1.0;
        sum[i] = a[i];
        least[i] = width[i];
    }
    for (size_t l = j, k = 2; l-- > 0 && t < p->hi[l]; k++) {
        size_t at = p->start[l] + (t - p->lo[l]);
        const stored *alone = (const stored *)(A + at), *all = (const stored *)(H + at);
        double gain = level[k - 1].share, keep = 1.0; /* from units of H to those of A */
        int64_t above = p->whole[l + 1] + (p->part[l + 1] > 0.0);

        if (IN_BLOCKS) {
            size_t block = dpq_scan_block(p, blocks, l, t);
            int64_t up = blocks->H[block] - unit, down = blocks->H[block] - blocks->A[block];

            if (up > MOST_STEP || up < -MOST_STEP || down > MOST_STEP ||
                (rank[n - 1] > p->whole[l] && level[l + 1].stay < LEAST_STAY)) {
                return 0;
            }
            unit = blocks->H[block];
            gain *= dpq_wide_power(-up);
            keep = dpq_wide_power(down);
        }
        else {
            gain *= level[l + 1].gain;
        }
        extra += next;
        if (rank[0] >= above && t + n <= p->hi[l]) {
            gain *= level[l + 1].stay;
        }
        else if (rank[n - 1] > p->whole[l] || t + n > p->hi[l]) {
            double stay[TOGETHER] = {0.0};

            /* what follows in memory is of later rows, and is not counted */
            n = n < p->hi[l] - t ? n : p->hi[l] - t;
            for (size_t i = 0; i < n; i++) {
                stay[i] = dpq_scan_stay_at(p, decay, level, l, rank[i]);
            }
            for (size_t i = 0; i < VECTORS; i++) {
                factor[i] *= ((const stored *)stay)[i];
            }
        }
        for (size_t i = 0; i < VECTORS; i++) {
            factor[i] *= (least[i] + extra) * gain;
            sum[i] += factor[i] * (alone[i] * keep);
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
    for (size_t i = from; IN_BLOCKS && i < from + TOGETHER; i++) {
        if (!(H[p->start[j] + i] > LEAST_SUM && H[p->start[j] + i] < MOST_SUM)) {
            return 0;
        }
    }
    return 1;
}

/* The same for the entries begin, ..., end - 1 of row j, TOGETHER of them at least: in one block. */
TARGET static int
NAME(copies)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
             const dpq_scan_blocks *blocks, size_t j, size_t begin, size_t end, const double *A,
             double *H)
{
    for (size_t done = begin; done < end; done += TOGETHER) { /* the last ones may be done twice */
        size_t from = done + TOGETHER < end ? done : end - TOGETHER;

        if (!NAME(together)(p, decay, level, blocks, j, from, A, H) && IN_BLOCKS) {
            return 0;
        }
    }
    return 1;
}
