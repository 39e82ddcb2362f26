/* One step of the forward pass for one type of number, included once for each way to store sums.
 *
 * NUMBER   the type            NAME(f)      f with the type's suffix
 * SUMS     where sums go
 * ADD MUL  arithmetic          ZERO         nothing
 * FADE(x, k)  x exp(-rate * k) for an integer k >= 0;  DECAY_PART(y)  exp(-rate * y) for a float64 y >= 0
 * TERM(a, b), FADING(x, k)  MUL and FADE where the result is added to others next
 * STORE(t, past, window)       what is done with the sums of entry t over u <= v, and over u > v
 */

/* Both halves of a level keep the entries s before t in two groups: [0, past) with u <= v, and the
 * window [past, end) with u > v. Both ends only move up. The window's sum is kept as two stacks:
 * suffix sums of its part before `pivot`, and one sum, `front`, of the rest; when the suffix sums are
 * used up, the window is stacked anew. Entries count plus[s] in the past and minus[s] in the window. Where
 * that is at hand, faded[0] and faded[1] are these times exp(-2c max(-u, 0)) and exp(-2c max(u, 0)). */

/* The sums for t < turn, where v < 0; the past's end for t = turn is returned. */
static size_t
NAME(sums_left)(const dpq_scan_step *step, const dpq_decay *decay, size_t turn, const NUMBER *plus,
                const NUMBER *minus, const NUMBER *const *faded, SUMS sums, NUMBER *suffix)
{
    const int64_t *rank = step->rank, *before = step->rank_before;
    int64_t above = step->whole + (step->part > 0.0); /* u >= 0 for r_s >= above */
    int64_t reach = step->level->reach;
    NUMBER step_past = DECAY_PART(step->level->slack); /* r_t - r_s = reach: v - u = slack */
    NUMBER from_above = DECAY_PART((double)(above - step->whole) - step->part);
    size_t past = 0, entered = 0, pivot = 0;
    NUMBER fading = ZERO; /* sum over the past of plus(s) exp(-2c (v - u)) */
    NUMBER front = ZERO;  /* over the window: minus(s) exp(-2c max(u, 0)) */

    for (size_t t = 0; t < turn; t++) {
        int64_t r = rank[t];
        size_t end = dpq_scan_step_end(step, t); /* s < t */

        if (t > 0) {
            fading = FADE(fading, r - rank[t - 1]);
        }
        for (; past < end && before[past] <= r - reach; past++) {
            fading = ADD(fading, TERM(FADE(plus[past], r - reach - before[past]), step_past));
        }
        if (past >= pivot) {
            NUMBER sum = ZERO;

            for (size_t s = end; s > past; s--) {
                NUMBER x = faded ? faded[1][s - 1] : minus[s - 1];

                if (!faded && before[s - 1] >= above) {
                    x = TERM(FADE(x, before[s - 1] - above), from_above);
                }
                sum = ADD(sum, x);
                suffix[s - 1] = sum;
            }
            pivot = entered = end > past ? end : past;
            front = ZERO;
        }
        for (; entered < end; entered++) {
            NUMBER x = faded ? faded[1][entered] : minus[entered];

            if (!faded && before[entered] >= above) {
                x = TERM(FADE(x, before[entered] - above), from_above);
            }
            front = ADD(front, x);
        }
        STORE(t, fading, past < pivot ? ADD(suffix[past], front) : front);
    }
    return past;
}

/* The sums for t >= turn, where v >= 0. */
static void
NAME(sums_right)(const dpq_scan_step *step, const dpq_decay *decay, size_t turn, size_t past,
                 const NUMBER *plus, const NUMBER *minus, const NUMBER *const *faded, SUMS sums,
                 NUMBER *suffix)
{
    const int64_t *rank = step->rank, *before = step->rank_before;
    int64_t below = step->whole, above = below + (step->part > 0.0);
    int64_t reach = step->level->reach;
    NUMBER from_below = DECAY_PART(step->part);
    NUMBER step_ahead = DECAY_PART(1.0 - step->level->slack); /* r_t - r_s = reach - 1: u - v */
    size_t entered = 0, pivot = 0, s = 0;
    NUMBER flat = ZERO;  /* sum over the past of plus(s) exp(-2c max(-u, 0)) */
    NUMBER front = ZERO; /* over the window from the pivot on: minus(s) exp(-2c (r_s - r_pivot)) */

    for (size_t t = turn; t < step->size; t++) {
        int64_t r = rank[t];
        size_t end = dpq_scan_step_end(step, t);
        NUMBER window = ZERO;

        while (past < end && before[past] <= r - reach) {
            past++;
        }
        for (; !faded && s < past && before[s] < above; s++) {
            flat = ADD(flat, TERM(FADE(plus[s], below - before[s]), from_below));
        }
        for (; s < past; s++) {
            flat = ADD(flat, faded ? faded[0][s] : plus[s]);
        }
        if (past >= pivot) {
            NUMBER sum = ZERO; /* as seen from r_s */

            for (size_t i = end; i > past; i--) {
                if (i < end) {
                    sum = FADING(sum, before[i] - before[i - 1]);
                }
                sum = ADD(sum, minus[i - 1]);
                suffix[i - 1] = sum;
            }
            pivot = entered = end > past ? end : past;
            front = ZERO;
        }
        for (; entered < end; entered++) {
            front = ADD(front, FADING(minus[entered], before[entered] - before[pivot]));
        }
        /* u - v = r_s - (r_t - reach) - slack: reach - 1 - (r_t - r_s) whole steps and a part */
        if (past < pivot) {
            window = FADE(suffix[past], reach - 1 - (r - before[past]));
        }
        if (pivot < entered) {
            window = ADD(window, FADING(front, reach - 1 - (r - before[pivot])));
        }
        STORE(t, flat, MUL(window, step_ahead));
    }
}

/* All sums of one step; suffix has as many entries as the row before. */
static void
NAME(sums)(const dpq_scan_step *step, const dpq_decay *decay, const NUMBER *plus,
           const NUMBER *minus, const NUMBER *const *faded, SUMS sums, NUMBER *suffix)
{
    size_t turn = dpq_ranks_first(step->rank, 0, step->size,
                                  step->whole_now + (step->part_now > 0.0));
    size_t past = NAME(sums_left)(step, decay, turn, plus, minus, faded, sums, suffix);

    NAME(sums_right)(step, decay, turn, past, plus, minus, faded, sums, suffix);
}
