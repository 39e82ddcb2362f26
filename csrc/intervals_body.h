/* The intervals between points, included by intervals.c once for lattice points and once for numbers.
 *
 * POINT  the type of a point    NAME(f)  f with the suffix of the type
 */

/* Written for all intervals first, which vectors can do; then those without width are left out. */
DPQ_VECTORIZED size_t
NAME(dpq_intervals)(size_t segments, const int64_t *first_rank, const int64_t *count, int64_t n,
                    POINT before, POINT after, const POINT *point, int64_t *rank, double *width,
                    POINT *left)
{
    size_t written = 0;

    for (size_t s = 0; s < segments; s++) {
        size_t ranks = (size_t)count[s], last = ranks - 1, kept = 0;

        left[0] = first_rank[s] == 0 ? before : *point++;
        for (size_t i = 0; i < last; i++) {
            left[i + 1] = point[i];
        }
        for (size_t i = 0; i < last; i++) {
            width[i] = (double)(left[i + 1] - left[i]);
        }
        width[last] = (double)((first_rank[s] + count[s] == n + 1 ? after : point[last]) - left[last]);
        point += first_rank[s] + count[s] == n + 1 ? last : ranks;
        for (size_t i = 0; i < ranks; i++) {
            rank[i] = first_rank[s] + (int64_t)i;
            kept += width[i] > 0.0;
        }
        if (kept < ranks) {
            kept = 0;
            for (size_t i = 0; i < ranks; i++) { /* each is written: no branch */
                rank[kept] = rank[i];
                width[kept] = width[i];
                left[kept] = left[i];
                kept += width[i] > 0.0;
            }
        }
        written += kept;
        rank += kept;
        width += kept;
        left += kept;
    }
    return written;
}
