/* The forward pass for one type of number, included by scan.c once for float64 and once for wide.
 *
 * NUMBER   the type            NAME(f)      f with the type's suffix
 * ADD MUL  arithmetic          LESS(a, b)   a < b
 * ZERO ONE constants           REAL(x)      a float64 x > 0 as a number
 * DECAY(k) exp(-rate * k) for an integer k >= 0;  DECAY_PART(y) for a float64 y >= 0
 * STAY(l), UP(l)  level[l].stay and .up as numbers
 */

static void
NAME(sums)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
           size_t j, const NUMBER *H, NUMBER *sums, NUMBER *work)
{
    const int64_t *rank = p->rank;
    size_t lo = p->lo[j], hi = p->hi[j], first = p->lo[j - 1], last = p->hi[j - 1];
    int64_t target = p->whole[j] + (p->part[j] > 0.0); /* v >= 0 for r_t >= target */
    const NUMBER *h = H + p->start[j - 1]; /* h[s - first] */
    int64_t below = p->whole[j - 1];       /* Q_{j-1} = below + part */
    int64_t above = below + (p->part[j - 1] > 0.0);
    int64_t reach = level[j].reach;
    NUMBER step_past = DECAY_PART(level[j].slack); /* r_t - r_s = reach: v - u = slack */
    NUMBER step_ahead = DECAY_PART(1.0 - level[j].slack);
    NUMBER from_below = DECAY_PART(p->part[j - 1]);
    NUMBER from_above = DECAY_PART((double)(above - below) - p->part[j - 1]);
    /* s in [first, past): u <= v;  [past, entered): u > v, the window.
     * Its part before `pivot` is kept as suffix sums in work, the rest as one sum, `front`. */
    size_t past = first, entered = first, pivot = first;
    NUMBER flat = ZERO;    /* sum over the past of h(s) exp(-2c max(-u, 0)), for v >= 0 */
    NUMBER fading = ZERO;  /* sum over the past of h(s) exp(-2c (v - u)), for v < 0 */
    NUMBER front = ZERO;
    int right = 0; /* whether v >= 0 */

    for (size_t t = lo; t < hi; t++) {
        int64_t r = rank[t];
        size_t end = t < last ? t : last; /* s < t */
        int turned = 0;
        NUMBER total, window = ZERO;

        if (!right) {
            right = turned = r >= target;
            if (!right && t > lo) {
                fading = MUL(fading, DECAY(r - rank[t - 1]));
            }
        }
        for (; past < end && rank[past] <= r - reach; past++) {
            NUMBER x = h[past - first];

            if (rank[past] >= above) {
                flat = ADD(flat, x);
            }
            else {
                flat = ADD(flat, MUL(MUL(x, DECAY(below - rank[past])), from_below));
            }
            if (!right) {
                fading = ADD(fading, MUL(MUL(x, DECAY(r - reach - rank[past])), step_past));
            }
        }
        if (past >= pivot || turned) { /* the suffix sums are used up: stack the window anew */
            NUMBER suffix = ZERO;

            for (size_t s = end; s > past; s--) {
                NUMBER x = h[s - 1 - first];

                if (right) {
                    if (s < end) {
                        suffix = MUL(suffix, DECAY(rank[s] - rank[s - 1]));
                    }
                }
                else if (rank[s - 1] >= above) {
                    x = MUL(MUL(x, DECAY(rank[s - 1] - above)), from_above);
                }
                suffix = ADD(suffix, x);
                work[s - 1 - first] = suffix;
            }
            pivot = entered = end > past ? end : past;
            front = ZERO;
        }
        for (; entered < end; entered++) {
            NUMBER x = h[entered - first];

            if (right) {
                x = MUL(x, DECAY(rank[entered] - rank[pivot]));
            }
            else if (rank[entered] >= above) {
                x = MUL(MUL(x, DECAY(rank[entered] - above)), from_above);
            }
            front = ADD(front, x);
        }
        if (!right) {
            if (past < pivot) {
                window = work[past - first];
            }
            total = ADD(fading, ADD(window, front));
        }
        else {
            /* u - v = r_s - (r_t - reach) - slack: reach - 1 - (r_t - r_s) whole steps and a part */
            if (past < pivot) {
                window = MUL(work[past - first], DECAY(reach - 1 - (r - rank[past])));
            }
            if (pivot < entered) {
                window = ADD(window, MUL(front, DECAY(reach - 1 - (r - rank[pivot]))));
            }
            total = ADD(flat, MUL(window, step_ahead));
        }
        sums[t - lo] = total;
    }
}

/* h_j(t) = sum_k ..., given a_j(t) = `alone`: k outputs in interval t, the first at level l. */
static NUMBER
NAME(copies)(const dpq_scan_problem *p, const dpq_decay *decay, const dpq_scan_level *level,
             size_t j, size_t t, NUMBER alone, const NUMBER *A, const NUMBER *H)
{
    int64_t r = p->rank[t];
    double width = p->width[t];
    size_t k = 2;
    NUMBER sum = alone, factor = ONE;

    for (size_t l = j; l-- > 0 && t < p->hi[l]; k++) {
        double more = (p->lattice ? width + (double)(k - 1) : width) * level[k - 1].share;
        size_t at = p->start[l] + (t - p->lo[l]);

        factor = MUL(factor, REAL(more * level[l + 1].gain));
        /* From level l to l + 1 at one rank, dist(u, [min(0, v), max(0, v)]) with u >= v. */
        if (r > p->whole[l]) { /* u > 0 */
            if (r > p->whole[l + 1] || (r == p->whole[l + 1] && p->part[l + 1] == 0.0)) {
                factor = MUL(factor, STAY(l + 1)); /* v >= 0: u - v = n_{l+1} */
            }
            else {
                factor = MUL(factor, MUL(DECAY(r - p->whole[l] - 1), UP(l))); /* v < 0: u */
            }
        }
        if (LESS(MUL(factor, H[at]), MUL(sum, REAL(REST)))) {
            break;
        }
        sum = ADD(sum, MUL(factor, A[at]));
    }
    return sum;
}
