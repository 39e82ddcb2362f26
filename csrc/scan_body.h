/* The forward pass for one type of number, included by scan.c once for float64 and once for wide.
 *
 * NUMBER   the type            NAME(f)      f with the type's suffix
 * ADD MUL  arithmetic          ZERO         nothing
 * DECAY(k) exp(-rate * k) for an integer k >= 0;  DECAY_PART(y) for a float64 y >= 0
 */

/* Both halves of a level keep the intervals s before t in two groups: [first, past) with u <= v, and
 * the window [past, end) with u > v. Both ends only move up. The window's sum is kept as two stacks:
 * suffix sums of its part before `pivot`, and one sum, `front`, of the rest; when the suffix sums are
 * used up, the window is stacked anew. */

/* The sums of level j for lo <= t < turn, where v < 0; the past's end for t = turn is returned. */
static size_t
NAME(sums_left)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                size_t j, size_t turn, const NUMBER *H, NUMBER *sums, NUMBER *suffix)
{
    const int64_t *rank = p->rank;
    size_t lo = p->lo[j], first = p->lo[j - 1], last = p->hi[j - 1];
    const NUMBER *h = H + p->start[j - 1]; /* h[s - first] */
    int64_t above = p->whole[j - 1] + (p->part[j - 1] > 0.0); /* u >= 0 for r_s >= above */
    int64_t reach = level[j].reach;
    NUMBER step_past = DECAY_PART(level[j].slack); /* r_t - r_s = reach: v - u = slack */
    NUMBER from_above = DECAY_PART((double)(above - p->whole[j - 1]) - p->part[j - 1]);
    size_t past = first, entered = first, pivot = first;
    NUMBER fading = ZERO; /* sum over the past of h(s) exp(-2c (v - u)) */
    NUMBER front = ZERO;  /* over the window: h(s) exp(-2c max(u, 0)) */

    for (size_t t = lo; t < turn; t++) {
        int64_t r = rank[t];
        size_t end = t < last ? t : last; /* s < t */

        if (t > lo) {
            fading = MUL(fading, DECAY(r - rank[t - 1]));
        }
        for (; past < end && rank[past] <= r - reach; past++) {
            fading = ADD(fading, MUL(MUL(h[past - first], DECAY(r - reach - rank[past])),
                                     step_past));
        }
        if (past >= pivot) {
            NUMBER sum = ZERO;

            for (size_t s = end; s > past; s--) {
                NUMBER x = h[s - 1 - first];

                if (rank[s - 1] >= above) {
                    x = MUL(MUL(x, DECAY(rank[s - 1] - above)), from_above);
                }
                sum = ADD(sum, x);
                suffix[s - 1 - first] = sum;
            }
            pivot = entered = end > past ? end : past;
            front = ZERO;
        }
        for (; entered < end; entered++) {
            NUMBER x = h[entered - first];

            if (rank[entered] >= above) {
                x = MUL(MUL(x, DECAY(rank[entered] - above)), from_above);
            }
            front = ADD(front, x);
        }
        sums[t - lo] = ADD(fading, past < pivot ? ADD(suffix[past - first], front) : front);
    }
    return past;
}

/* The sums of level j for turn <= t < hi, where v >= 0. */
static void
NAME(sums_right)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
                 size_t j, size_t turn, size_t past, const NUMBER *H, NUMBER *sums,
                 NUMBER *suffix)
{
    const int64_t *rank = p->rank;
    size_t lo = p->lo[j], hi = p->hi[j], first = p->lo[j - 1], last = p->hi[j - 1];
    const NUMBER *h = H + p->start[j - 1];
    int64_t below = p->whole[j - 1], above = below + (p->part[j - 1] > 0.0);
    int64_t reach = level[j].reach;
    NUMBER from_below = DECAY_PART(p->part[j - 1]);
    NUMBER step_ahead = DECAY_PART(1.0 - level[j].slack); /* r_t - r_s = reach - 1: u - v */
    size_t entered = first, pivot = first, s = first;
    NUMBER flat = ZERO;  /* sum over the past of h(s) exp(-2c max(-u, 0)) */
    NUMBER front = ZERO; /* over the window from the pivot on: h(s) exp(-2c (r_s - r_pivot)) */

    for (size_t t = turn; t < hi; t++) {
        int64_t r = rank[t];
        size_t end = t < last ? t : last;
        NUMBER window = ZERO;

        while (past < end && rank[past] <= r - reach) {
            past++;
        }
        for (; s < past && rank[s] < above; s++) {
            flat = ADD(flat, MUL(MUL(h[s - first], DECAY(below - rank[s])), from_below));
        }
        for (; s < past; s++) {
            flat = ADD(flat, h[s - first]);
        }
        if (past >= pivot) {
            NUMBER sum = ZERO; /* as seen from r_s */

            for (size_t i = end; i > past; i--) {
                if (i < end) {
                    sum = MUL(sum, DECAY(rank[i] - rank[i - 1]));
                }
                sum = ADD(sum, h[i - 1 - first]);
                suffix[i - 1 - first] = sum;
            }
            pivot = entered = end > past ? end : past;
            front = ZERO;
        }
        for (; entered < end; entered++) {
            front = ADD(front, MUL(h[entered - first], DECAY(rank[entered] - rank[pivot])));
        }
        /* u - v = r_s - (r_t - reach) - slack: reach - 1 - (r_t - r_s) whole steps and a part */
        if (past < pivot) {
            window = MUL(suffix[past - first], DECAY(reach - 1 - (r - rank[past])));
        }
        if (pivot < entered) {
            window = ADD(window, MUL(front, DECAY(reach - 1 - (r - rank[pivot]))));
        }
        sums[t - lo] = ADD(flat, MUL(window, step_ahead));
    }
}

/* The sums of level j >= 1; see dpq_scan_sums. */
static void
NAME(sums)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
           size_t j, const NUMBER *H, NUMBER *sums, NUMBER *work)
{
    size_t turn = dpq_ranks_first(p->rank, p->lo[j], p->hi[j],
                                  p->whole[j] + (p->part[j] > 0.0));
    size_t past = NAME(sums_left)(p, decay, level, j, turn, H, sums, work);

    NAME(sums_right)(p, decay, level, j, turn, past, H, sums, work);
}
